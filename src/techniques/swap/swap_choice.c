/* swap_choice.c - what a choice of the search does to the list.
 *
 *     choice   ->  what is made again is put into the list  ->  copies get positions  ->  the rewrite (swap.c)
 *
 * apply_choice() does all of that, and the functions before it do one step each.
 */
#include "swap_search.h"

/* By layout as listed: how long bytes are held for copies, from which the copies' positions follow.  Addresses leave
 * holes between tensors.  A rule counts them as free bytes, so that in a tight budget it may hold more than fits, if it
 * has no margin for them. */
static const struct hold_rule hold_rules[N_LAYOUTS_AS_LISTED] = {
    /* A copy that waits for no other ends in time. */
    [FIRST_LAYOUT] = {.copy_times = 1},
    /* A copy that waits for another one, which takes as long, ends in time. */
    {.copy_times = 2},
    /* The device holds the fewest bytes, but tasks wait for all copies. */
    [LAYOUT_OF_FEWEST_BYTES] = {.copy_times = USES_ALONE},
    /* The link has the most time, for lists in which many copies come at once. */
    {.copy_times = AS_LONG_AS_THERE_IS_ROOM},
    /* The first rule, with a margin for few holes. */
    {.copy_times = 1, .margin = 0.03},
    /* The first rule, with a margin for many holes. */
    {.copy_times = 1, .margin = 0.12},
};

/* ---- the clock's order ------------------------------------------------------------------------------------------- */

/* Does the list send from stage to stage, as a pipeline does? */
static bool has_sends(const struct uses *uses)
{
    size_t i = 0;
    while (i < uses->n && uses->tasks[i]->role != ROLE_SEND)
        i++;
    return i < uses->n;
}

/* An insertion sort, by when tasks begin.  Those behind task i have been sorted. */
static void sort_by_clock(struct swapper *swapper, const struct span *spans)
{
    size_t n = swapper->gaps.uses->n;
    struct task **order = copy_bytes(swapper->gaps.uses->tasks, n * sizeof(struct task *));
    size_t cap = 0;
    for (size_t i = n; i-- > 0;) {
        struct task *task = order[i];
        size_t at = i;
        while (at + 1 < n && spans[order[at + 1]->index].start < spans[task->index].start) {
            order[at] = order[at + 1];
            at++;
        }
        order[at] = task;
        if (at > i) {
            GROW(swapper->moves, cap, swapper->n_moves + 1);
            swapper->moves[swapper->n_moves++] = (struct task_move){task, order[at - 1]};
        }
    }
    free(order);
}

/* Uses a forecast in which tasks wait for data alone.  The list does not fit yet, so waits for bytes that another
 * tensor has had would depend on addresses that the final list does not have. */
void fill_moves(struct swapper *swapper)
{
    if (!has_sends(swapper->gaps.uses))
        return;
    struct forecast forecast = forecast_by_data(swapper->gaps.list, swapper->costs);
    if (forecast.spans)
        sort_by_clock(swapper, forecast.spans);
    free_forecast(&forecast);
}

/* Brings the tasks into the clock's order. */
static void move_tasks(const struct swapper *swapper, struct edit *edit)
{
    for (size_t i = 0; i < swapper->n_moves; i++)
        sink_task(edit, swapper->moves[i].task, swapper->moves[i].behind);
}

/* ---- what a choice does to the list ------------------------------------------------------------------------------ */

/* The action that a choice means for a gap.  Where the chosen action is not possible it is the other one, or, if that
 * is not possible either, KEEP_TENSOR. */
static enum action action_of(const struct swapper *swapper, const struct gap_facts *gap_facts,
                             const option_byte *choice)
{
    size_t decision = gap_facts->decision;
    if (!gap_facts->has_decision || decision >= swapper->admitted || choice[decision] == KEEP_TENSOR)
        return KEEP_TENSOR;
    if (!swapper->may_swap)
        return gap_facts->may_remake ? REMAKE_TENSOR : KEEP_TENSOR;
    return gap_facts->may_remake && choice[decision] == REMAKE_TENSOR ? REMAKE_TENSOR : SWAP_TENSOR;
}

/* Makes all fates anew, with the actions that the choice means.  Once a tensor has been made again, its later gaps are
 * gaps of the repeated task's output, which is kept whatever was chosen for them:
 *
 *     tasks that use x       F0    ...    B3    ...    B1
 *     gap, as chosen             REMAKE_TENSOR       SWAP_TENSOR
 *     action                     REMAKE_TENSOR       KEEP_TENSOR
 *
 * Here B3 is the first reader: remake_tensors() puts F0 before it once more.
 *
 * Returns for each tensor its first reader after it is made again, by position in the list before the edit; NONE: the
 * tensor is not made again.  The caller frees the array. */
static int *set_actions(struct swapper *swapper, const option_byte *choice)
{
    const struct gaps *gaps = &swapper->gaps;
    int *first_reader = allocate(gaps->uses->n_tensors, sizeof *first_reader);
    fill_none(first_reader, gaps->uses->n_tensors);
    for (size_t i = 0; i < gaps->n; i++) {
        const struct gap *gap = &gaps->items[i];
        enum action action = action_of(swapper, &swapper->gap_facts[i], choice);
        int *since = &first_reader[gap->tensor->id];
        if (*since != NONE && *since <= gap->begin)
            action = KEEP_TENSOR;
        if (*since == NONE && action == REMAKE_TENSOR)
            *since = gap->end;
        swapper->fates[i] = (struct fate){.gap = gap, .action = action, .copy_seconds = swapper->gap_facts[i].seconds};
    }
    return first_reader;
}

/* A gap that can close is closed, in place of copies: the task that ends it comes right after the task that begins it.
 * (So a gradient does not come back for its part of the norm.) */
static void close_gaps(struct swapper *swapper, struct edit *edit)
{
    const struct gaps *gaps = &swapper->gaps;
    for (size_t i = 0; i < gaps->n; i++) {
        struct fate *fate = &swapper->fates[i];
        if (fate->action != SWAP_TENSOR || !fate->gap->may_close)
            continue;
        struct task *first = gaps->uses->tasks[fate->gap->begin], *last = gaps->uses->tasks[fate->gap->end];
        if (hoist_task(edit, last, first->next))
            fate->action = KEEP_TENSOR;
    }
}

/* Where the gap begins and ends in the list with the repeated tasks: one of these may use the tensor, and so end the
 * gap. */
static void fill_gap_ends(struct fate *fate, const struct uses *uses, const int *new_position)
{
    size_t n = uses_with_gaps(uses, fate->gap->tensor);
    size_t i = 0;
    const struct use_range found = uses_of(uses, fate->gap->tensor);
    fate->begin = fate->gap->begin == NONE ? NONE : new_position[fate->gap->begin];
    while (i < n && found.uses[i].position <= fate->begin)
        i++;
    fate->end = i < n ? found.uses[i].position : (int)uses->n;
    fate->out = fate->begin;
    fate->in = fate->end;
}

/* By position in the list before the edit: the position in `uses`, the list with the repeated tasks.  The caller frees
 * the array. */
static int *map_positions(const struct gaps *gaps, const struct uses *uses)
{
    int *new_position = allocate(gaps->uses->n + 1, sizeof *new_position);
    for (size_t i = 0; i < uses->n; i++)
        if (uses->tasks[i]->index < gaps->uses->n)
            new_position[uses->tasks[i]->index] = (int)i;
    return new_position;
}

/* When each task of `uses` runs: a task of the list before as it did there, and a repeated one when the task after it
 * begins.  0 where that is not known.  The caller frees the array. */
static struct span *estimate_spans(const struct gaps *gaps, const struct uses *uses)
{
    struct span *spans = allocate(uses->n + 1, sizeof *spans);
    for (size_t i = uses->n; i-- > 0;) {
        size_t old_position = uses->tasks[i]->index;
        spans[i].start = spans[i + 1].start;
        spans[i].end = spans[i].start;
        if (old_position < gaps->uses->n && gaps->bare.spans)
            spans[i] = gaps->bare.spans[old_position];
    }
    return spans;
}

/* A gap that has closed takes no time: the task that ends it begins and ends when the one that begins it has ended. */
static void shrink_closed_gaps(const struct gaps *gaps, const int *new_position, struct span *spans)
{
    for (size_t i = 0; i < gaps->n; i++) {
        if (!gaps->items[i].may_close)
            continue;
        int begin = new_position[gaps->items[i].begin], end = new_position[gaps->items[i].end];
        if (end == begin + 1) {
            spans[end].start = spans[begin].end;
            spans[end].end = spans[begin].end;
        }
    }
}

/* Fills in where the gaps begin and end in the list with the repeated tasks.  Returns when the tasks of this list run,
 * as estimate_spans() does, but with no time for gaps that have closed.  The caller frees the array. */
static struct span *locate_gaps(struct swapper *swapper, const struct uses *uses)
{
    const struct gaps *gaps = &swapper->gaps;
    int *new_position = map_positions(gaps, uses);
    struct span *spans = estimate_spans(gaps, uses);
    for (size_t i = 0; i < gaps->n; i++)
        fill_gap_ends(&swapper->fates[i], uses, new_position);
    shrink_closed_gaps(gaps, new_position, spans);
    free(new_position);
    return spans;
}

/* Puts the repeated tasks into the list, and returns the uses of the list as it is then; the caller frees them. */
static struct uses *remake_chosen(struct swapper *swapper, struct edit *edit, const int *first_reader)
{
    const struct gaps *gaps = &swapper->gaps;
    struct pool *pool = gaps->list->pool;
    struct tensor **twins = remake_tensors(edit, pool, gaps->uses, first_reader, REMAKE_AT_READER);
    for (size_t i = 0; i < gaps->n; i++) {
        struct fate *fate = &swapper->fates[i];
        if (fate->action == REMAKE_TENSOR)
            fate->back = twins[fate->gap->tensor->id];
    }
    size_t n;
    struct task **tasks = tasks_in_order(gaps->list, &n);
    struct uses *uses = new_uses(tasks, n, pool);
    free(twins);
    free(tasks);
    return uses;
}

void apply_choice(void *context, struct edit *edit, const option_byte *choice)
{
    struct swapper *swapper = context;
    struct list *list = swapper->gaps.list;
    const struct machine *machine = list->pool->machine;
    const struct hold_rule *hold = &hold_rules[choice[LAYOUT] % N_LAYOUTS_AS_LISTED];
    bool by_clock = choice[LAYOUT] >= N_LAYOUTS_AS_LISTED;
    if (by_clock)
        move_tasks(swapper, edit);
    int *first_reader = set_actions(swapper, choice);
    close_gaps(swapper, edit);
    struct uses *uses = remake_chosen(swapper, edit, first_reader);
    struct span *spans = locate_gaps(swapper, uses);
    const struct timed_list timed = {list->pool, uses, spans};
    struct swaps swaps = line_up(swapper->fates, swapper->gaps.n, uses);
    if (hold->copy_times > USES_ALONE && swapper->gaps.bare.spans)
        for (int i = 0; i < machine->n_devices; i++)
            set_copy_positions(&machine->devices[i], hold, &timed, &swaps);
    swap_gaps(edit, list, uses, &swaps);
    free(first_reader);
    free(spans);
    free_swaps(&swaps);
    free_uses(uses);
}
