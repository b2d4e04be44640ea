/* test_depend_random.c - random lists of tasks: whatever their order on the lanes, they give the bits of running one
 * task after another.
 *
 * It tests depend(), place(), verify_list(), execute() and new_uses().  For each list it checks that verify_list()
 * finds the list sound; that verify_list() refuses it without any one of its waits; that its addresses keep the laws of
 * addresses; and that its runs with threads, also under the audit, leave the same bits as its serial run.  It catches a
 * race that only one list in a hundred shows.
 *
 * To see it fail: in choose_waits() of waits.c, take each wait for one that follows from others: `tracked` alone.
 *
 * A list has 10 to 34 tasks, which are drawn from a seed: kernels, copies, moves and host tasks on two devices and the
 * host, in any order that reads only what has been written.
 */
#include "planning/pass/uses.h"
#include "planning/predict/predict.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_schedule.h"
#include "trainer/train/train.h"

#include <time.h>

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* Positions of the first and last task that touch the root tensor; lists are short. */
static bool find_life(const struct list *list, const struct tensor *tensor, int *first, int *last)
{
    *first = -1;
    for (size_t i = 0; i < list->n; i++)
        for (int k = 0; k < list->tasks[i]->n_accesses; k++)
            if (list->tasks[i]->accesses[k].tensor->storage == tensor) {
                *first = *first < 0 ? (int)i : *first;
                *last = (int)i;
            }
    return *first >= 0;
}

static void expect_apart(const struct list *list, const struct tensor *a, const struct tensor *b)
{
    int first_a, last_a, first_b, last_b;
    bool overlap = a->device == b->device && a->slab == b->slab && a->address < b->address + b->bytes &&
                   b->address < a->address + a->bytes;
    if (!overlap || !find_life(list, a, &first_a, &last_a) || !find_life(list, b, &first_b, &last_b))
        return;
    bool meet = first_a <= last_b && first_b <= last_a;
    if (a->persistent || b->persistent || meet)
        test_failed("tensors %s (tasks %d to %d) and %s (tasks %d to %d) share bytes\n", a->name, first_a, last_a,
                    b->name, first_b, last_b);
}

/* Checks what always holds of addresses.  Returns the bytes that the arenas need, guards included. */
static size_t check_addresses(const struct pool *pool, const struct list *list)
{
    size_t need[MOST_DEVICES + 1][SLABS_PER_DEVICE] = {{0}}, sum = 0;
    for (size_t i = 0; i < pool->n; i++) {
        const struct tensor *tensor = pool->tensors[i];
        if (tensor->storage != tensor || tensor->slab < 0)
            continue;
        assert_below(tensor->slab, SLABS_PER_DEVICE);
        assert_int_equal(tensor->address % tensor->device->alignment, 0);
        assert_at_most(tensor->address + tensor->bytes, slab_limit(tensor->device));
        size_t *high = &need[tensor->device->index][tensor->slab];
        *high = MAX(*high, round_up(tensor->address + tensor->bytes, tensor->device->alignment) + GUARD_BYTES);
        for (size_t k = 0; k < i; k++)
            if (pool->tensors[k]->storage == pool->tensors[k] && pool->tensors[k]->slab >= 0)
                expect_apart(list, tensor, pool->tensors[k]);
    }
    for (int d = 0; d <= pool->machine->n_devices; d++)
        for (int k = 0; k < SLABS_PER_DEVICE; k++)
            sum += need[d][k];
    return sum;
}

/* The bytes that OpenCL and the host say they gave, guards included. */
static size_t bytes_given(const struct machine *machine)
{
    size_t sum = 0;
    for (int d = 0; d <= machine->n_devices; d++)
        for (size_t k = 0; k < machine->devices[d].n_slabs; k++) {
            const struct slab *slab = &machine->devices[d].slabs[k];
            size_t bytes = slab->bytes + GUARD_BYTES;
            if (slab->buffer)
                CL(clGetMemObjectInfo(slab->buffer, CL_MEM_SIZE, sizeof bytes, &bytes, NULL));
            sum += bytes;
        }
    return sum;
}

/* ---- random lists ------------------------------------------------------------------------------------------------ */

/* Roots of 256 elements, each with two halves as views; kernels, copies, moves and host tasks among them, in any order
 * that reads only what has been written. */
enum { ROOT = 256, KEPT = 2, LEAST_DRAWN = 10, MOST_DRAWN = 34, PLACES = 3 };
enum { MOST_ROOTS = KEPT + MOST_DRAWN }; /* of a place: a task makes one at most */
enum { LEFT, RIGHT, WHOLE, PARTS };
struct root {
    struct tensor *part[PARTS];
    unsigned written; /* halves, as bits */
};
struct mix { /* what a host task mixes, and how long it waits first */
    struct tensor *out, *in;
    uint32_t delay_us;
};
struct world {
    struct pool *pool;
    struct list *list;
    struct draws draws;
    struct root roots[PLACES][MOST_ROOTS];
    int n_roots[PLACES];
    struct mix mixes[MOST_DRAWN];
    int n_mixes;
};

static unsigned draw(struct world *world, unsigned below) { return (unsigned)draw_below(&world->draws, below); }

static struct device *place_of(const struct world *world, int place) { return &world->pool->machine->devices[place]; }

/* The halves of a root that a part has, a bit each. */
static unsigned halves_of(unsigned part)
{
    static const unsigned halves[PARTS] = {1, 2, 1 | 2};
    return halves[part];
}

static struct root *new_root(struct world *world, int place, enum lifetime lifetime)
{
    struct root *root = &world->roots[place][world->n_roots[place]];
    char name[16];
    char letter = "ABH"[place];
    snprintf(name, sizeof name, "%c%d", letter, world->n_roots[place]);
    world->n_roots[place]++;
    struct tensor *tensor = new_array(world->pool, place_of(world, place), name, ROOT, lifetime);
    root->part[WHOLE] = tensor;
    for (int half = 0; half < 2; half++)
        root->part[half] = new_view(world->pool, tensor, name, (size_t)half * ROOT / 2, SHAPE(ROOT / 2));
    root->written = lifetime == PERSISTENT ? halves_of(WHOLE) : 0;
    return root;
}

/* A part to read, of the latest few roots, so that lifetimes end. */
static struct tensor *pick_read(struct world *world, int place, unsigned part)
{
    unsigned need = halves_of(part);
    for (int tries = 0; tries < 8; tries++) {
        int n = world->n_roots[place], i = (int)draw(world, n < 6 ? (unsigned)n : 6);
        struct root *root = &world->roots[place][draw(world, 3) ? n - 1 - i : i % KEPT];
        if ((root->written & need) == need)
            return root->part[part];
    }
    return world->roots[place][0].part[part];
}

static struct root *pick_write(struct world *world, int place)
{
    return draw(world, 3) ? new_root(world, place, TRANSIENT)
                          : &world->roots[place][draw(world, (unsigned)world->n_roots[place])];
}

static void run_mix(void *context, const struct task *task, uint32_t iteration)
{
    (void)task;
    const struct mix *mix = context;
    const float *in = tensor_memory(mix->in);
    float *out = tensor_memory(mix->out);
    nanosleep(&(struct timespec){.tv_nsec = mix->delay_us * 1000}, NULL);
    for (size_t i = 0; i < count_elements(mix->out); i++)
        out[i] = in[i] * 0.5f + (float)iteration;
}

static void add_mix(struct world *world, struct tensor *out, struct tensor *in)
{
    static const enum lane_kind lanes[] = {LANE_CPU, LANE_DISK, LANE_REPORT};
    struct mix *mix = &world->mixes[world->n_mixes++];
    *mix = (struct mix){out, in, draw(world, 4) ? 0 : draw(world, 300)};
    struct task *task =
        add_host(world->list, world->pool->machine->host->lanes[lanes[draw(world, 3)]], "mix", run_mix, mix);
    add_access(task, out, ACCESS_WRITE);
    add_access(task, in, ACCESS_READ);
}

/* out <- a, b from one place to another: by the kind of task that can. */
static void add_transport(struct world *world, int to, struct tensor *out, int from, struct tensor *a, struct tensor *b)
{
    int device = from < 2 ? from : to;
    if (from == to && from < 2)
        add_two(world->list, "add", out, a, b);
    else if (from == to)
        add_mix(world, out, a);
    else if (from < 2 && to < 2)
        add_move(world->list, "move", out, a, FOR_MOVES);
    else
        add_copy(world->list, place_of(world, device)->lanes[from < 2 ? LANE_DOWNLOAD : LANE_UPLOAD], "copy", out, a);
}

static void add_random_task(struct world *world)
{
    unsigned choice = draw(world, 5), part = MIN(choice, (unsigned)WHOLE);
    int from = (int)draw(world, PLACES), to = draw(world, 3) ? from : (int)draw(world, PLACES);
    struct tensor *a = pick_read(world, from, part), *b = pick_read(world, from, part);
    if (from == to && from < 2 && draw(world, 2)) {
        if (a->storage != b->storage)
            add_accumulate(world->list, "accumulate", a, b);
        return;
    }
    struct root *out = pick_write(world, to);
    if (out->part[WHOLE] == a->storage || out->part[WHOLE] == b->storage)
        return; /* copies and kernels do not work in place */
    add_transport(world, to, out->part[part], from, a, b);
    out->written |= halves_of(part);
}

static struct world *new_world(struct machine *machine, uint64_t seed)
{
    struct world *world = allocate(1, sizeof *world);
    world->pool = new_pool(machine);
    world->list = new_list(world->pool, "random");
    world->draws = (struct draws){.seed = seed, .row = 2};
    for (int place = 0; place < PLACES; place++)
        for (int i = 0; i < KEPT; i++)
            new_root(world, place, PERSISTENT);
    unsigned n = LEAST_DRAWN + draw(world, MOST_DRAWN - LEAST_DRAWN + 1);
    for (unsigned i = 0; i < n; i++)
        add_random_task(world);
    return world;
}

static void free_world(struct world *world)
{
    drain(world->list);
    free_list(world->list);
    free_pool(world->pool);
    free(world);
}

/* ---- before they run --------------------------------------------------------------------------------------------- */

TEST(random_lists_are_ordered_and_placed)
{
    struct machine *machine = open_two(false);
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct world *world = new_world(machine, seed);
        finish_list(world->list);
        check_addresses(world->pool, world->list);
        expect_sound(lasting("list %d", (int)seed), world->list, NULL);
        expect_waits_needed(world->list, 1);
        free_world(world);
    }
    close_used(machine);
}

/* The position of the last task before `at` that writes bytes of the tensor; NONE: none does. */
static int find_last_write(const struct list *list, const struct tensor *tensor, int at)
{
    int last = NONE;
    for (int i = 0; i < at; i++)
        if (touches_bytes(list->tasks[i], tensor, ACCESS_WRITE))
            last = i;
    return last;
}

/* Compares what the index says of a root before that position with the list itself; returns the bytes held there. */
static int64_t check_root(const struct uses *uses, const struct list *list, const struct root *root, int at)
{
    int last[PARTS];
    for (int part = 0; part < PARTS; part++) {
        last[part] = find_last_write(list, root->part[part], at);
        assert_int_equal(last_write_before(uses, root->part[part], at), last[part]);
    }
    const struct tensor *all = root->part[WHOLE];
    if (is_whole_before(uses, all, at)) {
        assert_int_not_equal(last[LEFT], NONE);
        assert_int_not_equal(last[RIGHT], NONE);
    }

    const struct use_range found = uses_of(uses, all);
    bool always = all->persistent || (all->extra.exclusive == EXCLUSIVE_ALWAYS && found.n);
    bool lives = found.n && found.uses[0].position <= at && at <= found.uses[found.n - 1].position;
    return always || lives ? (int64_t)round_up(all->bytes, all->device->alignment) : 0;
}

/* The uses of tensors follow from the bytes of each task. */
TEST(uses_follow_from_the_bytes_of_each_task)
{
    contexts_joined(); /* else what moves pass through is on the host too */
    struct machine *machine = open_machine(&(struct machine_options){.devices = two_devices()});
    restore_contexts();
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct world *world = new_world(machine, seed);
        struct uses *uses = new_uses(world->list->tasks, world->list->n, world->pool);
        int place = (int)(seed % PLACES);
        for (int i = 0; i < world->n_roots[place]; i++)
            world->roots[place][i].part[WHOLE]->extra.exclusive = (enum exclusive)(i % 3);
        for (int at = 0; at < (int)world->list->n; at++) {
            int64_t sum = 0;
            for (int i = 0; i < world->n_roots[place]; i++)
                sum += check_root(uses, world->list, &world->roots[place][i], at);
            int64_t *held = bytes_held(uses, world->pool, place_of(world, place));
            assert_int_equal(held[at], sum);
            free(held);
        }
        free_uses(uses);
        free_world(world);
    }
    close_used(machine);
}

/* ---- their bits -------------------------------------------------------------------------------------------------- */

enum { ITERATIONS = 5 };

enum way { ON_QUEUES, SERIAL, AUDITED /* which is serial too */ };

/* Runs the list from the same start; returns what persists, all roots in a row. */
static float *run_world(struct world *world, enum way way)
{
    float *kept = allocate((size_t)PLACES * KEPT * ROOT, sizeof *kept), *at = kept;
    for (int place = 0; place < PLACES; place++)
        for (int i = 0; i < KEPT; i++) {
            float *start = random_floats(ROOT, (uint64_t)(place * KEPT + i));
            write_tensor(world->roots[place][i].part[WHOLE], start);
            free(start);
        }
    execution.serial = way != ON_QUEUES;
    execution.serial_runner = way == AUDITED ? &audit_runner : NULL;
    for (uint32_t number = 1; number <= ITERATIONS; number++)
        execute(world->list, number);
    drain(world->list);
    execution = (struct execution){0};
    for (int place = 0; place < PLACES; place++)
        for (int i = 0; i < KEPT; i++, at += ROOT)
            read_tensor(world->roots[place][i].part[WHOLE], at);
    return kept;
}

/* Runs on queues meet in other orders each time: so there are three of them. */
static void check_run(struct world *world, enum way way)
{
    size_t n = (size_t)PLACES * KEPT * ROOT;
    must(finish_lists(world->pool, &world->list, 1));
    float *serial = run_world(world, SERIAL);
    for (int repeat = 0; repeat < (way == ON_QUEUES ? 3 : 1); repeat++) {
        float *other = run_world(world, way);
        char *what = lasting("list %llu, run %d", (unsigned long long)world->draws.seed, repeat);
        expect_same_bits(what, other, serial, n);
        free(other);
    }
    for (int i = 0; i < PLACES; i++)
        assert_int_equal(damaged_guards(place_of(world, i)), 0);
    assert_int_equal(check_addresses(world->pool, world->list), world->pool->machine->allocated);
    assert_int_equal(bytes_given(world->pool->machine), world->pool->machine->allocated);
    free(serial);
}

struct random_lists {
    bool apart; /* the two devices have contexts of their own */
    enum way way;
    uint64_t from, to; /* the lists' seeds */
};

static void run_random_lists(struct random_lists lists)
{
    struct machine *machine = open_two(lists.apart);
    machine->devices[0].max_allocation = GUARD_BYTES + 5 * ROOT * ELEMENT_BYTES; /* in several slabs */
    for (uint64_t seed = lists.from; seed < lists.to; seed++) {
        struct world *world = new_world(machine, seed);
        check_run(world, lists.way);
        free_world(world);
    }
    close_used(machine);
}

TEST(random_lists_give_the_bits_of_serial)
{
    run_random_lists((struct random_lists){.apart = false, .way = ON_QUEUES, .from = 1000, .to = 1100});
    run_random_lists((struct random_lists){.apart = true, .way = ON_QUEUES, .from = 2000, .to = 2060});
}

TEST(random_lists_pass_the_audit)
{
    run_random_lists((struct random_lists){.apart = false, .way = AUDITED, .from = 3000, .to = 3020});
    run_random_lists((struct random_lists){.apart = true, .way = AUDITED, .from = 3020, .to = 3030});
}

TEST(a_serial_run_creates_no_thread)
{
    struct machine *machine = open_two(true);
    struct world *world = new_world(machine, 1000);
    must(finish_lists(world->pool, &world->list, 1));
    free(run_world(world, SERIAL));
    for (int i = 0; i < machine->n_lanes; i++)
        assert_null(machine->lanes[i]->threads);
    free_world(world);
    close_used(machine);
}
