/* schedule_follow.c - can each cell's turn come?  A device takes its cells one after another, and each waits for:
 *
 *     2F3      1F3, the stage before it                  none on the first stage
 *     2I3      3I3, the stage after it                   on the last stage its forward
 *     2W3      2I3                                       a B needs what an I needs, and does both
 */
#include "schedule.h"

struct following {
    const struct schedule *schedule;
    enum head_weights head;
    size_t *next; /* by row: the first cell that has not been done */
    bool *done;   /* by row: true: it did a cell in this round */
};

/* Has the cell that does the turn been done? */
static bool is_done(const struct following *following, const struct turn *turn)
{
    const struct turn_cell *cell = cell_of(following->schedule, turn->computation, turn->stage, turn->micro);
    return cell < following->schedule->rows[cell->row].cells + following->next[cell->row];
}

/* *need becomes a turn that the cell still waits for.  Returns false if it waits for none. */
static bool find_unmet(const struct following *following, const struct turn_cell *cell, struct turn *need)
{
    struct turn needs[MOST_NEEDS];
    for (const struct turn *turn = cell->turns; turn < cell->turns + cell->n; turn++) {
        int n = turn_needs(turn, following->schedule->stages - 1, following->head, needs);
        for (int i = 0; i < n; i++) {
            *need = needs[i];
            if (!is_done(following, need))
                return true;
        }
    }
    return false;
}

/* The cell that the row does next; NULL: it has done all. */
static const struct turn_cell *cell_to_do(const struct following *following, size_t row)
{
    if (following->next[row] == following->schedule->rows[row].n)
        return NULL;
    return &following->schedule->rows[row].cells[following->next[row]];
}

/* No row can go on, since each waits for a cell of another row, or a later one of its own.  A walk from each row to the
 * row that it waits for ends among rows that wait in a ring. */
static _Noreturn void fail_in_ring(const struct following *following)
{
    struct turn need;
    size_t row = 0;
    while (!cell_to_do(following, row))
        row++;
    for (size_t i = 0; i < following->schedule->n; i++) {
        find_unmet(following, cell_to_do(following, row), &need);
        row = (size_t)cell_of(following->schedule, need.computation, need.stage, need.micro)->row;
    }
    const struct turn_cell *cell = cell_to_do(following, row);
    find_unmet(following, cell, &need);
    const struct turn_cell *wanted = cell_of(following->schedule, need.computation, need.stage, need.micro);
    if (wanted == cell)
        fail_in_cell(following->schedule, cell, "its backward waits for its forward, so they cannot overlap");
    if (wanted->row == cell->row)
        fail_in_cell(following->schedule, cell, "it waits for ever for \"%s\", which comes after it in its row",
                     cell_text(wanted));
    const struct turn_cell *other = cell_to_do(following, (size_t)wanted->row);
    fail_in_cell(following->schedule, cell,
                 "it waits for ever for \"%s\", since what comes before that waits too: \"%s\" of %s",
                 cell_text(wanted), cell_text(other), cell_place(other));
}

static struct following begin_following(const struct schedule *schedule, enum head_weights head)
{
    return (struct following){.schedule = schedule,
                              .head = head,
                              .next = allocate(schedule->n, sizeof(size_t)),
                              .done = allocate(schedule->n, sizeof(bool))};
}

static void free_following(struct following *following)
{
    free(following->next);
    free(following->done);
}

/* A round: each row does its next cell if what this cell needs was done in an earlier round.  Returns how many rows did
 * one. */
static size_t do_round(struct following *following)
{
    struct turn need;
    size_t n = 0;
    for (size_t row = 0; row < following->schedule->n; row++) {
        const struct turn_cell *cell = cell_to_do(following, row);
        following->done[row] = cell && !find_unmet(following, cell, &need);
        n += following->done[row];
    }
    if (n == 0)
        fail_in_ring(following);
    for (size_t row = 0; row < following->schedule->n; row++)
        following->next[row] += following->done[row];
    return n;
}

static size_t count_cells(const struct schedule *schedule)
{
    size_t n = 0;
    for (size_t row = 0; row < schedule->n; row++)
        n += schedule->rows[row].n;
    return n;
}

const struct turn_cell **order_cells(const struct schedule *schedule, enum head_weights head, size_t *n)
{
    struct following following = begin_following(schedule, head);
    size_t total = count_cells(schedule);
    const struct turn_cell **all = allocate(total, sizeof(struct turn_cell *));
    *n = 0;
    while (*n < total) {
        do_round(&following);
        for (size_t row = 0; row < schedule->n; row++)
            if (following.done[row]) {
                all[*n] = &schedule->rows[row].cells[following.next[row] - 1];
                (*n)++;
            }
    }
    free_following(&following);
    return all;
}

void refuse_if_waits_are_endless(const struct schedule *schedule, enum head_weights head)
{
    struct following following = begin_following(schedule, head);
    size_t left = count_cells(schedule);
    while (left > 0)
        left -= do_round(&following);
    free_following(&following);
}

/* PyTorch keeps the losses of the last stage in the order in which its forwards come, and backwards take a loss by the
 * number of their micro-batch. */
void refuse_if_wrong_in_pytorch(const struct schedule *schedule)
{
    int due = 0;
    for (size_t i = 0; i < schedule->n_turns; i++) {
        const struct turn *turn = schedule->turns[i].turn;
        if (turn->computation != FORWARD || turn->stage != schedule->stages - 1)
            continue;
        if (turn->micro != due)
            fail_in_cell(
                schedule, schedule->turns[i].cell,
                "on the last stage PyTorch takes this forward for that of micro-batch %d, and trains something "
                "else without a word: there forwards must come in ascending order",
                due);
        due++;
    }
}
