/* test_schedule.c - the list of tasks: depend, place, verify, execute, audit and watchdog, on hand-written lists whose
 * edges were worked out on paper, on random lists, and on lists that were broken on purpose.
 */
#include "techniques/pass/uses.h"
#include "tests/support/support.h"
#include "tools/pace/pace.h"
#include "tools/watch/watch.h"

#include <math.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

/* ---- making lists ----------------------------------------------------------------------------------------------- */

static struct machine *open_one(void) { return open_machine(&(struct machine_options){.devices = "0:0"}); }

/* Two devices; `apart` gives each a context of its own, as two GPUs have. */
static struct machine *open_two(bool apart)
{
    const char *devices = two_devices();
    contexts_apart(apart);
    struct machine *m = open_machine(&(struct machine_options){.devices = devices});
    contexts_apart(false);
    return m;
}

static void close_used(struct machine *m)
{
    for (int i = 0; i < m->n_lanes; i++) {
        stop_thread(&m->lane[i]->thread);
        stop_thread(&m->lane[i]->forwarder);
        stop_thread(&m->lane[i]->aside_thread);
    }
    close_machine(m);
}

static struct tensor *new_array(struct pool *p, struct device *d, const char *name, int64_t n, bool persistent)
{
    const struct tensor_form form = {
        .device = d,
        .class = persistent ? MEM_PARAMETERS : MEM_ACTIVATIONS,
        .name = name,
        .shape = SHAPE(n),
    };
    struct tensor *t = new_tensor(p, &form);
    t->persistent = persistent;
    return t;
}

static struct grid cover(const struct device *d, size_t n)
{
    size_t wg = d->shape.work_group;
    return (struct grid){1, {ceil_div(n, 4096) * wg, 1, 1}, {wg, 1, 1}};
}

static struct task *kernel_task(struct step *s, const char *name, const char *function, struct tensor *of,
                                const struct arg *args, int n)
{
    struct kernel_call call = {.file = "elementwise.cl", .function = function, .args = args, .n_args = n};
    call.grid = cover(of->device, count_elements(of));
    return add_kernel(s, of->device->lane[LANE_COMPUTE], name, &call);
}
#define KERNEL(s, name, function, of, ...)                                                                             \
    kernel_task(s, name, function, of, (struct arg[]){__VA_ARGS__}, (int)COUNT(((struct arg[]){__VA_ARGS__})))

static struct task *add_two(struct step *s, const char *name, struct tensor *out, struct tensor *a, struct tensor *b)
{
    return KERNEL(s, name, "add", out, OUT(out), IN(a), IN(b), INT(count_elements(out)));
}

static struct task *add_fill(struct step *s, const char *name, struct tensor *out, float value)
{
    return KERNEL(s, name, "fill", out, OUT(out), FLOAT(value), INT(count_elements(out)));
}

static struct task *add_accumulate(struct step *s, const char *name, struct tensor *sum, struct tensor *x)
{
    return KERNEL(s, name, "accumulate", sum, INOUT(sum), IN(x), INT(count_elements(sum)));
}

/* A list in a pool of its own on this machine. */
static struct step *new_list(struct machine *m) { return new_step(new_pool(m), "list"); }

static void end_list(struct step *s)
{
    struct pool *p = s->pool;
    struct machine *m = p->machine;
    free_step(s);
    free_pool(p);
    close_used(m);
}

static void no_work(void *context, const struct task *t, uint32_t number)
{
    (void)context;
    (void)t;
    (void)number;
}

/* ---- depend: edges worked out by hand --------------------------------------------------------------------------- */

/* A number's way to the device and back, each task on another lane:
 *
 *     0 make    cpu       h <-            h and r are on the host and never live together: they share bytes
 *     1 carry   upload    d <- h          d, o, p are on the device; d and o live together in task 2
 *     2 twice   compute   o <- d + d
 *     3 sum     compute   p += o          p persists
 *     4 fetch   download  r <- p
 *     5 show    report         r
 */
struct journey {
    struct machine *machine;
    struct pool *pool;
    struct step *step;
    struct tensor *h, *d, *o, *p, *r;
};

static struct journey new_journey(host_function *make, void *context)
{
    struct journey j = {.machine = open_one()};
    struct device *dev = &j.machine->device[0], *host = j.machine->host;
    j.pool = new_pool(j.machine);
    struct step *s = j.step = new_step(j.pool, "journey");
    j.h = new_array(j.pool, host, "h", 64, false);
    j.r = new_array(j.pool, host, "r", 64, false);
    j.d = new_array(j.pool, dev, "d", 64, false);
    j.o = new_array(j.pool, dev, "o", 64, false);
    j.p = new_array(j.pool, dev, "p", 64, true);
    add_access(add_host(s, host->lane[LANE_CPU], "make", make, context), j.h, ACCESS_WRITE);
    add_copy(s, dev->lane[LANE_UPLOAD], "carry", j.d, j.h);
    add_two(s, "twice", j.o, j.d, j.d);
    add_accumulate(s, "sum", j.p, j.o);
    add_copy(s, dev->lane[LANE_DOWNLOAD], "fetch", j.r, j.p);
    add_access(add_host(s, host->lane[LANE_REPORT], "show", no_work, NULL), j.r, ACCESS_READ);
    return j;
}

static void end_journey(struct journey *j)
{
    drain(j->step);
    free_step(j->step);
    free_pool(j->pool);
    close_used(j->machine);
}

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

/* ---- place ------------------------------------------------------------------------------------------------------ */

/* Positions of the first and last task that touch root t; lists are short. */
static bool find_life(const struct step *s, const struct tensor *t, int *first, int *last)
{
    *first = -1;
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < s->task[i]->n_access; k++)
            if (s->task[i]->access[k].tensor->storage == t) {
                *first = *first < 0 ? (int)i : *first;
                *last = (int)i;
            }
    return *first >= 0;
}

static void expect_apart(const struct step *s, const struct tensor *a, const struct tensor *b)
{
    int first_a, last_a, first_b, last_b;
    bool overlap = a->device == b->device && a->slab == b->slab && a->address < b->address + b->bytes &&
                   b->address < a->address + a->bytes;
    if (!overlap || !find_life(s, a, &first_a, &last_a) || !find_life(s, b, &first_b, &last_b))
        return;
    if (a->persistent || b->persistent || (first_a <= last_b && first_b <= last_a))
        test_failed("tensors %s (tasks %d to %d) and %s (tasks %d to %d) share bytes\n", a->name, first_a, last_a,
                    b->name, first_b, last_b);
}

/* What always holds of addresses; returns the bytes that the arenas need, guards included. */
static size_t check_addresses(const struct pool *p, const struct step *s)
{
    size_t need[MOST_DEVICES + 1][64] = {{0}}, sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct tensor *t = p->tensors[i];
        if (t->storage != t || t->slab < 0)
            continue;
        assert_true(t->slab < 64);
        assert_int_equal(t->address % t->device->alignment, 0);
        assert_true(t->address + t->bytes <= slab_limit(t->device));
        size_t *high = &need[t->device->index][t->slab];
        *high = MAX(*high, round_up(t->address + t->bytes, t->device->alignment) + GUARD_BYTES);
        for (size_t k = 0; k < i; k++)
            if (p->tensors[k]->storage == p->tensors[k] && p->tensors[k]->slab >= 0)
                expect_apart(s, t, p->tensors[k]);
    }
    for (int d = 0; d <= p->machine->n_devices; d++)
        for (int k = 0; k < 64; k++)
            sum += need[d][k];
    return sum;
}

/* What OpenCL and the host say they gave, guards included. */
static size_t bytes_given(const struct machine *m)
{
    size_t sum = 0;
    for (int d = 0; d <= m->n_devices; d++)
        for (size_t k = 0; k < m->device[d].n_slabs; k++) {
            const struct slab *slab = &m->device[d].slabs[k];
            size_t bytes = slab->bytes + GUARD_BYTES;
            if (slab->buffer)
                CL(clGetMemObjectInfo(slab->buffer, CL_MEM_SIZE, sizeof bytes, &bytes, NULL));
            sum += bytes;
        }
    return sum;
}

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

/* ---- random lists ----------------------------------------------------------------------------------------------- */

/* Roots of 256 elements, each with two halves as views; kernels, copies, moves and host tasks among them, in any order
 * that reads only what has been written. */
enum { ROOT = 256, KEPT = 2, MOST_ROOTS = 64, PLACES = 3 };
struct root {
    struct tensor *part[3]; /* left, right, whole */
    unsigned written;       /* halves, as bits */
};
struct mix { /* what a host task mixes, and how long it waits first */
    struct tensor *out, *in;
    uint32_t delay_us;
};
struct world {
    struct pool *pool;
    struct step *step;
    struct draws draws;
    struct root roots[PLACES][MOST_ROOTS];
    int n_roots[PLACES];
    struct mix mixes[64];
    int n_mixes;
};

static unsigned draw(struct world *w, unsigned below) { return (unsigned)draw_below(&w->draws, below); }

static struct device *place_of(const struct world *w, int place) { return &w->pool->machine->device[place]; }

static struct root *new_root(struct world *w, int place, bool persistent)
{
    struct root *r = &w->roots[place][w->n_roots[place]];
    char name[16];
    char letter = "ABH"[place];
    snprintf(name, sizeof name, "%c%d", letter, w->n_roots[place]);
    w->n_roots[place]++;
    struct tensor *t = r->part[2] = new_array(w->pool, place_of(w, place), name, ROOT, persistent);
    for (int half = 0; half < 2; half++)
        r->part[half] = new_view(w->pool, t, name, (size_t)half * ROOT / 2, SHAPE(ROOT / 2));
    r->written = persistent ? 3 : 0;
    return r;
}

/* A part (0 left, 1 right, 2 whole) to read, of the latest few roots, so that lifetimes end; NULL: none written. */
static struct tensor *pick_read(struct world *w, int place, unsigned part)
{
    unsigned need = part == 2 ? 3 : 1u << part;
    for (int tries = 0; tries < 8; tries++) {
        int n = w->n_roots[place], i = (int)draw(w, n < 6 ? (unsigned)n : 6);
        struct root *r = &w->roots[place][draw(w, 3) ? n - 1 - i : i % KEPT];
        if ((r->written & need) == need)
            return r->part[part];
    }
    return w->roots[place][0].part[part];
}

static struct root *pick_write(struct world *w, int place)
{
    return draw(w, 3) ? new_root(w, place, false) : &w->roots[place][draw(w, (unsigned)w->n_roots[place])];
}

static void run_mix(void *context, const struct task *t, uint32_t number)
{
    (void)t;
    const struct mix *m = context;
    const float *in = tensor_memory(m->in);
    float *out = tensor_memory(m->out);
    nanosleep(&(struct timespec){.tv_nsec = m->delay_us * 1000}, NULL);
    for (size_t i = 0; i < count_elements(m->out); i++)
        out[i] = in[i] * 0.5f + (float)number;
}

static void add_mix(struct world *w, struct tensor *out, struct tensor *in)
{
    static const enum lane_kind lanes[] = {LANE_CPU, LANE_DISK, LANE_REPORT};
    struct mix *m = &w->mixes[w->n_mixes++];
    *m = (struct mix){out, in, draw(w, 4) ? 0 : draw(w, 300)};
    struct task *t = add_host(w->step, w->pool->machine->host->lane[lanes[draw(w, 3)]], "mix", run_mix, m);
    add_access(t, out, ACCESS_WRITE);
    add_access(t, in, ACCESS_READ);
}

/* out <- a, b from one place to another: by the kind of task that can. */
static void add_transport(struct world *w, int to, struct tensor *out, int from, struct tensor *a, struct tensor *b)
{
    int device = from < 2 ? from : to;
    if (from == to && from < 2)
        add_two(w->step, "add", out, a, b);
    else if (from == to)
        add_mix(w, out, a);
    else if (from < 2 && to < 2)
        add_move(w->step, "move", out, a, FOR_MOVES);
    else
        add_copy(w->step, place_of(w, device)->lane[from < 2 ? LANE_DOWNLOAD : LANE_UPLOAD], "copy", out, a);
}

static void add_random_task(struct world *w)
{
    unsigned choice = draw(w, 5), part = MIN(choice, 2u);
    int from = (int)draw(w, PLACES), to = draw(w, 3) ? from : (int)draw(w, PLACES);
    struct tensor *a = pick_read(w, from, part), *b = pick_read(w, from, part);
    if (from == to && from < 2 && draw(w, 2)) {
        if (a->storage != b->storage)
            add_accumulate(w->step, "accumulate", a, b);
        return;
    }
    struct root *out = pick_write(w, to);
    if (out->part[2] == a->storage || out->part[2] == b->storage)
        return; /* copies and kernels do not work in place */
    add_transport(w, to, out->part[part], from, a, b);
    out->written |= part == 2 ? 3 : 1u << part;
}

static struct world *new_world(struct machine *m, uint64_t seed)
{
    struct world *w = allocate(1, sizeof *w);
    w->pool = new_pool(m);
    w->step = new_step(w->pool, "random");
    w->draws = (struct draws){.seed = seed, .row = 2};
    for (int place = 0; place < PLACES; place++)
        for (int i = 0; i < KEPT; i++)
            new_root(w, place, true);
    for (unsigned n = 10 + draw(w, 25); n > 0; n--)
        add_random_task(w);
    return w;
}

static void free_world(struct world *w)
{
    drain(w->step);
    free_step(w->step);
    free_pool(w->pool);
    free(w);
}

TEST(random_lists_are_ordered_and_placed)
{
    struct machine *m = open_two(false);
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct world *w = new_world(m, seed);
        finish_list(w->step);
        check_addresses(w->pool, w->step);
        expect_sound(lasting("list %d", (int)seed), w->step, NULL);
        expect_waits_needed(w->step, 1);
        free_world(w);
    }
    close_used(m);
}

/* What is said of uses follows from the bytes of each task. */
TEST(uses_in_random_lists)
{
    contexts_joined(); /* else what moves pass through is on the host too */
    struct machine *m = open_machine(&(struct machine_options){.devices = two_devices()});
    contexts_apart(false);
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct world *w = new_world(m, seed);
        struct task *const *task = w->step->task;
        int n = (int)w->step->n;
        struct uses *u = find_uses(task, w->step->n, w->pool);
        for (int at = 0, place = (int)(seed % PLACES); at < n; at++) {
            int64_t sum = 0;
            for (int i = 0; i < w->n_roots[place]; i++) {
                struct tensor *const *part = w->roots[place][i].part, *all = part[2];
                int last[3];
                size_t uses;
                const struct use *use = uses_of(u, all, &uses);
                for (int h = 0; h < 3; h++) {
                    last[h] = NONE;
                    for (int k = 0; k < at; k++)
                        last[h] = touches_bytes(task[k], part[h], ACCESS_WRITE) ? k : last[h];
                    assert_int_equal(last_write_before(u, part[h], at), last[h]);
                }
                assert_true(!is_whole_before(u, all, at) || (last[0] != NONE && last[1] != NONE));
                all->exclusive = (enum exclusive)(i % 3);
                bool always = all->persistent || (all->exclusive == EXCLUSIVE_ALWAYS && uses);
                bool lives = uses && use[0].position <= at && at <= use[uses - 1].position;
                sum += always || lives ? (int64_t)round_up(all->bytes, all->device->alignment) : 0;
            }
            int64_t *held = bytes_held(u, w->pool, place_of(w, place));
            assert_int_equal(held[at], sum);
            free(held);
        }
        free_uses(u);
        free_world(w);
    }
    close_used(m);
}

enum { ITERATIONS = 5 };

/* Run the list from the same start; returns what persists, all roots in a row. */
static float *run_world(struct world *w, bool serial, bool audit)
{
    float *kept = allocate((size_t)PLACES * KEPT * ROOT, sizeof *kept), *at = kept;
    for (int place = 0; place < PLACES; place++)
        for (int i = 0; i < KEPT; i++) {
            float *start = random_floats(ROOT, (uint64_t)(place * KEPT + i));
            write_tensor(w->roots[place][i].part[2], start);
            free(start);
        }
    execution.serial = serial;
    execution.serial_runner = audit ? &audit_runner : NULL;
    for (uint32_t number = 1; number <= ITERATIONS; number++)
        execute(w->step, number);
    drain(w->step);
    execution = (struct execution){0};
    for (int place = 0; place < PLACES; place++)
        for (int i = 0; i < KEPT; i++, at += ROOT)
            read_tensor(w->roots[place][i].part[2], at);
    return kept;
}

static void check_run(struct world *w, bool audit)
{
    size_t n = (size_t)PLACES * KEPT * ROOT;
    must(finish_steps(w->pool, &w->step, 1));
    float *serial = run_world(w, true, false);
    for (int repeat = 0; repeat < (audit ? 1 : 3); repeat++) {
        float *other = run_world(w, audit, audit);
        char *what = lasting("list %llu, run %d", (unsigned long long)w->draws.seed, repeat);
        expect_same_bits(what, other, serial, n);
        free(other);
    }
    for (int i = 0; i < PLACES; i++)
        assert_int_equal(damaged_guards(place_of(w, i)), 0);
    assert_int_equal(check_addresses(w->pool, w->step), w->pool->machine->allocated);
    assert_int_equal(bytes_given(w->pool->machine), w->pool->machine->allocated);
    free(serial);
}

static void run_random_lists(bool apart, bool audit, uint64_t from, uint64_t to)
{
    struct machine *m = open_two(apart);
    m->device[0].max_allocation = GUARD_BYTES + 5 * ROOT * ELEMENT_BYTES; /* in several slabs */
    for (uint64_t seed = from; seed < to; seed++) {
        struct world *w = new_world(m, seed);
        check_run(w, audit);
        free_world(w);
    }
    close_used(m);
}

TEST(random_lists_give_the_bits_of_serial)
{
    run_random_lists(false, false, 1000, 1100);
    run_random_lists(true, false, 2000, 2060);
}

TEST(random_lists_pass_the_audit)
{
    run_random_lists(false, true, 3000, 3020);
    run_random_lists(true, true, 3020, 3030);
}

TEST(serial_creates_no_thread)
{
    struct machine *m = open_two(true);
    struct world *w = new_world(m, 1000);
    must(finish_steps(w->pool, &w->step, 1));
    free(run_world(w, true, false));
    for (int i = 0; i < m->n_lanes; i++) {
        assert_true(!m->lane[i]->thread);
        assert_true(!m->lane[i]->forwarder);
    }
    free_world(w);
    close_used(m);
}

/* ---- failing and hanging ---------------------------------------------------------------------------------------- */

static void issue_broken(const struct task *t, uint32_t number, cl_uint n_wait, const cl_event *wait, cl_event *done)
{
    (void)number;
    (void)n_wait;
    (void)wait;
    CL_MAKE(*done = clCreateUserEvent(t->lane->device->context->cl, &err));
    CL(clSetUserEventStatus(*done, CL_OUT_OF_RESOURCES));
}

static void run_never(void *context, const struct task *t, uint32_t number)
{
    (void)context;
    (void)t;
    (void)number;
    _exit(99);
}

/* What waits for the broken task fails too, and does not run. */
static void run_broken(bool serial)
{
    struct journey j = new_journey(no_work, NULL);
    struct task *t = add_issue(j.step, j.machine->device[0].lane[LANE_COMPUTE], "broken", issue_broken, NULL, 0);
    t->layer = 2;
    add_access(t, j.p, ACCESS_BOTH);
    add_access(add_host(j.step, j.machine->host->lane[LANE_CPU], "never", run_never, NULL), j.p, ACCESS_READ);
    add_access(add_host(j.step, j.machine->host->lane[LANE_DISK], "after", no_work, NULL), j.h, ACCESS_WRITE);
    must(finish_steps(j.pool, &j.step, 1));
    execution.serial = serial;
    execute(j.step, 1);
    drain(j.step);
}

CASE(failed_event) { run_broken(false); }
CASE(failed_event_serial) { run_broken(true); }

TEST(failed_event_names_its_task)
{
    const char *sentence =
        "step 1 of list journey: task broken (layer 2) on lane 0:0 compute failed with CL_OUT_OF_RESOURCES";
    expect_case("failed_event", 1, sentence, NULL);
    expect_case("failed_event_serial", 1, sentence, NULL);
}

struct barrier { /* a host task stands before it until it is opened */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
};

static void wait_at_gate(void *context, const struct task *t, uint32_t number)
{
    (void)t;
    (void)number;
    struct barrier *g = context;
    pthread_mutex_lock(&g->lock);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void open_gate(struct barrier *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

TEST(frontier_names_what_is_stuck)
{
    struct barrier gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct journey j = new_journey(wait_at_gate, &gate);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    must(finish_steps(j.pool, &j.step, 1));
    execute(j.step, 1);
    execute(j.step, 2);
    print_frontier(out, j.step);
    open_gate(&gate);
    drain(j.step);
    fclose(out);
    expect_text(text, "lane host cpu: task 0 make of step 1 has not ended");
    expect_text(text, "lane 0:0 upload: task 1 carry of step 1 has not ended\n"
                      "      waits for task 0 make of step 1 on lane host cpu\n");
    expect_text(text, "lane 0:0 compute: task 2 twice");
    expect_text(text, "      waits for task 1 carry of step 1 on lane 0:0 upload\n");
    expect_text(text, "lane host report: task 5 show");
    free(text);
    end_journey(&j);
}

/* ---- in the background, and now and then ------------------------------------------------------------------------- */

struct log { /* the runs that have been retired, by name and number */
    const char *name[64];
    uint32_t number[64];
    size_t n;
    uint64_t computed; /* when the last computation ended */
};

static void log_run(void *context, const struct step *s, const struct task *t, const struct task_flight *f)
{
    (void)s;
    struct log *l = context;
    assert_true(f->start <= f->end);
    assert_true(l->n < COUNT(l->name));
    assert_true(!t->commands.only_last_event || l->computed <= f->start);
    l->computed = t->lane->kind == LANE_COMPUTE ? f->end : l->computed;
    l->name[l->n] = t->name;
    l->number[l->n++] = f->iteration;
}

static size_t count_logged(const struct log *l, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += strcmp(l->name[i], name) == 0;
    return n;
}

/* Something on the disk lane does not end: later steps are computed, and their ends are seen, until a fifth run of it
 * would be needed. */
TEST(the_background_holds_nobody_up)
{
    struct barrier gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct journey j = new_journey(no_work, NULL);
    struct log log = {.n = 0};
    struct tensor *kept = new_array(j.pool, j.machine->host, "kept", 4, true);
    add_access(add_host(j.step, j.machine->host->lane[LANE_DISK], "persist", wait_at_gate, &gate), kept, ACCESS_READ);
    j.step->task[3]->commands.only_last_event = true; /* it begins where `twice` ends */
    must(finish_steps(j.pool, &j.step, 1));
    struct log second = {.n = 0}; /* the log of a second observer */
    struct observer logger = {.ended = log_run, .context = &log}, other = {.ended = log_run, .context = &second};
    add_observer(&logger);
    add_observer(&other);
    for (uint32_t number = 1; number <= MOST_RUNS; number++)
        execute(j.step, number);
    wait_task(j.step, j.step->task[5], MOST_RUNS);
    assert_int_equal(count_logged(&log, "sum"), MOST_RUNS);
    assert_int_equal(count_logged(&log, "show"), MOST_RUNS);
    assert_int_equal(count_logged(&log, "persist"), 0);
    open_gate(&gate);
    execute(j.step, MOST_RUNS + 1);
    drain(j.step);
    remove_observer(&logger);
    remove_observer(&other);
    assert_int_equal(log.n, j.step->n * (MOST_RUNS + 1));
    assert_int_equal(second.n, log.n);
    end_journey(&j);
}

#ifdef __linux__
static void note_policy(void *context, const struct task *t, uint32_t number)
{
    (void)context;
    (void)t;
    (void)number;
    struct sched_param ignored;
    int policy;
    pthread_getschedparam(pthread_self(), &policy, &ignored);
    ((int *)context)[number] = policy;
}

/* What stands aside runs when nothing else wants the core; a later task of the same lane does not stand aside. */
TEST(only_what_stands_aside_is_idle)
{
    int policy[4] = {-1, -1, -1, -1};
    struct task_flight flight = {.iteration = 0};
    struct journey j = new_journey(no_work, NULL);
    struct lane *disk = j.machine->host->lane[LANE_DISK];
    struct task *t = add_host(j.step, disk, "note", note_policy, policy);
    must(finish_steps(j.pool, &j.step, 1));
    for (uint32_t number = 1; number <= 3; number++) {
        struct job job = {
            .step = j.step, .flight = &flight, .task = t->index, .iteration = number, .kind = JOB_HOST_TASK};
        if (number == 2)
            job.when_ended = drop_job;
        if (number == 2)
            give_job_aside(&disk->aside_thread, disk->name, keep_job(&job));
        else
            give_job(&disk->thread, disk->name, keep_job(&job));
        wait_until_idle(disk->aside_thread);
        wait_until_idle(disk->thread);
    }
    assert_int_equal(policy[1], SCHED_OTHER);
    assert_int_equal(policy[2], SCHED_IDLE);
    assert_int_equal(policy[3], SCHED_OTHER);
    end_journey(&j);
}
#endif

static void add_number(void *context, const struct task *t, uint32_t number)
{
    (void)context;
    float *x = tensor_memory(t->access[0].tensor);
    x[0] = 10 * x[0] + (float)number; /* the order of the writes shows */
}

/* x is written on three lanes: every second step, in steps 2, 5, 8, and in steps 3, 6, 9; and read on a fourth. */
static float run_now_and_then(bool serial)
{
    struct journey j = new_journey(no_work, NULL);
    const struct device *host = j.machine->host;
    struct tensor *x = new_array(j.pool, j.machine->host, "x", 4, true);
    struct task *even = add_host(j.step, host->lane[LANE_CPU], "even", add_number, NULL);
    struct task *third = add_host(j.step, host->lane[LANE_DISK], "third", add_number, NULL);
    struct task *whole = add_host(j.step, host->lane[LANE_FEED], "whole", add_number, NULL);
    even->when.every = 2;
    third->when.every = 3;
    third->when.remainder = 2;
    whole->when.every = 3;
    add_access(even, x, ACCESS_BOTH);
    add_access(third, x, ACCESS_BOTH);
    add_access(whole, x, ACCESS_BOTH);
    must(finish_steps(j.pool, &j.step, 1));
    start_delays(j.step, 7);
    execution.serial = serial;
    for (uint32_t number = 1; number <= 5; number++)
        execute(j.step, number);
    drain(j.step);
    execution.serial = false;
    stop_pacing(j.step);
    float result = *(float *)tensor_memory(x);
    end_journey(&j);
    return result;
}

TEST(tasks_run_now_and_then)
{
    assert_true(run_now_and_then(true) == 22345.f);
    assert_true(run_now_and_then(false) == 22345.f);
}

/* ---- hanging ----------------------------------------------------------------------------------------------------- */

/* Hangs until the watchdog has said something. */
static void wait_for_stderr(void *context, const struct task *t, uint32_t number)
{
    (void)context;
    (void)t;
    (void)number;
    struct stat status;
    while (fstat(STDERR_FILENO, &status) == 0 && status.st_size == 0)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

CASE(hang)
{
    execution.watch = watch;
    watchdog_seconds = 0.3;
    struct journey j = new_journey(wait_for_stderr, NULL);
    must(finish_steps(j.pool, &j.step, 1));
    execute(j.step, 1);
    drain(j.step);
    end_journey(&j);
}

CASE(hang_for_ever)
{
    struct barrier gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    execution.watch = watch;
    watchdog_seconds = 0.3;
    struct journey j = new_journey(wait_at_gate, &gate);
    finish_steps(j.pool, &j.step, 1);
    execute(j.step, 1);
    drain(j.step);
}

/* The issuing thread does not come back from the driver. */
static void issue_for_ever(const struct task *t, uint32_t number, cl_uint n_wait, const cl_event *wait, cl_event *done)
{
    (void)t;
    (void)number;
    (void)n_wait;
    (void)wait;
    (void)done;
    for (;;)
        pause();
}

CASE(driver_hangs)
{
    execution.watch = watch;
    watchdog_seconds = 0.3;
    struct journey j = new_journey(no_work, NULL);
    add_issue(j.step, j.machine->device[0].lane[LANE_COMPUTE], "stuck", issue_for_ever, NULL, 0);
    finish_steps(j.pool, &j.step, 1);
    execute(j.step, 1);
}

TEST(watchdog_speaks)
{
    expect_case("hang", 0, "no task of list journey has ended for a while", "lane host cpu: task 0 make", NULL);
}

TEST(watchdog_gives_up)
{
    expect_case("hang_for_ever", 1, "lane host cpu: task 0 make", "the run is given up", NULL);
    expect_case("driver_hangs", 1, "the driver has not come back", "the run is given up", NULL);
}
