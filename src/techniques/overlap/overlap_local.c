/* overlap_local.c - --overlap local: the step decides, at the end of each layer's backward, where its update runs.
 *
 * The rule.  An update goes to the CPU when the CPU's backlog, what the CPU still has to do, takes no longer than this
 * update on the device.  The backlog is known from when the CPU's updates began and from how long each took the last
 * time.  For an update that the CPU has not done for a while, that time goes back, bit by bit, to the predicted one.
 *
 * The rewrite.  An update that may run on either side is in the list twice, and so is what it changes: parameters and
 * Adam's state are on the device and on the host.  A *choosing task* of the host writes a *side word*.  It says
 * on which side the update runs this time, and whether it ran on the other side before.  All other tasks of this update
 * look at the word first (both: parameters and state):
 *
 *     task                              works when the word says
 *     choose     backward has ended     always: writes the word, which is then copied to the device
 *     fetch      both to the host       CPU, and it was the device before
 *     return     state to the device    device, and it was the CPU before
 *     adamw      on the device          device: the kernel is launched in any case, and ends at once
 *     down       gradients              CPU
 *     adamw      on the host            CPU
 *     up         parameters             CPU
 *
 * list_on_both_sides() does what move_update() of overlap.c does, with three differences.  The host keeps a mirror of
 * Adam's state too.  All copies down come after the task that makes the last of the update's gradients.  And copies
 * have lanes of their own (FOR_CHOSEN).  The choosing task comes right after the task that makes the last gradient, and
 * so before all tasks that look at the word.
 *
 * Why it is right.  If all tasks of the list ran, both sides would compute the same update, and each copy would copy
 * bytes that are the same on both sides.
 *
 *     proved (yard plan --verify)    that list: its addresses, its order, every value; and each task looks at the word
 *                                    of its own step
 *     only tested (test_overlap.c:   a step that leaves a side out leaves old values there, and no task reads these
 *     sides at random)               before fetch or return has made them new
 *     holds always                   the device's parameters are valid after each update; the device's state is valid
 *                                    when the list has been drained (return_state()); before step 1 both are valid on
 *                                    either side
 *
 * overlap_local_plan.c predicts, before the step runs, what the rule will choose.
 *
 * Source: that of overlap.c.
 */
#include "overlap_plan.h"

#include "cl/shared.h" /* brings: side_bit */
#include "trainer/run/run.h"

#include <math.h>
#include <pthread.h>

/* Purposes of lanes, besides those of overlap.h. */
#define FOR_CHOSEN "chosen" /* copies of an update whose side the step chooses at the last moment */
#define FOR_STATE "state"   /* copies of an optimizer's state when its update moves between device and host */

struct side_chooser {                     /* chooses the side of an update */
    struct side_chooser *next;            /* the one of the list's next update; the last one leads to the first */
    host_function *work;                  /* what a slice does on the host */
    double device_takes, cpu_should_take; /* seconds, as predicted */
    uint32_t n_slices;                    /* how many slices the update has on the host */
    bool drawn;                           /* see struct local_rule */
    uint64_t draw_seed, nth; /* nth: its number among the updates of the list; from both follow its random numbers */

    /* guarded by `lock` */
    uint32_t iteration; /* the iteration in which the chooser was asked last */
    bool on_cpu;
    double cpu_takes;                       /* seconds: what it took the CPU the last time */
    bool has_begun;                         /* a slice has begun */
    uint64_t begun;                         /* now_ns() when the first slice began, if one has */
    uint32_t slices_left;                   /* slices that have not ended */
    uint32_t given_to_device, given_to_cpu; /* how often each side was given the update */
    uint32_t side_changes;                  /* how often the update changed sides */
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one for all choosers, since each asks about all others */

/* ---- the rule, in the running step ------------------------------------------------------------------------------- */

/* Seconds that the CPU still needs for all updates that it was given. */
static double sum_backlog(const struct side_chooser *first, uint64_t now)
{
    double sum = 0;
    const struct side_chooser *chooser = first;
    do {
        double done = chooser->has_begun ? 1e-9 * (double)(now - chooser->begun) : 0;
        if (chooser->slices_left)
            sum += fmax(chooser->cpu_takes - done, 0);
        chooser = chooser->next;
    } while (chooser != first);
    return sum;
}

bool goes_to_cpu(double backlog, double device_takes) { return backlog <= device_takes * (1 + SAME_TIME); }

/* In each iteration that is the device's, the time that the CPU took the last time goes back to the predicted one by
 * this part of the difference. */
enum { STEPS_BACK = 8 };

/* Chooses the side for this iteration, and what the CPU is now expected to take. */
static void choose_side(struct side_chooser *chooser, uint32_t iteration)
{
    chooser->iteration = iteration;
    if (chooser->drawn)
        chooser->on_cpu = random_uniform(chooser->draw_seed, STREAM_SIDE, iteration, chooser->nth) < 0.5;
    else
        chooser->on_cpu = goes_to_cpu(sum_backlog(chooser, now_ns()), chooser->device_takes);
    chooser->has_begun = false;
    chooser->slices_left = chooser->on_cpu ? chooser->n_slices : 0;
    if (chooser->on_cpu) {
        chooser->given_to_cpu++;
    } else {
        chooser->given_to_device++;
        chooser->cpu_takes += (chooser->cpu_should_take - chooser->cpu_takes) / STEPS_BACK;
    }
}

/* The choosing task: chooses the side of the update, and writes it to the word, which is access 0.  If it is
 * run again in the same iteration, as by an audit, it chooses no new side. */
static void write_side(void *context, const struct task *task, uint32_t iteration)
{
    struct side_chooser *chooser = context;
    int32_t *word = tensor_memory(task->accesses[0].tensor);
    int32_t before = *word;
    pthread_mutex_lock(&lock);
    bool asked_again = chooser->iteration == iteration;
    if (!asked_again)
        choose_side(chooser, iteration);
    int32_t side = chooser->on_cpu ? SIDE_CPU : SIDE_DEVICE;
    bool changes = before != 0 && !(before & side);
    *word = changes ? side | SIDE_MOVED : side;
    if (changes && !asked_again)
        chooser->side_changes++;
    pthread_mutex_unlock(&lock);
}

/* A slice of an update on the host, which tells the chooser when the update begins and ends. */
static void update_slice(void *context, const struct task *task, uint32_t iteration)
{
    struct side_chooser *chooser = context;
    pthread_mutex_lock(&lock);
    if (!chooser->has_begun)
        chooser->begun = now_ns();
    chooser->has_begun = true;
    pthread_mutex_unlock(&lock);
    chooser->work(NULL, task, iteration);
    pthread_mutex_lock(&lock);
    if (chooser->slices_left) {
        chooser->slices_left--;
        if (chooser->slices_left == 0)
            chooser->cpu_takes = 1e-9 * (double)(now_ns() - chooser->begun);
    }
    pthread_mutex_unlock(&lock);
}

char *describe_sides(const struct list *list)
{
    unsigned cpu = 0;
    unsigned all = 0;
    unsigned moved = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (list->tasks[i]->function != write_side)
            continue;
        const struct side_chooser *chooser = list->tasks[i]->argument;
        cpu += chooser->given_to_cpu;
        all += chooser->given_to_cpu + chooser->given_to_device;
        moved += chooser->side_changes;
    }
    if (all == 0)
        return NULL;
    return format_string("the CPU was given %u of %u updates; before %u of these %u updates the state was copied to "
                         "the other side",
                         cpu, all, moved, all);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

struct both_sides { /* one update, which the list has on its device and on the host */
    const struct update_mover *mover;
    struct side_chooser *chooser;
    const struct costs *costs;
    struct task *update;               /* the device's, which has left the list for the host's */
    struct task *host_update;          /* the first slice of it on the host */
    struct tensor *word, *device_word; /* on the host; its copy on the device */
    enum side expected;
};

/* The task that releases the update, by making the last of its gradients: its side can be chosen after it. */
static struct task *releasing_task(const struct update_mover *mover, const struct task *update)
{
    int position = release_position(mover->uses, update);
    CHECK(position != NONE, "no task of list %s makes a gradient of %s", mover->list->name, update->name);
    return mover->list->tasks[position];
}

/* Does what host_tensor() does, except that the device keeps its state, and gradients wait until the side can be
 * chosen. */
static struct tensor *host_tensor_if_chosen(struct update_mover *mover, const struct task *update,
                                            const struct task *slice, int i)
{
    struct tensor *tensor = slice->accesses[i].tensor;
    if (tensor->device->is_host)
        return tensor;
    if (tensor->class == MEM_OPTIMIZER)
        return part_of_mirror(mover, update->accesses[i].tensor, tensor);
    if (tensor->class == MEM_GRADIENTS)
        return bring_down(mover, tensor, releasing_task(mover, update), update->layer, FOR_CHOSEN);
    return host_tensor(mover, update, slice, i);
}

/* All slices of the update on the host, with their copies.  Returns the first slice. */
static struct task *add_host_updates(struct update_mover *mover, struct task *update)
{
    static const struct transport transport = {.host_tensor = host_tensor_if_chosen, .purpose = FOR_CHOSEN};
    struct update_slices slices = cut_update(mover, update);
    struct task *first = move_slice(mover, update, slices.tasks[0], &transport).update;
    for (size_t k = 1; k < slices.n; k++)
        move_slice(mover, update, slices.tasks[k], &transport);
    free(slices.tasks);
    return first;
}

static struct tensor *new_word(struct list *list, struct device *device)
{
    const struct tensor_form form = {
        .device = device,
        .class = MEM_WORK,
        .name = "side",
        .type = INT32,
        .shape = SHAPE(1),
    };
    struct tensor *word = new_tensor(list->pool, &form);
    word->persistent = true;
    word->extra.is_side_word = true;
    return word;
}

/* From now on the chooser learns when the slice begins and ends. */
static void time_slice(struct both_sides *sides, struct task *slice)
{
    struct side_chooser *chooser = sides->chooser;
    chooser->work = slice->function;
    chooser->n_slices++;
    chooser->cpu_should_take += seconds_alone(sides->costs, slice) / sides->mover->cores;
    slice->function = update_slice;
    slice->argument = chooser;
}

/* The host's tasks, which the list has from position `from` on, work when the CPU is chosen; but not those copies that
 * many updates share. */
static void make_host_conditional(struct both_sides *sides, size_t from)
{
    const struct list *list = sides->mover->list;
    for (size_t i = from; i < list->n; i++) {
        struct task *task = list->tasks[i];
        enum memory_class class = task->accesses[0].tensor->class;
        bool is_slice = task->role == ROLE_UPDATE && task->lane->device->is_host;
        bool is_its_copy = is_copy(task) && (class == MEM_GRADIENTS || class == MEM_PARAMETERS);
        if (is_slice)
            time_slice(sides, task);
        if (is_slice || is_its_copy)
            need_side_bits(task, sides->word, SIDE_CPU, sides->expected == ON_DEVICE ? ASSUME_SKIPPED : ASSUME_RUNS);
    }
}

/* The choosing task, right after the maker of the gradients, and the word's way to the device. */
static void add_side_task(const struct both_sides *sides, struct task *maker)
{
    struct list *list = sides->mover->list;
    struct machine *machine = list->pool->machine;
    insert_behind(sides->mover->edit, maker);
    tag_tasks(list, sides->update->layer, NONE, ROLE_OFFLOAD);
    struct task *task =
        add_host(list, lane_for(machine, machine->host, LANE_FEED, FOR_CONTROL), "choose", write_side, sides->chooser);
    task->extra.argument_bytes = sizeof *sides->chooser; /* it is the task's own */
    add_access(task, sides->word, ACCESS_BOTH);
    for (int i = 0; i < sides->update->n_accesses; i++) /* the task only comes after these */
        if (sides->update->accesses[i].tensor->class == MEM_GRADIENTS)
            add_access(task, sides->update->accesses[i].tensor, ACCESS_READ);
    task->bytes = 0;
    add_copy_for(list, "side", sides->device_word, sides->word, FOR_CONTROL);
}

/* The device's update once more, before the host's.  Its kernel looks at the word itself, which is its last argument:
 * the access that is added to it last. */
static struct task *keep_on_device(const struct both_sides *sides)
{
    insert_before(sides->mover->edit, sides->host_update);
    struct task *device_update = repeat_task(sides->mover->edit, sides->update);
    struct arg *last = &device_update->args[device_update->n_args - 1];
    CHECK(last->kind == ARG_TENSOR && last->access == NONE, "kernel %s has no argument for a side word",
          sides->update->kernel);
    last->access = device_update->n_accesses;
    need_side_bits(device_update, sides->device_word, 0, sides->expected == ON_DEVICE ? ASSUME_RUNS : ASSUME_SKIPPED);
    return device_update;
}

/* Adds the copies of state: tensors that the host mirrors are fetched before both updates, and Adam's state is returned
 * to the device. */
static void move_state(const struct both_sides *sides, struct task *device_update)
{
    struct list *list = sides->mover->list;
    insert_before(sides->mover->edit, device_update);
    list->tags.role = ROLE_OFFLOAD;
    for (int i = 0; i < sides->host_update->n_accesses; i++) {
        struct tensor *part = device_update->accesses[i].tensor;
        struct tensor *on_host = sides->host_update->accesses[i].tensor->storage;
        const struct tensor *mirrored = on_host->extra.mirror.of;
        if (!mirrored)
            continue;
        size_t begin = part->offset - mirrored->offset;
        struct tensor *host = new_range(list->pool, on_host, part->name, begin, begin + part->bytes);
        struct task *fetch = add_copy_for(list, "overlap.fetch", host, part, FOR_STATE);
        need_side_bits(fetch, sides->word, SIDE_CPU | SIDE_MOVED, ASSUME_SKIPPED);
        if (part->class != MEM_OPTIMIZER)
            continue;
        struct task *back = add_copy_for(list, "overlap.return", part, host, FOR_STATE);
        need_side_bits(back, sides->word, SIDE_DEVICE | SIDE_MOVED, ASSUME_SKIPPED);
    }
}

/* Copies the state that the last iteration has left on the host back to the device, by the copies of the list that
 * would return it.  The state is then valid on both sides, so the side words stay as they are. */
static void return_state(struct list *list)
{
    struct task_flight flight = {.iteration = 0}; /* nobody asks for the times */
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        bool returns = (task->extra.condition.needs & SIDE_MOVED) && (task->extra.condition.needs & SIDE_DEVICE);
        if (returns && (side_bits(task) & SIDE_CPU))
            run_alone(list, task, 0, &flight);
    }
}

static void add_chooser(struct local_rule *rule, struct side_chooser *chooser)
{
    struct side_chooser *last = rule->choosers;
    chooser->next = chooser;
    if (last) {
        chooser->nth = last->nth + 1;
        chooser->next = last->next;
        last->next = chooser;
    }
    rule->choosers = chooser;
}

/* Lists the update on both sides.  Each step chooses one, and is expected to choose `expected`. */
static void list_on_both_sides(struct update_mover *mover, struct local_rule *rule, size_t position, enum side expected)
{
    struct list *list = mover->list;
    struct task *update = list->tasks[position];
    struct task *maker = releasing_task(mover, update);
    struct side_chooser *chooser = allocate(1, sizeof *chooser);
    struct both_sides sides = {
        .mover = mover, .chooser = chooser, .costs = rule->survey->costs, .update = update, .expected = expected};
    size_t n_tasks = list->n;
    sides.host_update = add_host_updates(mover, update);
    sides.word = new_word(list, list->pool->machine->host);
    sides.device_word = new_word(list, update->lane->device);
    make_host_conditional(&sides, n_tasks);
    add_side_task(&sides, maker);
    struct task *device_update = keep_on_device(&sides);
    move_state(&sides, device_update);
    chooser->device_takes = seconds_alone(sides.costs, update);
    chooser->cpu_takes = chooser->cpu_should_take;
    chooser->drawn = rule->drawn;
    chooser->draw_seed = rule->draw_seed;
    add_chooser(rule, chooser);
    list->extra.restore_state = return_state;
}

void move_fixed_and_list_others(struct update_mover *mover, struct local_rule *rule, size_t n_fixed,
                                const side_byte *side)
{
    rule->choosers = NULL;
    for (size_t i = 0; i < mover->uses->n; i++) {
        int bucket = rule->survey->buckets.bucket_of[i];
        if (bucket >= (int)n_fixed)
            list_on_both_sides(mover, rule, i, side[bucket]);
        else if (bucket != NONE && side[bucket] != ON_DEVICE)
            move_update(mover, i);
    }
}
