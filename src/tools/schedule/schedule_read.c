/* schedule_read.c - reads off a list the schedule that it follows.
 *
 *     task forward  s0.compute micro=0 role=forward             0F0
 *     copy send     ...        micro=0 role=send                from here on micro-batch 0 is on the next stage
 *     task forward  s1.compute micro=0 role=forward             1F0
 *     task dx       s1.compute micro=0 role=backward            1I0: it writes no gradient of a weight
 *     task dw       s1.compute micro=0 role=backward            1W0: it writes nothing else
 *
 * Adjacent tasks of a device become one cell if they are of one stage and micro-batch and do the same: a forward, or
 * one half of a backward.  Where a task that computes gradients of weights stands among tasks that compute gradients of
 * inputs, the cell is a whole backward.
 *
 * The list does not say which stage a task is of.  A forward is of the stage that its micro-batch has come to: each
 * send leads the micro-batch to the next stage.  A backward is of the stage whose forward made what the task reads; if
 * it reads nothing that a forward made, it is of the stage whose backward made what it reads.  A task of role backward
 * that reads what the forward of another micro-batch made is two turns that overlap: the backward of that other
 * micro-batch, and a forward of its own.
 */
#include "schedule.h"

struct maker {        /* the turn that made the bytes of a tensor */
    bool is_known;    /* false: no turn made them, or it is not known which one; the other fields do not count */
    bool is_forward;  /* false: the turn is a backward, or a half of one */
    int stage, micro; /* the turn's; of a gradient that was sent, `stage` is the stage that received it */
    bool is_sent;     /* a send has copied the bytes from one stage to another */
};
struct list_reading {
    struct schedule *schedule; /* what has been read so far */
    const struct list *list;
    struct row *rows;     /* by device: its cells */
    struct maker *makers; /* by tensor: what wrote it last */
    int *device_of_stage; /* by stage: the index of its device; NONE: no task of the stage has been read */

    /* The last forward of each micro-batch, by micro-batch. */
    int *forward_stage;     /* its stage; NONE: no forward of the micro-batch has been read */
    bool *forward_was_sent; /* has what the forward made been sent to the next stage? */
};

/* Ends the program (EXIT_USAGE) with "FILE, task 12 backward: " and the sentence by printf rules. */
PRINTF_LIKE(3, 4)
static _Noreturn void fail_in_task(const struct list_reading *reading, const struct task *task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *sentence = format_arguments(format, arguments);
    va_end(arguments);
    fail(EXIT_USAGE, "%s, task %zu %s: %s", reading->schedule->name, task->index, task->name, sentence);
}

/* The task's micro-batch; 0 where the list has none. */
static int micro_of(const struct list_reading *reading, const struct task *task)
{
    if (task->micro >= MOST_MICROS)
        fail_in_task(reading, task, "a schedule has micro-batches below %d", MOST_MICROS);
    return MAX(task->micro, 0);
}

/* The last cell of the row, if a task of this turn may belong to it: the cell does one turn, which is of the same stage
 * and micro-batch, and in the same direction.  NULL: the task needs another cell. */
static struct turn_cell *cell_to_extend(const struct row *row, const struct turn *turn)
{
    struct turn_cell *last = row->n > 0 ? &row->cells[row->n - 1] : NULL;
    if (!last || last->n != 1)
        return NULL;
    const struct turn *begun = &last->turns[0];
    bool same_direction = (begun->computation == FORWARD) == (turn->computation == FORWARD);
    bool is_extended = begun->stage == turn->stage && begun->micro == turn->micro && same_direction;
    return is_extended ? last : NULL;
}

/* Returns the stage of a forward.  It is that of the last forward of its micro-batch, or the next one if what that
 * forward made has been sent.  Notes that the micro-batch is there now, and which device the stage is on. */
static int enter_stage(struct list_reading *reading, const struct task *task)
{
    int micro = micro_of(reading, task);
    int device = task->lane->device->index;
    int stage = MAX(reading->forward_stage[micro], 0);
    if (reading->forward_was_sent[micro])
        stage++;
    if (stage >= MOST_STAGES)
        fail_in_task(reading, task, "a schedule has fewer than %d stages", MOST_STAGES);
    reading->forward_stage[micro] = stage;
    reading->forward_was_sent[micro] = false;
    int *stage_device = &reading->device_of_stage[stage];
    if (*stage_device == NONE)
        *stage_device = device;
    if (*stage_device != device)
        fail_in_task(reading, task,
                     "it is on %s, and micro-batch %d is on stage %d, which is on %s: the form has one device for a "
                     "stage, and a send between two",
                     task->lane->device->id, micro, stage, reading->list->pool->machine->devices[*stage_device].id);
    return stage;
}

enum which_micro { OWN_MICRO, OTHER_MICRO };

/* The maker of a tensor that the task reads; NULL: the task reads no such tensor.
 *
 *     OWN_MICRO     a forward of the task's own micro-batch or, if there is none, a backward of it
 *     OTHER_MICRO   a forward of another micro-batch */
static const struct maker *maker_read_by(const struct list_reading *reading, const struct task *task,
                                         enum which_micro wanted)
{
    int task_micro = micro_of(reading, task);
    const struct maker *found = NULL;
    for (int i = 0; i < task->n_accesses; i++) {
        const struct maker *maker = &reading->makers[task->accesses[i].tensor->storage->id];
        enum which_micro maker_is_of = maker->micro == task_micro ? OWN_MICRO : OTHER_MICRO;
        if (!(task->accesses[i].mode & ACCESS_READ) || !maker->is_known || maker_is_of != wanted)
            continue;
        if (maker->is_forward)
            return maker;
        if (wanted == OWN_MICRO)
            found = maker;
    }
    return found;
}

/* What a backward task computes: the tensors that it writes say so. */
static enum computation computation_of(const struct task *task)
{
    bool of_weights = false; /* does the task write gradients of weights? */
    bool of_input = false;   /* does it write the gradient of an input? */
    for (int i = 0; i < task->n_accesses; i++) {
        bool writes = task->accesses[i].mode & ACCESS_WRITE;
        bool is_weight_gradient = task->accesses[i].tensor->storage->class == MEM_GRADIENTS;
        of_weights |= writes && is_weight_gradient;
        of_input |= writes && !is_weight_gradient;
    }
    if (of_weights && of_input)
        return BACKWARD;
    return of_weights ? WEIGHT_GRADIENT : INPUT_GRADIENT;
}

/* Notes that a turn of the cell has made what the task writes.  If two turns overlap, the forward has made the
 * activations, and the backward all else. */
static void note_made(struct list_reading *reading, const struct task *task, const struct turn_cell *cell)
{
    for (int i = 0; i < task->n_accesses; i++) {
        const struct tensor *tensor = task->accesses[i].tensor->storage;
        if (!(task->accesses[i].mode & ACCESS_WRITE))
            continue;
        const struct turn *turn = &cell->turns[0];
        if (cell->n == 2 && tensor->class != MEM_ACTIVATIONS)
            turn = &cell->turns[1];
        reading->makers[tensor->id] = (struct maker){
            .is_known = true,
            .is_forward = turn->computation == FORWARD,
            .stage = turn->stage,
            .micro = turn->micro,
        };
    }
}

/* Adds the forward that the task does to its device's row.  backward: a tensor's maker, whose stage and micro-batch are
 * those of the backward that the task does as well; NULL: it does a forward alone. */
static void add_forward_turn(struct list_reading *reading, const struct task *task, const struct maker *backward)
{
    struct turn_cell cell = {
        .turns = {{FORWARD, enter_stage(reading, task), micro_of(reading, task)}}, .n = 1, .task = task};
    struct row *row = &reading->rows[task->lane->device->index];
    if (backward) {
        cell.turns[1] = (struct turn){BACKWARD, backward->stage, backward->micro};
        cell.n = 2;
    }
    if (backward || !cell_to_extend(row, &cell.turns[0]))
        add_cell(row, cell);
    note_made(reading, task, &cell);
}

/* Makes the row's last cell, a half of a backward, a whole backward.  If the cell before it is of the same stage and
 * micro-batch and is a backward too, the two become one cell. */
static void make_whole(struct row *row)
{
    const struct turn last = row->cells[row->n - 1].turns[0];
    row->n--;
    struct turn_cell *first = cell_to_extend(row, &last);
    if (!first) {
        row->n++;
        first = &row->cells[row->n - 1];
    }
    first->turns[0].computation = BACKWARD;
}

/* Is there a cell in the row that computes the input's gradient of the stage and micro-batch of `maker`? */
static bool has_input_gradient(const struct row *row, const struct maker *maker)
{
    for (const struct turn_cell *cell = row->cells; cell < row->cells + row->n; cell++) {
        const struct turn *turn = &cell->turns[0];
        if (turn->computation == INPUT_GRADIENT && turn->stage == maker->stage && turn->micro == maker->micro)
            return true;
    }
    return false;
}

/* Adds the task to its device's last cell if it belongs there, and else gives it a cell of its own.  A first stage may
 * compute no gradient of an input; then a task that computes gradients of weights is a whole backward. */
static void add_backward_turn(struct list_reading *reading, const struct task *task)
{
    const struct maker *maker = maker_read_by(reading, task, OWN_MICRO);
    struct row *row = &reading->rows[task->lane->device->index];
    enum computation computation = computation_of(task);
    if (!maker)
        fail_in_task(reading, task,
                     "cannot tell which stage this backward belongs to: it reads nothing that a forward has made");
    if (computation == WEIGHT_GRADIENT && !has_input_gradient(row, maker))
        computation = BACKWARD;
    const struct turn_cell cell = {.turns = {{computation, maker->stage, maker->micro}}, .n = 1, .task = task};
    const struct turn_cell *open = cell_to_extend(row, &cell.turns[0]);
    if (!open || (computation == WEIGHT_GRADIENT && open->turns[0].computation == INPUT_GRADIENT))
        add_cell(row, cell);
    else if (computation != open->turns[0].computation)
        make_whole(row);
    note_made(reading, task, &cell);
}

/* What a copy writes has the maker of what it reads.  But a send takes a gradient to the stage before, so there the
 * stage of the maker is one less.  And once an activation has been sent, its maker counts as unknown: the stage of its
 * reader follows from forward_was_sent. */
static void carry_maker(struct list_reading *reading, const struct task *task)
{
    struct maker *to = &reading->makers[copy_target(task)->storage->id];
    *to = reading->makers[copy_source(task)->storage->id];
    if (task->role != ROLE_SEND || !to->is_known || to->is_sent)
        return;
    if (to->is_forward)
        reading->forward_was_sent[to->micro] = true;
    else
        to->stage--;
    to->is_known = !to->is_forward && to->stage >= 0;
    to->is_sent = true;
}

/* Adds what the task does to the rows.  Tasks of other roles, such as updates, are in no schedule. */
static void read_task(struct list_reading *reading, const struct task *task)
{
    const struct maker *overlapped = NULL;
    if (task->role == ROLE_BACKWARD)
        overlapped = maker_read_by(reading, task, OTHER_MICRO);
    if (is_copy(task))
        carry_maker(reading, task);
    else if (task->role == ROLE_FORWARD || overlapped)
        add_forward_turn(reading, task, overlapped);
    else if (task->role == ROLE_BACKWARD)
        add_backward_turn(reading, task);
}

/* Moves the rows into the schedule, and numbers them.  A device without a stage has no row. */
static void move_rows(struct list_reading *reading)
{
    for (int d = 0; d <= reading->list->pool->machine->n_devices; d++) {
        struct row *row = &reading->rows[d];
        if (row->n == 0)
            continue;
        for (size_t i = 0; i < row->n; i++)
            row->cells[i].row = (int)reading->schedule->n;
        GROW(reading->schedule->rows, reading->schedule->cap, reading->schedule->n + 1);
        reading->schedule->rows[reading->schedule->n++] = *row;
    }
}

struct schedule *new_schedule_of_list(const char *name, const struct list *list)
{
    struct list_reading reading = {.list = list, .schedule = allocate(1, sizeof *reading.schedule)};
    reading.schedule->name = name;
    reading.makers = allocate(list->pool->n, sizeof *reading.makers);
    reading.rows = allocate_each(list->pool->machine->n_devices + 1, sizeof *reading.rows);
    reading.device_of_stage = allocate(MOST_STAGES, sizeof *reading.device_of_stage);
    reading.forward_stage = allocate(MOST_MICROS, sizeof *reading.forward_stage);
    reading.forward_was_sent = allocate(MOST_MICROS, sizeof *reading.forward_was_sent);
    fill_none(reading.device_of_stage, MOST_STAGES);
    fill_none(reading.forward_stage, MOST_MICROS);
    for (size_t i = 0; i < list->n; i++)
        read_task(&reading, list->tasks[i]);
    move_rows(&reading);
    if (reading.schedule->n == 0)
        fail(EXIT_USAGE, "%s: no task is a forward or a backward: it has no schedule", name);
    index_cells(reading.schedule);
    free(reading.makers);
    free(reading.rows);
    free(reading.device_of_stage);
    free(reading.forward_stage);
    free(reading.forward_was_sent);
    return reading.schedule;
}
