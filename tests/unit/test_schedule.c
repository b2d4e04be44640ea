/* test_schedule.c - what is settled of a list of tasks before it runs: who waits for whom, and where bytes lie.
 *
 * It tests depend() and place() of src/trainer/step, and what verify() and the audit say of lists that were broken on
 * purpose (more: test_verify.c, test_audit.c).  A wait that is missing, or one too many, two tensors that share bytes
 * while both live, and a budget that is exceeded are found.
 *
 * To see it fail: in note_touch() of depend.c, write EDGE_DATA for EDGE_REUSE in the condition.
 *
 * The edges of the journey (support_schedule.h) were worked out on paper.  Budgets are taken from the sizes of the
 * tensors, in bytes, and from the guards behind them.  (Random lists: test_schedule_random.c.  Runs: test_execute.c.)
 */
#include "tests/support/support_schedule.h"

/* ---- depend: edges worked out by hand ---------------------------------------------------------------------------- */

struct expected { /* `to` depends on `from`, of the step before if so said */
    uint32_t to, from;
    bool previous;
    enum edge_kind kind;
    bool wait;
};

static const struct edge *find_edge(const struct step *s, const struct expected *x)
{
    const struct task *t = s->task[x->to];
    for (size_t i = 0; i < t->n_edges; i++)
        if (t->edges[i].producer == x->from && t->edges[i].previous == x->previous)
            return &t->edges[i];
    return NULL;
}

static void expect_edges(const struct step *s, const struct expected *x, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const struct edge *e = find_edge(s, &x[i]);
        const char *wrong = NULL;
        if (!e)
            wrong = "there is none";
        else if (e->kind != x[i].kind)
            wrong = "the kind differs";
        else if (e->wait != x[i].wait)
            wrong = "the wait differs";
        if (wrong)
            test_failed("edge %u -> %u%s: expected kind %d, wait %d; %s\n", x[i].from, x[i].to,
                        x[i].previous ? " (step before)" : "", x[i].kind, x[i].wait, wrong);
    }
    for (size_t i = 0; i < s->n; i++)
        found += s->task[i]->n_edges;
    if (found != n)
        test_failed("%zu edges, expected %zu\n", found, n);
}

/* Task 0 waits for `show` of the step before, because r's bytes become h.  Everything else of the step before follows
 * from that: even p need not be waited for. */
TEST(all_edges_of_the_journey)
{
    struct journey j = new_journey(no_work, NULL);
    must(finish_steps(j.pool, &j.step, 1));
    assert_int_equal(j.h->address, j.r->address);
    static const struct expected edges[] = {
        {0, 4, true, EDGE_REUSE, false},  {0, 5, true, EDGE_REUSE, true},   {1, 0, false, EDGE_DATA, true},
        {1, 1, true, EDGE_REUSE, false},  {1, 2, true, EDGE_REUSE, false},  {2, 1, false, EDGE_DATA, true},
        {2, 2, true, EDGE_REUSE, false},  {2, 3, true, EDGE_REUSE, false},  {3, 2, false, EDGE_DATA, false},
        {3, 3, true, EDGE_DATA, false},   {3, 4, true, EDGE_DATA, false},   {4, 3, false, EDGE_DATA, true},
        {4, 0, false, EDGE_REUSE, false}, {4, 1, false, EDGE_REUSE, false}, {5, 4, false, EDGE_DATA, true},
    };
    expect_edges(j.step, edges, COUNT(edges));
    assert_true(j.step->task[0]->flush);
    assert_true(j.step->task[3]->flush);
    assert_true(!j.step->task[2]->flush);
    expect_sound("the list", j.step, NULL);
    end_journey(&j);
}

/* Between contexts a move is staged: download, upload, and the download's end must be known in the other context. */
TEST(moves_between_contexts)
{
    for (int apart = 0; apart < 2; apart++) {
        struct machine *m = open_two(apart);
        struct step *s = new_list(m);
        struct pool *p = s->pool;
        struct tensor *a = new_array(p, &m->device[0], "a", 64, true), *b = new_array(p, &m->device[1], "b", 64, true);
        add_fill(s, "fill", a, 5);
        s->tags.layer = 3;
        add_move(s, "move", b, a, FOR_MOVES);
        must(finish_steps(p, &s, 1));
        bool staged = apart || getenv("YARD_SEPARATE_CONTEXTS");
        assert_int_equal(m->n_contexts, staged ? 2 : 1);
        assert_int_equal(s->n, staged ? 3 : 2);
        assert_int_equal(s->task[1]->layer, 3);
        assert_int_equal(s->task[1]->notify, staged ? 1u << 1 : 0);
        assert_true(s->task[0]->flush);
        execute(s, 1);
        drain(s);
        float value[64];
        read_tensor(b, value);
        assert_true(value[0] == 5);
        assert_true(value[63] == 5);
        end_list(s);
    }
}

/* ---- place ------------------------------------------------------------------------------------------------------- */

/* A chain a -> b -> c ... in which tensor i lives in tasks i and i + 1: neighbours apart, all others may share. */
static struct step *new_chain(struct pool *p, int n, int64_t elements)
{
    struct step *s = new_step(p, "chain");
    struct tensor *last = new_array(p, &p->machine->device[0], "t0", elements, false);
    add_fill(s, "start", last, 1);
    for (int i = 1; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        struct tensor *next = new_array(p, &p->machine->device[0], name, elements, false);
        add_two(s, name, next, last, last);
        last = next;
    }
    return s;
}

/* Two lists on one arena: one runs at a time, so theirs may share; what persists keeps its bytes and its value. */
TEST(lists_share_an_arena)
{
    struct machine *m = open_one();
    struct pool *p = new_pool(m);
    struct step *one = new_step(p, "one");
    struct step *lists[] = {one, new_step(p, "two")};
    struct tensor *kept = new_array(p, &m->device[0], "kept", 500, true), *scratch[2];
    for (int i = 0; i < 2; i++) {
        scratch[i] = new_array(p, &m->device[0], "scratch", 500, false);
        add_fill(lists[i], "fill", scratch[i], 1 + 9 * (float)i);
        add_accumulate(lists[i], "sum", kept, scratch[i]);
    }
    must(finish_steps(p, lists, 2));
    assert_int_equal(scratch[0]->address, scratch[1]->address);
    assert_int_equal(m->device[0].slabs[0].bytes, 2 * round_up(2000, m->device[0].alignment));
    for (uint32_t number = 1; number <= 3; number++)
        for (int i = 0; i < 2; i++) {
            execute(lists[i], number);
            drain(lists[i]);
        }
    float values[500];
    read_tensor(kept, values);
    assert_true(values[0] == 33);
    assert_true(values[499] == 33);
    free_step(lists[0]);
    free_step(lists[1]);
    free_pool(p);
    close_used(m);
}

CASE(over_budget)
{
    struct machine *m = open_machine(&(struct machine_options){.devices = "0:0", .device_memory = 20000});
    struct pool *p = new_pool(m);
    struct step *s = new_chain(p, 3, 1000);
    add_accumulate(s, "straw", s->task[2]->access[0].tensor, new_array(p, &m->device[0], "camel", 1000, false));
    s->task[3]->layer = 4;
    for (int k = 0; k < 3; k++) /* all live to the end */
        add_access(s->task[3], s->task[k]->access[0].tensor, ACCESS_READ);
    must(finish_steps(p, &s, 1));
}

CASE(over_host_budget)
{
    struct machine *m = open_machine(&(struct machine_options){.devices = "0:0", .host_memory = 9000});
    struct step *s = new_list(m);
    struct pool *p = s->pool;
    add_access(add_host(s, m->host->lane[LANE_CPU], "think", no_work, NULL),
               new_array(p, m->host, "thought", 2000, true), ACCESS_WRITE);
    must(finish_steps(p, &s, 1));
}

/* Two thirds of the memory for each of two that share it. */
CASE(shared_memory)
{
    struct machine *m = open_one();
    struct pool *p = new_pool(m);
    struct step *s = new_chain(p, 1, 2000);
    m->host->memory = 24000;
    add_access(add_host(s, m->host->lane[LANE_CPU], "think", no_work, NULL),
               new_array(p, m->host, "thought", 2000, true), ACCESS_WRITE);
    must(finish_steps(p, &s, 1));
}

CASE(larger_than_a_slab)
{
    struct machine *m = open_one();
    m->device[0].max_allocation = 20000;
    struct pool *p = new_pool(m);
    struct step *s = new_chain(p, 2, 5000);
    must(finish_steps(p, &s, 1));
}

TEST(place_refuses_what_does_not_fit)
{
    expect_case("over_budget", 2, "task straw (layer 4", "tensor camel", "3.91 KiB", "19.5 KiB", "--device-mem", NULL);
    expect_case("over_host_budget", 2, "device host", "tensor thought", "7.81 KiB", "8.79 KiB", "--host-mem", NULL);
    expect_case("shared_memory", 2, "share one memory of 23.4 KiB", "together need 24.0 KiB", NULL);
    expect_case("larger_than_a_slab", 2, "tensor t0 needs 19.5 KiB in one piece", "device 0:0", NULL);
}

TEST(canary_sees_writes_past_a_slab)
{
    struct machine *m = open_one();
    struct device *d = &m->device[0];
    struct step *s = new_list(m);
    struct pool *p = s->pool;
    struct tensor *x = new_array(p, d, "x", (int64_t)d->alignment / 4, true),
                  *h = new_array(p, m->host, "h", 1024, true);
    add_fill(s, "fill", x, 1)->args[2].i += 1; /* one element more than there is */
    add_access(add_host(s, m->host->lane[LANE_CPU], "host", no_work, NULL), h, ACCESS_WRITE);
    must(finish_steps(p, &s, 1));
    assert_int_equal(damaged_guards(d), 0);
    assert_non_null(m->host->slabs[0].pinned);
    execute(s, 1);
    drain(s);
    assert_int_equal(damaged_guards(d), 1);
    assert_int_equal(damaged_guards(m->host), 0);
    ((char *)tensor_memory(h))[4096 + GUARD_BYTES - 1] = 0; /* also at the guard's far end */
    assert_int_equal(damaged_guards(m->host), 1);
    end_list(s);
}

/* ---- verify (more: test_verify.c) and audit (more: test_audit.c) ------------------------------------------------- */

TEST(verify_sees_the_end_of_a_slab)
{
    struct journey j = new_journey(no_work, NULL);
    must(finish_steps(j.pool, &j.step, 1));
    expect_sound("the list", j.step, NULL);
    j.p->address = j.p->device->slabs[0].bytes - j.p->bytes / 2;
    expect_wrong("journey", verify(j.step, NULL), "tensor p ends behind its slab");
    end_journey(&j);
}

static void audit_list(struct step *s)
{
    execution.serial = true;
    execution.serial_runner = &audit_runner;
    must(finish_steps(s->pool, &s, 1));
    for (uint32_t number = 1; number <= 2; number++)
        execute(s, number);
    drain(s);
}

CASE(half_written)
{
    struct step *s = new_list(open_one());
    add_fill(s, "fill", new_array(s->pool, &s->pool->machine->device[0], "first", 100, true), 1)->args[2].i = 60;
    audit_list(s);
}

static void scribble(void *tensor, const struct task *t, uint32_t number)
{
    (void)t;
    (void)number;
    memset(tensor_memory(tensor), 0, 16);
}

CASE(host_write)
{
    struct machine *m = open_one();
    struct step *s = new_list(m);
    struct pool *p = s->pool;
    struct tensor *secret = new_array(p, m->host, "secret", 10, true), *open = new_array(p, m->host, "open", 10, true);
    add_access(add_host(s, m->host->lane[LANE_CPU], "scribble", scribble, secret), open, ACCESS_READ);
    add_access(add_host(s, m->host->lane[LANE_CPU], "owner", no_work, NULL), secret, ACCESS_READ);
    audit_list(s);
}

TEST(audit_finds_what_is_not_declared)
{
    expect_case("half_written", 1, "audit: task fill", "leaves another element 60 of tensor first", NULL);
    expect_case("host_write", 1, "audit: task scribble", "on host (secret)", NULL);
}
