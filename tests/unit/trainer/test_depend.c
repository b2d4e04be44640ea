/* test_depend.c - what is decided of a list of tasks before it runs: who waits for whom, and where bytes lie.
 *
 * It tests depend() and place() of src/trainer/step, and what verify() and the audit say of lists that were broken on
 * purpose (more: test_verify.c, test_audit.c).  A wait that is missing, or one too many, two tensors that share bytes
 * while both live, and a budget that is exceeded are found.
 *
 * To see it fail: in note_touch() of depend.c, write EDGE_DATA for EDGE_REUSE in the condition.
 *
 * The edges of the journey (support_schedule.h) were worked out on paper.  Budgets are taken from the sizes of the
 * tensors, in bytes, and from the guards behind them.  (Random lists: test_depend_random.c.  Runs: test_execute.c.)
 */
#include "tests/support/support_schedule.h"
#include "tests/support/support_training.h"

/* ---- depend: edges worked out by hand ---------------------------------------------------------------------------- */

struct expected { /* `to` depends on `from`, of the step before if so said */
    uint32_t to, from;
    enum step_waited previous;
    enum edge_kind kind;
    bool wait; /* WAITED, or IMPLIED by other waits */
};
enum { IMPLIED = false, WAITED = true };

static const struct edge *find_edge(const struct list *list, const struct expected *expected)
{
    const struct task *task = list->tasks[expected->to];
    for (size_t i = 0; i < task->n_edges; i++)
        if (task->edges[i].producer == expected->from && task->edges[i].previous == expected->previous)
            return &task->edges[i];
    return NULL;
}

static void expect_edges(const struct list *list, const struct expected *expected, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const struct edge *edge = find_edge(list, &expected[i]);
        const char *wrong = NULL;
        if (!edge)
            wrong = "there is none";
        else if (edge->kind != expected[i].kind)
            wrong = "the kind differs";
        else if (edge->wait != expected[i].wait)
            wrong = "the wait differs";
        if (wrong)
            test_failed("edge %u -> %u%s: expected kind %d, wait %d; %s\n", expected[i].from, expected[i].to,
                        expected[i].previous ? " (step before)" : "", expected[i].kind, expected[i].wait, wrong);
    }
    for (size_t i = 0; i < list->n; i++)
        found += list->tasks[i]->n_edges;
    if (found != n)
        test_failed("%zu edges, expected %zu\n", found, n);
}

/* Task 0 waits for `show` of the step before, because r's bytes become h.  Everything else of the step before follows
 * from that: even p need not be waited for. */
TEST(all_edges_of_the_journey)
{
    struct journey journey = new_journey(no_work, NULL);
    must(finish_lists(journey.pool, &journey.list, 1));
    assert_int_equal(journey.h->address, journey.r->address);
    static const struct expected edges[] = {
        {0, 4, STEP_BEFORE, EDGE_REUSE, IMPLIED}, {0, 5, STEP_BEFORE, EDGE_REUSE, WAITED},
        {1, 0, SAME_STEP, EDGE_DATA, WAITED},     {1, 1, STEP_BEFORE, EDGE_REUSE, IMPLIED},
        {1, 2, STEP_BEFORE, EDGE_REUSE, IMPLIED}, {2, 1, SAME_STEP, EDGE_DATA, WAITED},
        {2, 2, STEP_BEFORE, EDGE_REUSE, IMPLIED}, {2, 3, STEP_BEFORE, EDGE_REUSE, IMPLIED},
        {3, 2, SAME_STEP, EDGE_DATA, IMPLIED},    {3, 3, STEP_BEFORE, EDGE_DATA, IMPLIED},
        {3, 4, STEP_BEFORE, EDGE_DATA, IMPLIED},  {4, 3, SAME_STEP, EDGE_DATA, WAITED},
        {4, 0, SAME_STEP, EDGE_REUSE, IMPLIED},   {4, 1, SAME_STEP, EDGE_REUSE, IMPLIED},
        {5, 4, SAME_STEP, EDGE_DATA, WAITED},
    };
    expect_edges(journey.list, edges, COUNT(edges));
    assert_true(journey.list->tasks[0]->flush);
    assert_true(journey.list->tasks[3]->flush);
    assert_true(!journey.list->tasks[2]->flush);
    expect_sound("the list", journey.list, NULL);
    end_journey(&journey);
}

/* Between contexts a move is staged: download, upload, and the download's end must be known in the other context. */
TEST(moves_between_contexts)
{
    for (int apart = 0; apart < 2; apart++) {
        struct machine *machine = open_two(apart);
        struct list *list = new_list_on(machine);
        struct pool *pool = list->pool;
        struct tensor *a = new_array(pool, &machine->devices[0], "a", 64, PERSISTENT),
                      *b = new_array(pool, &machine->devices[1], "b", 64, PERSISTENT);
        add_fill(list, "fill", a, 5);
        list->tags.layer = 3;
        add_move(list, "move", b, a, FOR_MOVES);
        must(finish_lists(pool, &list, 1));
        bool staged = apart || getenv("YARD_SEPARATE_CONTEXTS");
        assert_int_equal(machine->n_contexts, staged ? 2 : 1);
        assert_int_equal(list->n, staged ? 3 : 2);
        assert_int_equal(list->tasks[1]->layer, 3);
        assert_int_equal(list->tasks[1]->notify, staged ? 1u << 1 : 0);
        assert_true(list->tasks[0]->flush);
        execute(list, 1);
        drain(list);
        float value[64];
        read_tensor(b, value);
        assert_true(value[0] == 5);
        assert_true(value[63] == 5);
        end_list(list);
    }
}

/* ---- place ------------------------------------------------------------------------------------------------------- */

/* A chain a -> b -> c ... in which tensor i lives in tasks i and i + 1: neighbours apart, all others may share. */
static struct list *new_chain(struct pool *pool, int n, int64_t elements)
{
    struct list *list = new_list(pool, "chain");
    struct tensor *last = new_array(pool, &pool->machine->devices[0], "t0", elements, TRANSIENT);
    add_fill(list, "start", last, 1);
    for (int i = 1; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        struct tensor *next = new_array(pool, &pool->machine->devices[0], name, elements, TRANSIENT);
        add_two(list, name, next, last, last);
        last = next;
    }
    return list;
}

/* Two lists on one arena: one runs at a time, so theirs may share; what persists keeps its bytes and its value. */
TEST(lists_share_an_arena)
{
    struct machine *machine = open_one();
    struct pool *pool = new_pool(machine);
    struct list *one = new_list(pool, "one");
    struct list *lists[] = {one, new_list(pool, "two")};
    struct tensor *kept = new_array(pool, &machine->devices[0], "kept", 500, PERSISTENT), *scratch[2];
    for (int i = 0; i < 2; i++) {
        scratch[i] = new_array(pool, &machine->devices[0], "scratch", 500, TRANSIENT);
        add_fill(lists[i], "fill", scratch[i], 1 + 9 * (float)i);
        add_accumulate(lists[i], "sum", kept, scratch[i]);
    }
    must(finish_lists(pool, lists, 2));
    assert_int_equal(scratch[0]->address, scratch[1]->address);
    assert_int_equal(machine->devices[0].slabs[0].bytes, 2 * round_up(2000, machine->devices[0].alignment));
    for (uint32_t number = 1; number <= 3; number++)
        for (int i = 0; i < 2; i++) {
            execute(lists[i], number);
            drain(lists[i]);
        }
    float values[500];
    read_tensor(kept, values);
    assert_true(values[0] == 33);
    assert_true(values[499] == 33);
    free_list(lists[0]);
    free_list(lists[1]);
    free_pool(pool);
    close_used(machine);
}

CASE(over_budget)
{
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0", .device_memory = 20000});
    struct pool *pool = new_pool(machine);
    struct list *list = new_chain(pool, 3, 1000);
    add_accumulate(list, "straw", list->tasks[2]->accesses[0].tensor,
                   new_array(pool, &machine->devices[0], "camel", 1000, TRANSIENT));
    list->tasks[3]->layer = 4;
    for (int k = 0; k < 3; k++) /* all live to the end */
        add_access(list->tasks[3], list->tasks[k]->accesses[0].tensor, ACCESS_READ);
    must(finish_lists(pool, &list, 1));
}

CASE(over_host_budget)
{
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0", .host_memory = 9000});
    struct list *list = new_list_on(machine);
    struct pool *pool = list->pool;
    add_access(add_host(list, machine->host->lanes[LANE_CPU], "think", no_work, NULL),
               new_array(pool, machine->host, "thought", 2000, PERSISTENT), ACCESS_WRITE);
    must(finish_lists(pool, &list, 1));
}

/* Two thirds of the memory for each of two that share it. */
CASE(shared_memory)
{
    struct machine *machine = open_one();
    struct pool *pool = new_pool(machine);
    struct list *list = new_chain(pool, 1, 2000);
    machine->host->memory = 24000;
    add_access(add_host(list, machine->host->lanes[LANE_CPU], "think", no_work, NULL),
               new_array(pool, machine->host, "thought", 2000, PERSISTENT), ACCESS_WRITE);
    must(finish_lists(pool, &list, 1));
}

CASE(larger_than_a_slab)
{
    struct machine *machine = open_one();
    machine->devices[0].max_allocation = 20000;
    struct pool *pool = new_pool(machine);
    struct list *list = new_chain(pool, 2, 5000);
    must(finish_lists(pool, &list, 1));
}

TEST(place_refuses_what_does_not_fit)
{
    expect_case("over_budget", 2, "task straw (layer 4", "tensor camel", "3.91 KiB", "19.5 KiB", "--device-mem", NULL);
    expect_case("over_host_budget", 2, "device host", "tensor thought", "7.81 KiB", "8.79 KiB", "--host-mem", NULL);
    expect_case("shared_memory", 2, "share one memory of 23.4 KiB", "together need 24.0 KiB", NULL);
    expect_case("larger_than_a_slab", 2, "device 0:0", "tensor t0 needs 19.5 KiB in one piece", NULL);
}

TEST(canary_sees_writes_past_a_slab)
{
    struct machine *machine = open_one();
    struct device *device = &machine->devices[0];
    struct list *list = new_list_on(machine);
    struct pool *pool = list->pool;
    struct tensor *tensor = new_array(pool, device, "x", (int64_t)device->alignment / 4, PERSISTENT),
                  *h = new_array(pool, machine->host, "h", 1024, PERSISTENT);
    add_fill(list, "fill", tensor, 1)->args[2].i += 1; /* one element more than there is */
    add_access(add_host(list, machine->host->lanes[LANE_CPU], "host", no_work, NULL), h, ACCESS_WRITE);
    must(finish_lists(pool, &list, 1));
    assert_int_equal(damaged_guards(device), 0);
    assert_non_null(machine->host->slabs[0].pinned);
    execute(list, 1);
    drain(list);
    assert_int_equal(damaged_guards(device), 1);
    assert_int_equal(damaged_guards(machine->host), 0);
    ((char *)tensor_memory(h))[4096 + GUARD_BYTES - 1] = 0; /* also at the guard's far end */
    assert_int_equal(damaged_guards(machine->host), 1);
    end_list(list);
}

/* ---- verify (more: test_verify.c) and audit (more: test_audit.c) ------------------------------------------------- */

TEST(verify_sees_the_end_of_a_slab)
{
    struct journey journey = new_journey(no_work, NULL);
    must(finish_lists(journey.pool, &journey.list, 1));
    expect_sound("the list", journey.list, NULL);
    journey.p->address = journey.p->device->slabs[0].bytes - journey.p->bytes / 2;
    expect_wrong("journey", verify(journey.list, NULL), "tensor p ends behind its slab");
    end_journey(&journey);
}

static void audit_list(struct list *list)
{
    execution.serial = true;
    execution.serial_runner = &audit_runner;
    must(finish_lists(list->pool, &list, 1));
    for (uint32_t number = 1; number <= 2; number++)
        execute(list, number);
    drain(list);
}

CASE(half_written)
{
    struct list *list = new_list_on(open_one());
    add_fill(list, "fill", new_array(list->pool, &list->pool->machine->devices[0], "first", 100, PERSISTENT), 1)
        ->args[2]
        .i = 60;
    audit_list(list);
}

static void scribble(void *tensor, const struct task *task, uint32_t iteration)
{
    (void)task;
    (void)iteration;
    memset(tensor_memory(tensor), 0, 16);
}

CASE(host_write)
{
    struct machine *machine = open_one();
    struct list *list = new_list_on(machine);
    struct pool *pool = list->pool;
    struct tensor *secret = new_array(pool, machine->host, "secret", 10, PERSISTENT),
                  *open = new_array(pool, machine->host, "open", 10, PERSISTENT);
    add_access(add_host(list, machine->host->lanes[LANE_CPU], "scribble", scribble, secret), open, ACCESS_READ);
    add_access(add_host(list, machine->host->lanes[LANE_CPU], "owner", no_work, NULL), secret, ACCESS_READ);
    audit_list(list);
}

TEST(audit_finds_what_is_not_declared)
{
    expect_case("half_written", 1, "audit: task fill", "leaves another element 60 of tensor first", NULL);
    expect_case("host_write", 1, "audit: task scribble", "on host (secret)", NULL);
}
