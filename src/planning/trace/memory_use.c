/* memory_use.c - what tensors hold on each device over time, by the clock.
 *
 * A tensor has a life in each step: from the start of the first of its tasks to the end of the last one.  Lives give
 * changes, by which more bytes are held or fewer, and changes in order of time give amounts.  In a step that is not
 * whole yet, a life goes on while tasks of its tensor are still to come.
 *
 * New records change the lives in their steps.  No change before these steps is new, so amounts up to there stay.  The
 * amounts after that are made again, from all steps that go on there.
 */
#include "near.h"
#include "trace.h"

#define OPEN UINT64_MAX /* the end of a life that goes on */
struct tensor_life {    /* the time in which a tensor is held in a step */
    uint64_t start, end;
    uint32_t ended; /* how many of its tasks have ended; 0: there is no life in this step */
};
struct memory_change { /* more or fewer bytes of a class are held on a device */
    uint64_t clock;
    uint64_t bytes; /* bytes that are added; fewer bytes wrap, and the sum is right */
    uint32_t device, class;
};
struct memory_changes {
    struct memory_change *changes;
    size_t n, cap;
};

/* At one clock the order does not matter: the changes make one amount. */
static int by_clock(const void *left, const void *right)
{
    const struct memory_change *a = left;
    const struct memory_change *b = right;
    return COMPARE(a->clock, b->clock);
}

/* Fills lives[0 .. n), those of a tensor in these steps of its list. */
static void fill_lives(const struct trace *trace, const struct trace_tensor *tensor, const struct trace_step *steps,
                       size_t n, struct tensor_life *lives)
{
    memset(lives, 0, n * sizeof *lives);
    for (size_t use = tensor->first_use; use < (size_t)tensor->first_use + tensor->n_uses; use++) {
        const struct runs *runs = &trace->runs[trace->uses[use]];
        size_t k = 0;
        size_t before = n;
        /* the steps of runs ascend, as `steps` do */
        for (size_t i = count_runs(trace, trace->uses[use], steps->step, 0); i < runs->n; i++) {
            const struct trace_record *record = &trace->records[runs->record[i]];
            while (k < n && steps[k].step < record->step)
                k++;
            if (k == n || steps[k].step != record->step)
                continue;
            struct tensor_life *life = &lives[k];
            life->start = life->ended ? MIN(life->start, record->start) : record->start;
            life->end = MAX(life->end, record->end);
            if (k != before)
                life->ended++;
            before = k;
        }
    }
    for (size_t k = n; k > 0 && steps[k - 1].step > trace->whole_step; k--)
        if (lives[k - 1].ended < tensor->n_uses)
            lives[k - 1].end = OPEN;
}

/* The first clock at which something happens in a step that goes on at `from`, or that was not whole before. */
static uint64_t first_change(const struct trace *trace, uint64_t from)
{
    uint64_t clock = from;
    for (size_t list = 0; list < TRACE_LISTS; list++)
        for (size_t k = 0; k < trace->steps[list].n; k++) {
            const struct trace_step *step = &trace->steps[list].items[k];
            if (step->end >= from || step->step > trace->memory_use_step)
                clock = MIN(clock, step->start);
        }
    return clock;
}

/* The clock from which amounts are made again, when records from `first` on are new. */
static uint64_t find_start(const struct trace *trace, size_t first)
{
    if (first == 0)
        return 0;
    return first_change(trace, first < trace->n_records ? trace->records[first].start : UINT64_MAX);
}

static void add_amount(struct memory_use *use, struct amount amount)
{
    GROW(use->amounts, use->cap, use->n + 1);
    use->amounts[use->n++] = amount;
}

/* Removes the amounts from `from` on.  At 0 each device gets a first one: what is kept across all steps. */
static void forget_amounts(struct trace *trace, uint64_t from)
{
    const struct trace_header *header = &trace->header;
    for (struct memory_use *use = trace->memory_use; use < trace->memory_use + header->n_devices; use++) {
        while (use->n && use->amounts[use->n - 1].clock >= from)
            use->n--;
        if (from == 0)
            add_amount(use, (struct amount){.clock = 0});
    }
    if (from > 0)
        return;
    for (const struct trace_tensor *tensor = trace->tensors; tensor < trace->tensors + header->n_tensors; tensor++)
        if (tensor->n_uses == 0)
            trace->memory_use[tensor->device].amounts->bytes[tensor->class] += tensor->bytes;
}

static void add_change(struct memory_changes *all, struct memory_change change)
{
    GROW(all->changes, all->cap, all->n + 1);
    all->changes[all->n++] = change;
}

/* Adds the changes from `from` on that come from n lives of a tensor.  All its lives have the same bytes: one ends when
 * the next begins, so they are walked from the last. */
static void add_changes(struct memory_changes *all, const struct trace_tensor *tensor, const struct tensor_life *lives,
                        size_t n, uint64_t from)
{
    uint64_t next = OPEN;
    for (size_t i = n; i-- > 0;) {
        const struct tensor_life *life = &lives[i];
        uint64_t end = MAX(life->start, MIN(life->end, next));
        struct memory_change change = {
            .clock = life->start, .bytes = tensor->bytes, .device = tensor->device, .class = tensor->class};
        if (life->ended == 0)
            continue;
        if (life->start >= from)
            add_change(all, change);
        if (end != OPEN && end >= from) {
            change.clock = end;
            change.bytes = -tensor->bytes;
            add_change(all, change);
        }
        next = life->start;
    }
}

/* The first step of a list that goes on at `from`, or was not whole before. */
static size_t first_open_step(const struct trace *trace, const struct trace_step_list *steps, uint64_t from)
{
    size_t k = 0;
    while (k < steps->n && steps->items[k].end < from && steps->items[k].step <= trace->memory_use_step)
        k++;
    return k;
}

/* By how much the bytes of tensors change from that clock on, sorted by clock; the caller frees `changes`. */
static struct memory_changes collect_changes(const struct trace *trace, uint64_t from)
{
    struct memory_changes all = {NULL, 0, 0};
    struct tensor_life *lives = NULL;
    size_t cap = 0;
    size_t first[TRACE_LISTS];
    for (size_t list = 0; list < TRACE_LISTS; list++)
        first[list] = first_open_step(trace, &trace->steps[list], from);
    for (size_t i = 0; i < trace->header.n_tensors; i++) {
        const struct trace_tensor *tensor = &trace->tensors[i];
        const struct trace_step_list *steps = &trace->steps[tensor->list];
        size_t k = first[tensor->list];
        size_t n = steps->n - k;
        if (tensor->n_uses == 0 || n == 0)
            continue;
        GROW(lives, cap, n);
        fill_lives(trace, tensor, &steps->items[k], n, lives);
        add_changes(&all, tensor, lives, n, from);
    }
    free(lives);
    SORT(all.changes, all.n, by_clock);
    return all;
}

static uint64_t sum_amount(const struct amount *amount)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < TRACE_CLASSES; i++)
        sum += amount->bytes[i];
    return sum;
}

/* Updates the sums of the amounts from index i on, and the blocks that have such amounts. */
static void update_sums(struct memory_use *use, size_t i)
{
    size_t first = i / AMOUNTS_IN_BLOCK * AMOUNTS_IN_BLOCK;
    GROW(use->sums, use->cap_sums, use->n);
    GROW(use->blocks, use->cap_blocks, ceil_div(use->n, AMOUNTS_IN_BLOCK));
    for (; i < use->n; i++)
        use->sums[i] = (struct amount_sum){use->amounts[i].clock, sum_amount(&use->amounts[i])};
    for (i = first; i < use->n; i++) {
        struct amount_sum *block = &use->blocks[i / AMOUNTS_IN_BLOCK];
        if (i % AMOUNTS_IN_BLOCK == 0)
            *block = use->sums[i];
        block->sum = MAX(block->sum, use->sums[i].sum);
    }
}

void update_memory_use(struct trace *trace, size_t first)
{
    uint32_t n_devices = trace->header.n_devices;
    uint64_t from = find_start(trace, first);
    forget_amounts(trace, from);
    /* By device: the last of the amounts that stay, which may yet be changed. */
    size_t *last_amount = allocate(n_devices, sizeof *last_amount);
    for (uint32_t i = 0; i < n_devices; i++)
        last_amount[i] = trace->memory_use[i].n - 1;
    struct memory_changes all = collect_changes(trace, from);
    for (size_t i = 0; i < all.n; i++) {
        const struct memory_change *change = &all.changes[i];
        struct memory_use *use = &trace->memory_use[change->device];
        struct amount last = use->amounts[use->n - 1];
        if (last.clock < change->clock)
            add_amount(use, last);
        use->amounts[use->n - 1].clock = change->clock;
        use->amounts[use->n - 1].bytes[change->class] += change->bytes;
    }
    for (uint32_t i = 0; i < n_devices; i++)
        update_sums(&trace->memory_use[i], last_amount[i]);
    trace->memory_use_step = trace->whole_step;
    free(last_amount);
    free(all.changes);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static bool begins_up_to(const void *item, const void *key)
{
    const struct amount_sum *sum = item;
    const uint64_t *clock = key;
    return sum->clock <= *clock;
}

size_t next_amount(const struct memory_use *use, size_t i, uint64_t clock)
{
    size_t n_blocks = ceil_div(use->n, AMOUNTS_IN_BLOCK);
    size_t block = lower_bound_near(i / AMOUNTS_IN_BLOCK + 1, &clock, use->blocks, n_blocks, sizeof *use->blocks,
                                    begins_up_to); /* the first that begins after the clock */
    size_t low = MAX(i, (block - 1) * AMOUNTS_IN_BLOCK);
    size_t high = MIN(block * AMOUNTS_IN_BLOCK, use->n);
    return lower_bound_within(&clock, use->sums, low, high, sizeof *use->sums, begins_up_to);
}

const struct amount *amount_at(const struct memory_use *use, uint64_t clock)
{
    return &use->amounts[next_amount(use, 0, clock) - 1];
}

/* The first amount of the block whose sum is that of the block. */
static size_t most_of_block(const struct memory_use *use, size_t block)
{
    size_t i = block * AMOUNTS_IN_BLOCK;
    while (use->sums[i].sum < use->blocks[block].sum)
        i++;
    return i;
}

const struct amount *most_held(const struct memory_use *use, size_t from, size_t end)
{
    size_t most = from;
    for (size_t i = from; i < end;) {
        bool whole = i % AMOUNTS_IN_BLOCK == 0 && i + AMOUNTS_IN_BLOCK <= end;
        size_t block = i / AMOUNTS_IN_BLOCK;
        if (whole && use->blocks[block].sum > use->sums[most].sum)
            most = most_of_block(use, block);
        else if (!whole && use->sums[i].sum > use->sums[most].sum)
            most = i;
        i += whole ? AMOUNTS_IN_BLOCK : 1;
    }
    return &use->amounts[most];
}

uint64_t most_bytes_held(const struct memory_use *use)
{
    uint64_t peak = 0;
    for (size_t block = 0; block * AMOUNTS_IN_BLOCK < use->n; block++)
        peak = MAX(peak, use->blocks[block].sum);
    return peak;
}

static int largest_first(const void *left, const void *right)
{
    const struct trace_tensor *a = *(struct trace_tensor *const *)left;
    const struct trace_tensor *b = *(struct trace_tensor *const *)right;
    return BY(b->bytes, a->bytes, COMPARE(a, b));
}

/* Does the device hold the tensor at that clock? */
static bool is_alive(const struct trace *trace, const struct trace_tensor *tensor, uint64_t clock)
{
    const struct trace_step_list *steps = &trace->steps[tensor->list];
    bool alive = !tensor->n_uses;
    for (size_t k = 0; k < steps->n && !alive; k++) {
        const struct trace_step *step = &steps->items[k];
        struct tensor_life life;
        if (step->start > clock || (step->end <= clock && step->step <= trace->whole_step))
            continue;
        fill_lives(trace, tensor, step, 1, &life);
        alive = life.ended && life.start <= clock && life.end > clock;
    }
    return alive;
}

size_t tensors_alive_at(const struct trace *trace, uint32_t device, uint64_t clock,
                        const struct trace_tensor ***tensors)
{
    size_t n = 0, cap = 0;
    *tensors = NULL;
    for (size_t i = 0; i < trace->header.n_tensors; i++) {
        const struct trace_tensor *tensor = &trace->tensors[i];
        if (tensor->device == device && is_alive(trace, tensor, clock)) {
            GROW(*tensors, cap, n + 1);
            (*tensors)[n++] = tensor;
        }
    }
    SORT(*tensors, n, largest_first);
    return n;
}
