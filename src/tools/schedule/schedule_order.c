/* schedule_order.c - a schedule as an order for training.
 *
 * Training gives one device's bits, so each stage takes its micro-batches in ascending order: then a gradient is the
 * same chain of additions.  And it knows two ways to put several stages on a device, in a loop and folded as a V:
 *
 *     loop   0 1 2 3     V   0 1 2 3         (the columns are devices)
 *            4 5 6 7         7 6 5 4
 */
#include "schedule.h"

/* The first stage that is not on the device of the mesh; the number of stages: all are. */
static int first_elsewhere(const struct schedule *schedule, const struct mesh *mesh)
{
    int stage = 0;
    while (stage < schedule->stages && schedule->row_of[stage] == pp_of(mesh, stage))
        stage++;
    return stage;
}

/* Finds out how stages lie on devices, in a loop or folded; refuses a schedule that has them in other rows. */
static void set_places(const struct schedule *schedule, struct turn_order *turn_order)
{
    int rows = (int)schedule->n;
    turn_order->chunks = MAX(schedule->stages / rows, 1);
    struct mesh loop = {.dp = 1, .pp = rows, .tp = 1, .chunks = turn_order->chunks};
    struct mesh v = loop;
    v.folded = true;
    int in_loop = first_elsewhere(schedule, &loop), in_v = first_elsewhere(schedule, &v);
    int wrong = MAX(in_loop, in_v);
    if (wrong < schedule->stages && in_loop != in_v)
        fail_in_cell(schedule, cell_of(schedule, FORWARD, wrong, 0),
                     "training has stage %d in row %d, since those before it are %s", wrong,
                     pp_of(in_v < in_loop ? &loop : &v, wrong) + 1, in_v < in_loop ? "dealt round" : "folded as a V");
    if (wrong < schedule->stages)
        fail_in_cell(schedule, cell_of(schedule, FORWARD, wrong, 0),
                     "training has stage %d in row %d, or, folded as a V, in row %d, and not in this one", wrong,
                     pp_of(&loop, wrong) + 1, pp_of(&v, wrong) + 1);
    if (schedule->stages % rows != 0)
        fail_in_cell(schedule, cell_of(schedule, FORWARD, schedule->stages - 1, 0),
                     "it is on the last of %d stages, and training needs as many stages on each of %d devices",
                     schedule->stages, rows);
    turn_order->folded = in_loop < schedule->stages;
}

/* Refuses a schedule in which a stage takes its micro-batches in another order. */
static void expect_ascending(const struct schedule *schedule)
{
    int(*done)[COMPUTATIONS] = allocate_each(schedule->stages, sizeof *done);
    for (size_t i = 0; i < schedule->n_turns; i++) {
        const struct turn *turn = schedule->turns[i].turn;
        int due = due_micro(done, turn);
        if (turn->micro != due)
            fail_in_cell(schedule, schedule->turns[i].cell,
                         "micro-batch %d is due: training takes those of a stage in ascending order, and adds up their "
                         "gradients as one device does",
                         due);
        note_done(done, turn);
    }
    free(done);
}

/* The turns of each row, as training takes them, and the text that a checkpoint keeps. */
static struct written_turns *write_turns(const struct schedule *schedule)
{
    struct written_turns *written = allocate(1, sizeof *written);
    written->devices = (int)schedule->n;
    written->micros = schedule->micros;
    written->text = format_schedule(schedule);
    written->turns = allocate(schedule->n, sizeof *written->turns);
    written->n = allocate(schedule->n, sizeof *written->n);
    for (size_t row = 0; row < schedule->n; row++)
        written->turns[row] = allocate(2 * schedule->rows[row].n, sizeof *written->turns[row]);
    for (size_t i = 0; i < schedule->n_turns; i++) {
        int row = schedule->turns[i].cell->row;
        written->turns[row][written->n[row]] = *schedule->turns[i].turn;
        written->n[row]++;
    }
    return written;
}

struct turn_order *new_turn_order(const struct schedule *schedule)
{
    struct turn_order *turn_order = allocate(1, sizeof *turn_order);
    set_places(schedule, turn_order);
    expect_ascending(schedule);
    refuse_if_waits_are_endless(schedule, TIED);
    turn_order->written = write_turns(schedule);
    return turn_order;
}
