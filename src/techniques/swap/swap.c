/* swap.c - training in less memory than the step would hold: data leaves for the host and comes back in time.
 *
 * Between two tasks that use a tensor lies a *gap*, in which the tensor lies idle.  To swap it is to copy it to the
 * host and to fetch it back before the gap ends.  In between its bytes on the device are free for others.
 *
 *     compute      F0    F1    F2    F3    B3    B2    B1    B0
 *     a0 kept      |===========================================|
 *     a0 swapped   |===========|                       |=======|      held through `out` (F1), from `in` (B1) on
 *     copies             out a0                        in a0
 *
 * State (parameters, and m and v of Adam) has a home.  When state is swapped, its home is the host, and it visits the
 * device for its uses.  Where the host updates parameters, it has their new values, and the device is given these only
 * before its next use (pass/guest.c):
 *
 *     compute      F0    F1    F2    F3    B3    B2    B1    B0          | F0
 *     w0           |=====|                                   |=====|     | |=====
 *     copies    in w0                                     in w0          in w0
 *     host                                                            U0
 *
 * A tensor that each step makes anew, such as a gradient, has no value from its last use to its first use in the next
 * step.  Its bytes are free in between, and nothing is copied.
 *
 * The rule.  A copy starts when its source is written, its lane is free, and the last user of the bytes that it writes
 * to has ended: the edges say so.  The position of the copy in the list decides how long bytes are held.  If a task
 * were given bytes from which a copy still reads, it would wait for that copy.  So a tensor that leaves is held until a
 * little after its copy began, and a tensor that comes back is held from a little before its reader on.
 *
 * The fixed orders, --swap layer and --swap microbatch.  They move every tensor that can leave, whatever the budget is,
 * and the program ends where the result does not fit.  (--swap auto moves only what the budget needs: swap_auto.c.)  A
 * *phase* is what a device computes of one layer, or of one micro-batch, in one direction: forward or backward.
 *
 *     phases       F0    F1    F2    F3    B3    B2    B1    B0
 *     data of 0    made  out                           in    read
 *     data of 1          made  out               in    read
 *
 * A tensor that a forward has made is held through the next phase, while its copy runs.  It comes back during the last
 * backward before its reader's phase, or, if there is no backward in between, during the phase before its reader's.
 * State goes by layers: it leaves at once, and comes back during the phase before its reader's.
 *
 * The rewrite.  swap.out comes right after task `out`, and swap.in right before task `in`.  Tasks that used the tensor
 * from the gap's end on use the new tensor that swap.in writes.
 *
 * Source: "Data movement method, distributed training system, electronic device and storage medium" (2023); of the
 * fixed orders "vDNN: Virtualized Deep Neural Networks for Scalable, Memory-Efficient Neural Network Design" (Rhu et
 * al. 2016).
 */
#include "planning/pass/traits.h"
#include "swap_parts.h"

/* ---- gaps -------------------------------------------------------------------------------------------------------- */

/* Tasks at `begin` and `end` use a tensor, and none between them does.  Is there a gap?  A block (tasks of one layer,
 * micro-batch and role) has none inside.  Between neighbours there is one only from a forward to a backward. */
static bool lies_idle(const struct uses *uses, int begin, int end)
{
    const struct task *first = uses->tasks[begin], *second = uses->tasks[end];
    if (same_block(first, second))
        return false;
    return end - begin > 1 || (first->role == ROLE_FORWARD && second->role == ROLE_BACKWARD);
}

size_t uses_with_gaps(const struct uses *uses, const struct tensor *tensor)
{
    size_t readers = tensor->persistent ? count_guest_uses(uses, tensor) : 0;
    return readers ? readers : uses_of(uses, tensor).n;
}

/* May the task that ends a gap of the tensor come right after the task that begins the gap, such as the norm of a
 * gradient right after the gradient's last writer?  It may if it touches no other tensor that swap moves, since gaps of
 * others would change.  The last writer also has to be on the task's own lane, so that the lane waits for no other. */
static bool may_close(const struct gaps *gaps, const struct tensor *tensor, int end)
{
    const struct uses *uses = gaps->uses;
    const struct task *task = uses->tasks[end];
    for (int i = 0; i < task->n_accesses; i++) {
        const struct tensor *touched = task->accesses[i].tensor->storage;
        if (touched != tensor && may_leave(uses, touched, gaps->classes))
            return false;
    }
    return task->lane == uses->tasks[last_write_before(uses, tensor, end)]->lane;
}

static struct gap *add_gap(struct gaps *gaps, struct tensor *tensor, size_t uses_before, int begin, int end)
{
    const struct use_range found = uses_of(gaps->uses, tensor);
    GROW(gaps->items, gaps->cap, gaps->n + 1);
    struct gap *gap = &gaps->items[gaps->n++];
    *gap = (struct gap){
        .tensor = tensor,
        .device = tensor->device,
        .maker = found.uses[0].task,
        .begin = begin,
        .end = end,
        .uses_before = (int)uses_before,
    };
    return gap;
}

/* A tensor cannot leave before all its bytes have been written: a copy would read what nobody has written. */
static void add_gaps_of(struct gaps *gaps, struct tensor *tensor)
{
    const struct uses *uses = gaps->uses;
    const struct use_range found = uses_of(uses, tensor);
    size_t n = uses_with_gaps(uses, tensor);
    bool renewed = tensor->persistent && is_renewed(uses, tensor);
    if (tensor->persistent) {
        struct gap *gap = add_gap(gaps, tensor, 0, NONE, found.uses[0].position);
        gap->renewed = renewed;
        gap->guest = n < found.n;
    }
    for (size_t i = 1; i < n; i++) {
        int begin = found.uses[i - 1].position, end = found.uses[i].position;
        bool is_state = tensor->persistent && !renewed;
        if (!lies_idle(uses, begin, end) || !(is_state || is_whole_before(uses, tensor, end)))
            continue;
        struct gap *gap = add_gap(gaps, tensor, i, begin, end);
        gap->may_close = renewed && may_close(gaps, tensor, end);
    }
    if (tensor->persistent) {
        struct gap *gap = add_gap(gaps, tensor, n, found.uses[n - 1].position, (int)uses->n);
        gap->renewed = renewed;
    }
}

/* Opens the lanes for copies up before anything is chosen, so that lanes have the same order whatever is chosen. */
static void open_lanes_up(const struct gaps *gaps)
{
    for (size_t i = 0; i < gaps->n; i++)
        lane_for(gaps->list->pool->machine, gaps->items[i].device, LANE_UPLOAD, FOR_SWAP);
}

static int by_begin(const void *left, const void *right)
{
    const struct gap *a = left;
    const struct gap *b = right;
    if (a->begin != b->begin)
        return COMPARE(a->begin, b->begin);
    if (b->end != a->end)
        return COMPARE(b->end, a->end);
    return COMPARE(a->tensor->id, b->tensor->id);
}

struct gaps collect_gaps(struct list *list, const struct costs *costs, unsigned classes)
{
    struct gaps gaps = {.list = list, .bare = forecast_list(list, costs), .classes = classes};
    must(gaps.bare.problem);
    gaps.uses = new_uses(list->tasks, list->n, list->pool);
    for (size_t i = 0; i < gaps.uses->n_tensors; i++) {
        struct tensor *tensor = list->pool->tensors[i];
        if (may_leave(gaps.uses, tensor, classes))
            add_gaps_of(&gaps, tensor);
    }
    open_lanes_up(&gaps);
    SORT(gaps.items, gaps.n, by_begin);
    return gaps;
}

void free_gaps(struct gaps *gaps)
{
    free_forecast(&gaps->bare);
    free_uses(gaps->uses);
    free(gaps->items);
}

struct fate *keep_all(const struct gaps *gaps)
{
    struct fate *fates = allocate(gaps->n + 1, sizeof *fates);
    for (size_t i = 0; i < gaps->n; i++) {
        const struct gap *gap = &gaps->items[i];
        fates[i] = (struct fate){.gap = gap, .action = KEEP_TENSOR, .begin = gap->begin, .end = gap->end};
    }
    return fates;
}

/* ---- the fixed orders -------------------------------------------------------------------------------------------- */

struct phase {
    int first, last; /* positions of its tasks */
    bool backward;
};
struct phases { /* a device's phases, in list order; the caller frees the array */
    struct phase *items;
    int n;
};

enum phase_kind { LAYER_PHASE, MICROBATCH_PHASE };

/* Does the task, which comes after `last` on a device, begin another phase? */
static bool begins_phase(const struct task *last, const struct task *task, enum phase_kind kind)
{
    if (task->role != last->role || task->micro != last->micro)
        return true;
    return kind == LAYER_PHASE && task->layer != last->layer;
}

/* Tasks of the device that follow one another, and of which none begins another phase, are one phase. */
static struct phases collect_phases(const struct uses *uses, const struct device *device, enum phase_kind kind)
{
    struct phases phases = {.items = allocate(uses->n + 1, sizeof *phases.items)};
    const struct task *last = NULL;
    for (int i = 0; i < (int)uses->n; i++) {
        const struct task *task = uses->tasks[i];
        int number = kind == LAYER_PHASE ? task->layer : task->micro;
        if (task->lane != device->lanes[LANE_COMPUTE] || number < 0)
            continue;
        if (!last || begins_phase(last, task, kind)) {
            phases.items[phases.n] = (struct phase){.first = i, .backward = task->role == ROLE_BACKWARD};
            phases.n++;
        }
        phases.items[phases.n - 1].last = i;
        last = task;
    }
    return phases;
}

/* The first phase that ends at this position or after it; phases->n: none. */
static int phase_at(const struct phases *phases, int position)
{
    int i = 0;
    while (i < phases->n && phases->items[i].last < position)
        i++;
    return i;
}

/* Sets fate->in: the tensor comes back at the beginning of phase `back`, but not before the gap begins.  If
 * `back` is -1, or the phase ends before the gap begins, the tensor comes back right before its reader. */
static void come_back_during(const struct phases *phases, int back, struct fate *fate)
{
    fate->in = fate->end;
    if (back >= 0 && phases->items[back].last > fate->begin)
        fate->in = MAX(phases->items[back].first, fate->begin + 1);
}

/* State leaves right after its last use, and comes back in the phase before its reader's. */
static void set_state_positions(const struct phases *phases, struct fate *fate, int n_tasks)
{
    fate->out = fate->begin;
    fate->in = fate->end;
    if (fate->end < n_tasks)
        come_back_during(phases, phase_at(phases, fate->end) - 1, fate);
}

/* Sets `out` and `in` of the fate of data.  Returns false if the data has to stay: no forward has made it, or fewer
 * than two phases lie between the phase that made it and its reader's. */
static bool set_data_positions(const struct phases *phases, struct fate *fate)
{
    const struct task *maker = fate->gap->maker;
    int made = phase_at(phases, (int)maker->index);
    int before_reader = phase_at(phases, fate->end) - 1;
    int back = before_reader; /* becomes the last backward before the reader's phase, if there is one after `made` */
    while (back > made && !phases->items[back].backward)
        back--;
    if (back <= made)
        back = before_reader;
    fate->out = fate->begin;
    if (made + 1 < phases->n)
        fate->out = MAX(phases->items[made + 1].last, fate->begin);
    come_back_during(phases, back, fate);
    return fate->in > fate->out && maker->role == ROLE_FORWARD && made + 1 <= back;
}

/* Chooses which tensors of the device are swapped, and when.  Returns false if none is.  fates: one for each gap. */
static bool choose_by_phases(const struct gaps *gaps, struct fate *fates, const struct device *device,
                             enum phase_kind kind)
{
    struct phases data = collect_phases(gaps->uses, device, kind);
    struct phases state = collect_phases(gaps->uses, device, LAYER_PHASE);
    bool any_swapped = false;
    for (struct fate *fate = fates; fate < fates + gaps->n; fate++) {
        if (fate->gap->device != device)
            continue;
        bool swapped = true;
        if (fate->gap->tensor->persistent)
            set_state_positions(&state, fate, (int)gaps->uses->n);
        else
            swapped = set_data_positions(&data, fate);
        fate->action = swapped ? SWAP_TENSOR : KEEP_TENSOR;
        any_swapped |= swapped;
    }
    free(data.items);
    free(state.items);
    return any_swapped;
}

/* ---- the rewrite ------------------------------------------------------------------------------------------------- */

/* Fates with the same begin and end are put in the order of collect_gaps()'s array: a gap that is earlier there has a
 * lower address. */
static int by_end(const void *left, const void *right)
{
    const struct fate *a = *(struct fate *const *)left;
    const struct fate *b = *(struct fate *const *)right;
    if (a->end != b->end)
        return COMPARE(a->end, b->end);
    return BY(a->begin, b->begin, COMPARE(a->gap, b->gap));
}

/* Must a copy take the gap's tensor to the host?  The host has the tensor already in two cases.  Before its first
 * use, the tensor is state, whose home is the host.  Or it was swapped before, and no task has written it since it
 * came back, from the use at earlier->end to the use at `begin`, both included.  (A guest is written only by copies up,
 * and these come after its last gap has begun.) */
static bool is_new_for_host(const struct fate *fate, const struct uses *uses)
{
    if (fate->begin == NONE || fate->gap->renewed)
        return false;
    return !fate->earlier || is_written_between(uses, fate->gap->tensor, fate->earlier->end - 1, fate->begin + 1);
}

struct swaps line_up(struct fate *fates, size_t n, const struct uses *uses)
{
    struct swaps swaps = {.leaving = allocate(n + 1, sizeof(struct fate *))};
    struct fate **last = allocate(uses->n_tensors, sizeof(struct fate *)); /* by tensor: its last swap so far */
    for (struct fate *fate = fates; fate < fates + n; fate++) {
        if (fate->action != SWAP_TENSOR)
            continue;
        size_t tensor = fate->gap->tensor->id;
        fate->earlier = last[tensor];
        fate->sent = is_new_for_host(fate, uses);
        last[tensor] = fate;
        swaps.leaving[swaps.n] = fate;
        swaps.n++;
    }
    free(last);
    swaps.returning = copy_bytes(swaps.leaving, (swaps.n + 1) * sizeof(struct fate *));
    SORT(swaps.returning, swaps.n, by_end);
    return swaps;
}

void free_swaps(struct swaps *swaps)
{
    free(swaps->leaving);
    free(swaps->returning);
}

/* The tensor that the device holds when the gap begins. */
static struct tensor *held_before(const struct fate *fate)
{
    return fate->earlier && fate->earlier->back ? fate->earlier->back : fate->gap->tensor;
}

struct rewrite { /* the list, while swap_gaps() edits it */
    struct edit *edit;
    struct list *list;
    const struct uses *uses; /* those before the edit */
};

/* Makes the tensor of the host that holds the gap's tensor while it is away, and the tensor of the device that holds it
 * after it has come back.  Tasks that used the gap's tensor after the gap then use the second one. */
static void make_tensors(const struct rewrite *rewrite, struct fate *fate)
{
    struct tensor *tensor = fate->gap->tensor;
    struct device *host = rewrite->list->pool->machine->host;
    if (fate->gap->renewed) {
        make_transient(rewrite->edit, tensor);
        return;
    }
    if (tensor->persistent)
        fate->on_host = tensor;
    else if (fate->sent)
        fate->on_host = tensor_like(rewrite->list->pool, host, tensor);
    else
        fate->on_host = fate->earlier->on_host;
    if (fate->end < (int)rewrite->uses->n) {
        fate->back = tensor_like(rewrite->list->pool, fate->gap->device, tensor);
        switch_readers(rewrite->edit, rewrite->uses, tensor, fate->end, held_before(fate), fate->back);
    }
    if (tensor->persistent && !fate->earlier)
        set_home(rewrite->edit, tensor, host);
}

/* New tasks come right after the task at `position` (NONE: they begin the list), with the layer and micro-batch of the
 * task that made the gap's tensor. */
static void insert_for(const struct rewrite *rewrite, int position, const struct gap *gap)
{
    insert_behind(rewrite->edit, position == NONE ? rewrite->list->extra.sentinel : rewrite->uses->tasks[position]);
    tag_tasks(rewrite->list, gap->maker->layer, gap->maker->micro, ROLE_SWAP);
}

/* Copies are inserted from the last to the first: each comes right after its task, before the copies that have been
 * inserted there.  Where one tensor leaves and another comes back, swap.out comes first, so it is inserted last. */
void swap_gaps(struct edit *edit, struct list *list, const struct uses *uses, const struct swaps *swaps)
{
    const struct rewrite rewrite = {edit, list, uses};
    for (size_t k = 0; k < swaps->n; k++)
        make_tensors(&rewrite, swaps->leaving[k]);
    for (size_t k = swaps->n; k-- > 0;) {
        const struct fate *fate = swaps->returning[k];
        if (!fate->back)
            continue;
        CHECK(fate->out < fate->in, "tensor %s leaves after task %d, and comes back before task %d", fate->back->name,
              fate->out, fate->in);
        insert_for(&rewrite, fate->in - 1, fate->gap);
        add_copy_for(list, "swap.in", fate->back, fate->on_host, FOR_SWAP);
    }
    for (size_t k = swaps->n; k-- > 0;) {
        struct fate *fate = swaps->leaving[k];
        if (!fate->sent)
            continue;
        insert_for(&rewrite, fate->out, fate->gap);
        fate->copy_out = add_copy_for(list, "swap.out", fate->on_host, held_before(fate), FOR_SWAP);
    }
    for (size_t k = 0; k < swaps->n; k++)
        if (swaps->leaving[k]->gap->guest)
            drop_mirrors(edit, uses, swaps->leaving[k]->gap->tensor);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

bool swap_by_phases(struct list *list, const struct costs *costs, const struct swap_options *options,
                    const struct run_facts *facts, struct pass_report *report)
{
    static const char why_not[] =
        "nothing can leave, since fewer than two other phases run between each forward and its backward";
    struct machine *machine = list->pool->machine;
    enum phase_kind kind = options->mode == SWAP_LAYER ? LAYER_PHASE : MICROBATCH_PHASE;
    struct gaps gaps = collect_gaps(list, costs, options->may_leave);
    struct fate *fates = keep_all(&gaps);
    bool changed = false;
    for (int i = 0; i < machine->n_devices; i++)
        changed |= choose_by_phases(&gaps, fates, &machine->devices[i], kind);
    struct swaps swaps = line_up(fates, gaps.n, gaps.uses);
    struct edit *edit = open_edit(list);
    swap_gaps(edit, list, gaps.uses, &swaps);
    commit_edit(edit);
    report_gaps(&gaps, fates, costs, changed ? NULL : why_not, report);
    free_swaps(&swaps);
    free(fates);
    free_gaps(&gaps);
    if (!forecast_fits(report->after))
        fail_too_large(machine, report->after, kind == LAYER_PHASE ? "--swap layer" : "--swap microbatch", facts,
                       replanning_of(facts));
    return changed;
}
