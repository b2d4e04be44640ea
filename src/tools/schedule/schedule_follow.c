/* schedule_follow.c - can each cell's turn come?  A device takes its cells one after another, and each waits for:
 *
 *     2F3      1F3, the stage before it                  none on the first stage
 *     2I3      3I3, the stage after it                   on the last stage its forward
 *     2W3      2I3                                       a B needs what an I needs, and does both
 */
#include "schedule.h"

struct following {
    const struct schedule *s;
    enum head_weights head;
    size_t *next; /* by row: the first cell that has not been done */
    bool *done;   /* by row: has the cell at `next` been done in this round? */
};

/* Has the cell that does the turn been done? */
static bool is_done(const struct following *p, const struct turn *turn)
{
    const struct turn_cell *c = *cell_of(p->s, turn->computation, turn->stage, turn->micro);
    return c < p->s->row[c->row].cell + p->next[c->row];
}

/* *need becomes the turn that a turn waits for.  Returns false if it waits for none. */
static bool find_need(const struct schedule *schedule, const struct turn *turn, struct turn *need)
{
    const int last = schedule->stages - 1;
    *need = *turn;
    if (turn->computation == WEIGHT_GRADIENT) {
        need->computation = INPUT_GRADIENT;
    } else if (turn->computation == FORWARD) {
        need->stage--;
    } else if (turn->stage == last) {
        need->computation = FORWARD;
    } else {
        need->computation = INPUT_GRADIENT;
        need->stage++;
    }
    return need->stage >= 0;
}

/* *need becomes a turn that the cell still waits for.  Returns false if it waits for none. */
static bool find_unmet(const struct following *p, const struct turn_cell *c, struct turn *need)
{
    const int last = p->s->stages - 1;
    for (const struct turn *turn = c->turn; turn < c->turn + c->n; turn++) {
        if (find_need(p->s, turn, need) && !is_done(p, need))
            return true;
        bool weights = turn->computation == BACKWARD || turn->computation == WEIGHT_GRADIENT;
        *need = (struct turn){WEIGHT_GRADIENT, last, turn->micro};
        if (p->head == TIED && weights && turn->stage == 0 && last > 0 && !is_done(p, need))
            return true;
    }
    return false;
}

/* The cell that the row does next; NULL: it has done all. */
static const struct turn_cell *next_cell(const struct following *p, size_t row)
{
    if (p->next[row] == p->s->row[row].n)
        return NULL;
    return &p->s->row[row].cell[p->next[row]];
}

/* No row can go on, since each waits for a cell of another row, or a later one of its own.  A walk from each row to the
 * row that it waits for ends among rows that wait in a ring. */
static _Noreturn void refuse_ring(const struct following *p)
{
    struct turn need;
    size_t row = 0;
    while (!next_cell(p, row))
        row++;
    for (size_t i = 0; i < p->s->n; i++) {
        find_unmet(p, next_cell(p, row), &need);
        row = (size_t)(*cell_of(p->s, need.computation, need.stage, need.micro))->row;
    }
    const struct turn_cell *c = next_cell(p, row);
    find_unmet(p, c, &need);
    const struct turn_cell *wanted = *cell_of(p->s, need.computation, need.stage, need.micro);
    if (wanted == c)
        fail_cell(p->s, c, "its backward waits for its forward, so they cannot overlap");
    if (wanted->row == c->row)
        fail_cell(p->s, c, "it waits for ever for '%s', which comes after it in its row", cell_text(wanted));
    const struct turn_cell *other = next_cell(p, (size_t)wanted->row);
    fail_cell(p->s, c, "it waits for ever for '%s', since what comes before that waits too: '%s' of %s",
              cell_text(wanted), cell_text(other), cell_place(other));
}

/* Goes in rounds: in each of them a row does its next cell if what this cell needs was done in an earlier round. */
const struct turn_cell **order_cells(const struct schedule *schedule, enum head_weights head, size_t *n)
{
    struct following p = {.s = schedule, .head = head};
    struct turn need;
    size_t total = 0;
    p.next = allocate(schedule->n, sizeof *p.next);
    p.done = allocate(schedule->n, sizeof *p.done);
    for (size_t row = 0; row < schedule->n; row++)
        total += schedule->row[row].n;
    const struct turn_cell **all = allocate(total, sizeof(struct turn_cell *));
    *n = 0;
    while (*n < total) {
        const size_t before = *n;
        for (size_t row = 0; row < schedule->n; row++) {
            const struct turn_cell *c = next_cell(&p, row);
            p.done[row] = c && !find_unmet(&p, c, &need);
            if (p.done[row]) {
                all[*n] = c;
                (*n)++;
            }
        }
        for (size_t row = 0; row < schedule->n; row++)
            p.next[row] += p.done[row];
        if (*n == before)
            refuse_ring(&p);
    }
    free(p.next);
    free(p.done);
    return all;
}

/* PyTorch keeps the losses of the last stage in the order in which its forwards come, and backwards take a loss by the
 * number of their micro-batch. */
void refuse_wrong_in_pytorch(const struct schedule *schedule)
{
    int due = 0;
    for (size_t i = 0; i < schedule->n_turns; i++) {
        const struct turn *turn = schedule->turn[i].turn;
        if (turn->computation != FORWARD || turn->stage != schedule->stages - 1)
            continue;
        if (turn->micro != due)
            fail_cell(schedule, schedule->turn[i].cell,
                      "on the last stage PyTorch takes this forward for that of micro-batch %d, and trains something "
                      "else without a word: there forwards come in ascending order",
                      due);
        due++;
    }
}
