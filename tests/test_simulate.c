/* test_simulate.c - predicting a step, and proving that a list computes what it should.
 *
 * Lists on paper whose times were worked out by hand; relations that hold for every list (an oracle that walks the
 * longest path, scaled durations, free links, dropped edges); lists broken on purpose, which verify() or
 * compare_values() must notice; and what the files of costs may and may not say.  No OpenCL device is opened here.
 */
#include "support.h"

#include <jansson.h>
#include <math.h>

static const char hardware_text[] = "hardware = paper\ndevices = 8\ndevices_per_link = %d\nflops = 1e12\n"
                                    "efficiency = 0.5\nbandwidth = %g\nlaunch = %g\nhost_bandwidth = %g\n"
                                    "host_launch = %g\nlink upload = %g %g\nlink download = %g %g\n"
                                    "memory = 1G\nhost_memory = 1G\n";
struct speeds {
    int per_link;
    double bytes_per_s, launch, link, latency;
};

static const char *write_hardware(const char *name, const struct speeds *s)
{
    char *text = format_string(hardware_text, s->per_link, s->bytes_per_s, s->launch, s->bytes_per_s, s->launch,
                               s->link, s->latency, s->link, s->latency);
    const char *path = write_file(name, text, strlen(text));
    free(text);
    return path;
}

/* ---- lists on paper -------------------------------------------------------------------------------------------- */

/* A byte takes a millisecond wherever it goes, and nothing else takes time: a tensor of 4 bytes is 4 ms of work. */
static const struct speeds slow = {.per_link = 1, .bytes_per_s = 1e3, .launch = 1e-300, .link = 1e3};

struct paper {
    struct costs *costs;
    struct machine *machine;
    struct pool *pool;
    struct step *step;
    struct device *device, *host;
};

static struct paper new_paper(int n_devices, const struct speeds *s)
{
    struct paper p = {.costs = read_costs(write_hardware("paper.txt", s))};
    p.machine = virtual_machine(p.costs, n_devices);
    p.device = &p.machine->device[0];
    p.host = p.machine->host;
    p.pool = new_pool(p.machine);
    p.step = new_step(p.pool, "paper");
    return p;
}

static void end_paper(struct paper *p)
{
    free_step(p->step);
    free_pool(p->pool);
    close_machine(p->machine);
    free_costs(p->costs);
}

static struct tensor *new_bytes(struct paper *p, struct device *d, const char *name, int64_t words, bool persistent)
{
    struct tensor *t = new_tensor(p->pool, d, MEM_ACTIVATIONS, name, FLOAT32, SHAPE(words));
    t->persistent = persistent;
    return t;
}

static void no_work(void *context, const struct task *t, uint32_t number) { (void)context, (void)t, (void)number; }

/* Nothing on paper is run, so any lane will do.  Accesses: written, then up to two that are read; NULL: none. */
static struct task *add_paper(struct paper *p, struct lane *lane, const char *name, struct tensor *writes,
                              struct tensor *reads, struct tensor *reads_too)
{
    struct task *t = add_host(p->step, lane, name, no_work, NULL);
    if (writes)
        add_access(t, writes, ACCESS_WRITE);
    if (reads)
        add_access(t, reads, ACCESS_READ);
    if (reads_too)
        add_access(t, reads_too, ACCESS_READ);
    return t;
}

static void finish_paper(struct paper *p)
{
    place(p->pool, &p->step, 1, true);
    depend(p->step, true);
    char *wrong = verify(p->step, NULL);
    if (wrong)
        test_failed("the list on paper is wrong: %s\n", wrong);
}

struct span {
    double start, end;
};

static void expect_times(const struct simulation *sim, int iteration, const struct span *expected)
{
    size_t n = sim->step->n;
    for (size_t i = 0; i < n; i++) {
        const struct moment *m = &sim->moments[(size_t)iteration * n + i];
        if (fabs(m->start - expected[i].start) > 1e-9 || fabs(m->end - expected[i].end) > 1e-9)
            test_failed("iteration %d, task %zu %s: simulated [%g, %g], by hand [%g, %g]\n", iteration, i,
                        sim->step->tasks[i].name, m->start, m->end, expected[i].start, expected[i].end);
    }
}

static void expect_number(const char *what, double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * (1 + fabs(expected))))
        test_failed("%s: %.15g, expected %.15g\n", what, found, expected);
}

/* ---- by hand ---------------------------------------------------------------------------------------------------- */

/* Uploads of 2 and computations of 3 s, p and both d persist:
 *
 *     step 1   upload   u0 0-2    u1 2-4              u0 of the next step waits for c0 of this one, which reads d0,
 *              compute  c0 2-5    c1 5-8              and u1 for c1: edges across the step's end
 *     step 2   upload   u0 5-7    u1 8-10
 *              compute  c0 8-11   c1 11-14
 *     step 3   upload   u0 11-13  u1 14-16
 *              compute  c0 14-17  c1 17-20
 */
static void test_two_lanes_by_hand(void **state)
{
    (void)state;
    struct paper p = new_paper(1, &slow);
    struct lane *compute = p.device->lane[LANE_COMPUTE], *upload = p.device->lane[LANE_UPLOAD];
    struct tensor *d0 = new_bytes(&p, p.device, "d0", 1, true), *d1 = new_bytes(&p, p.device, "d1", 1, true);
    struct tensor *sum = new_bytes(&p, p.device, "p", 1, true);
    add_paper(&p, upload, "u0", d0, NULL, NULL);
    add_paper(&p, compute, "c0", sum, d0, NULL);
    add_paper(&p, upload, "u1", d1, NULL, NULL);
    add_paper(&p, compute, "c1", NULL, d1, sum);
    finish_paper(&p);
    struct simulation *sim = simulate_durations(p.step, (double[]){2, 3, 2, 3});
    expect_times(sim, 0, (struct span[]){{0, 2}, {2, 5}, {2, 4}, {5, 8}});
    expect_times(sim, 1, (struct span[]){{5, 7}, {8, 11}, {8, 10}, {11, 14}});
    expect_times(sim, 2, (struct span[]){{11, 13}, {14, 17}, {14, 16}, {17, 20}});
    expect_number("period", sim->period, 6);
    expect_number("compute", sim->busy[compute->index], 6);
    expect_number("upload", sim->busy[upload->index], 4);
    assert_int_equal(sim->moments[2 * 4 + 2].blocker, 4 + 3); /* u1 of step 3 waited for c1 of step 2, */
    assert_int_equal(sim->moments[2 * 4 + 1].blocker, 4 + 3); /* c0 for its lane */
    assert_int_equal(sim->moments[0].blocker, -1);
    free_simulation(sim);
    end_paper(&p);
}

/* Nothing ties `a` to `b`, but no more than two iterations are in flight: a of step 3 waits for the end of step 1. */
static void test_two_iterations_are_in_flight(void **state)
{
    (void)state;
    struct paper p = new_paper(1, &slow);
    add_paper(&p, p.host->lane[LANE_CPU], "a", NULL, NULL, NULL);
    add_paper(&p, p.device->lane[LANE_COMPUTE], "b", NULL, NULL, NULL);
    finish_paper(&p);
    struct simulation *sim = simulate_durations(p.step, (double[]){1, 10});
    expect_times(sim, 0, (struct span[]){{0, 1}, {0, 10}});
    expect_times(sim, 1, (struct span[]){{1, 2}, {10, 20}});
    expect_times(sim, 2, (struct span[]){{10, 11}, {20, 30}});
    expect_number("period", sim->period, 10);
    free_simulation(sim);
    end_paper(&p);
}

/* `free` could go at once, but it stands behind `waits` on its lane; in front of it, it does. */
static void test_a_lane_blocks_behind_a_task_that_waits(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct paper p = new_paper(1, &slow);
        struct lane *upload = p.device->lane[LANE_UPLOAD];
        struct tensor *x = new_bytes(&p, p.device, "x", 1, false);
        if (first)
            add_paper(&p, upload, "free", NULL, NULL, NULL);
        add_paper(&p, p.device->lane[LANE_COMPUTE], "make", x, NULL, NULL);
        add_paper(&p, upload, "waits", NULL, x, NULL);
        if (!first)
            add_paper(&p, upload, "free", NULL, NULL, NULL);
        finish_paper(&p);
        struct simulation *sim = simulate_durations(p.step, first ? (double[]){1, 5, 2} : (double[]){5, 2, 1});
        if (first)
            expect_times(sim, 0, (struct span[]){{0, 1}, {0, 5}, {5, 7}});
        else
            expect_times(sim, 0, (struct span[]){{0, 5}, {5, 7}, {7, 8}});
        free_simulation(sim);
        end_paper(&p);
    }
}

enum { LAYERS = 12 };

/* Each layer makes an activation, which goes out to the host `late` layers later in the list. */
static struct paper swap_out(int late)
{
    struct paper p = new_paper(1, &slow);
    struct tensor *made[LAYERS], *kept = new_bytes(&p, p.host, "kept", LAYERS * 1024, true);
    for (int l = 0; l < LAYERS + late; l++) {
        if (l < LAYERS) {
            made[l] = new_bytes(&p, p.device, "a", 1, false);
            add_paper(&p, p.device->lane[LANE_COMPUTE], "layer", made[l], NULL, NULL);
        }
        if (l >= late)
            add_copy(p.step, p.device->lane[LANE_DOWNLOAD], "out",
                     new_view(p.pool, kept, "part", (size_t)(l - late) * 1024, SHAPE(1)), made[l - late]);
    }
    finish_paper(&p);
    return p;
}

static double first_iteration(const struct simulation *sim)
{
    double end = 0;
    for (size_t i = 0; i < sim->step->n; i++)
        end = fmax(end, sim->moments[i].end);
    return end;
}

/* A swap-out right behind its layer gives the next layer the same bytes, and so makes it wait: 12 x (1 + 1).  One layer
 * later in the list, two activations alternate, and only the last copy shows: 12 + 1. */
static void test_list_position_decides_when_bytes_are_held(void **state)
{
    (void)state;
    double ones[2 * LAYERS];
    for (size_t i = 0; i < COUNT(ones); i++)
        ones[i] = 1;
    struct paper at_once = swap_out(0), later = swap_out(1);
    struct simulation *a = simulate_durations(at_once.step, ones), *b = simulate_durations(later.step, ones);
    expect_number("swapped out at once", first_iteration(a), 24);
    expect_number("its period", a->period, 24);
    expect_number("swapped out one layer later", first_iteration(b), 13);
    expect_number("its period", b->period, 12);
    assert_int_equal(a->peak[0], 4);
    assert_int_equal(b->peak[0], 2 * 4);
    free_simulation(a), free_simulation(b);
    end_paper(&at_once), end_paper(&later);
}

/* ---- shared links ------------------------------------------------------------------------------------------------ */

/* Copies between a task that starts the step and one that ends it; both take no time, and keep the steps apart. */
static struct paper new_copies(int n_devices, int per_link)
{
    struct speeds s = slow;
    s.per_link = per_link;
    struct paper p = new_paper(n_devices, &s);
    add_paper(&p, p.host->lane[LANE_CPU], "start", NULL, NULL, NULL);
    return p;
}

/* An upload to device d that takes `seconds` alone, behind a computation of `after` seconds. */
static void add_upload(struct paper *p, int d, int seconds, int after)
{
    struct device *device = &p->machine->device[d];
    int64_t words = 250 * seconds;
    struct tensor *to = new_bytes(p, device, "to", words, true), *from = new_bytes(p, p->host, "from", words, true);
    add_access(&p->step->tasks[0], from, ACCESS_WRITE);
    if (after)
        add_paper(p, device->lane[LANE_COMPUTE], "before", to, from, NULL)->bytes = (size_t)after * 1000;
    add_copy(p->step, device->lane[LANE_UPLOAD], "copy", to, from);
}

/* Times from the step's start of all tasks in between, the same in every step. */
static void expect_copies(struct paper *p, const struct span *expected, double period)
{
    size_t n = p->step->n;
    struct span *all = allocate(n + 1, sizeof *all);
    struct task *end = add_paper(p, p->host->lane[LANE_CPU], "end", NULL, NULL, NULL);
    for (size_t i = 1; i < n; i++)
        add_access(end, p->step->tasks[i].access[0].tensor, ACCESS_READ);
    p->step->tasks[0].bytes = end->bytes = 0;
    finish_paper(p);
    struct simulation *sim = simulate(p->step, p->costs);
    expect_number("period", sim->period, period);
    for (int iteration = 0; iteration < SIMULATED_STEPS; iteration++) {
        double start = iteration * period;
        all[0] = (struct span){start, start}, all[n] = (struct span){start + period, start + period};
        for (size_t i = 1; i < n; i++)
            all[i] = (struct span){start + expected[i - 1].start, start + expected[i - 1].end};
        expect_times(sim, iteration, all);
    }
    free_simulation(sim), free(all);
    end_paper(p);
}

static void test_copies_share_a_link(void **state)
{
    (void)state;
    struct paper p = new_copies(2, 2); /* together from the start: half speed */
    add_upload(&p, 0, 4, 0), add_upload(&p, 1, 4, 0);
    expect_copies(&p, (struct span[]){{0, 8}, {0, 8}}, 8);
    p = new_copies(2, 1); /* each its own link */
    add_upload(&p, 0, 4, 0), add_upload(&p, 1, 4, 0);
    expect_copies(&p, (struct span[]){{0, 4}, {0, 4}}, 4);
    p = new_copies(3, 2); /* device 2 is on the next link */
    add_upload(&p, 0, 4, 0), add_upload(&p, 1, 4, 0), add_upload(&p, 2, 4, 0);
    expect_copies(&p, (struct span[]){{0, 8}, {0, 8}, {0, 4}}, 8);
    p = new_copies(3, 4); /* three at a third; the short one leaves at 3, and the others have 3 left, at half speed */
    add_upload(&p, 0, 1, 0), add_upload(&p, 1, 4, 0), add_upload(&p, 2, 4, 0);
    expect_copies(&p, (struct span[]){{0, 3}, {0, 9}, {0, 9}}, 9);
}

/* The first has 2 of its 4 s done when the second joins, the rest takes it 4; the second then has 2 left, alone. */
static void test_a_copy_joins_half_way(void **state)
{
    (void)state;
    struct paper p = new_copies(2, 2);
    add_upload(&p, 0, 4, 0), add_upload(&p, 1, 4, 2);
    expect_copies(&p, (struct span[]){{0, 6}, {0, 2}, {2, 8}}, 8);
}

/* A link has two directions, which do not disturb each other. */
static void test_directions_are_links_of_their_own(void **state)
{
    (void)state;
    struct paper p = new_copies(2, 2);
    add_upload(&p, 0, 4, 0);
    struct tensor *from = new_bytes(&p, &p.machine->device[1], "from", 1000, true);
    add_copy(p.step, p.machine->device[1].lane[LANE_DOWNLOAD], "back", new_bytes(&p, p.host, "to", 1000, true), from);
    expect_copies(&p, (struct span[]){{0, 4}, {0, 4}}, 4);
}

/* ---- memory over time -------------------------------------------------------------------------------------------- */

/* Of the readers of x, the one that stands first in the list ends last, when y is there already:
 *
 *     cpu    make x 0-1   make w 1-2   short 2-3 (reads x, w)   make y 3-4   use y 4-5
 *     disk   long 1-11 (reads x)
 *
 * w and y share bytes, x has its own since it lives with w.  Held at most: x and y, 400 + 1600 bytes, and z for good.
 */
static void test_memory_over_time(void **state)
{
    (void)state;
    struct paper p = new_paper(1, &slow);
    struct lane *cpu = p.host->lane[LANE_CPU];
    struct tensor *x = new_bytes(&p, p.host, "x", 100, false), *w = new_bytes(&p, p.host, "w", 200, false);
    struct tensor *y = new_bytes(&p, p.host, "y", 400, false), *z = new_bytes(&p, p.host, "z", 10, true);
    add_paper(&p, cpu, "make x", x, NULL, NULL);
    add_paper(&p, p.host->lane[LANE_DISK], "long", NULL, x, NULL);
    add_paper(&p, cpu, "make w", w, NULL, NULL);
    add_paper(&p, cpu, "short", NULL, x, w);
    add_paper(&p, cpu, "make y", y, NULL, NULL);
    add_paper(&p, cpu, "use y", z, y, NULL);
    finish_paper(&p);
    assert_int_equal(w->address, y->address);
    assert_true(x->address >= y->address + y->bytes);
    struct simulation *sim = simulate_durations(p.step, (double[]){1, 1, 1, 1, 1, 1});
    assert_int_equal(sim->peak[p.host->index], 1600 + 40); /* nothing is long: x has gone when y comes */
    free_simulation(sim);
    sim = simulate_durations(p.step, (double[]){1, 10, 1, 1, 1, 1});
    expect_times(sim, 0, (struct span[]){{0, 1}, {1, 11}, {1, 2}, {2, 3}, {3, 4}, {4, 5}});
    assert_int_equal(sim->peak[p.host->index], 400 + 1600 + 40);
    assert_int_equal(sim->peak[p.device->index], 0);
    free_simulation(sim);
    end_paper(&p);
}

/* ---- relations that hold for every list ------------------------------------------------------------------------- */

static size_t draw(uint64_t seed, uint64_t *count, size_t below)
{
    return (size_t)(random_uniform(seed, STREAM_TEST, 0, (*count)++) * (double)below);
}

enum { RANDOM_TASKS = 40, RANDOM_TENSORS = 12 };

/* Tasks on any lanes of the devices and the host that write one tensor and read what was written before. */
static struct paper random_list(uint64_t seed, const struct speeds *speeds, int n_devices)
{
    struct paper p = new_paper(n_devices, speeds);
    struct tensor *tensor[RANDOM_TENSORS];
    bool written[RANDOM_TENSORS] = {false};
    uint64_t count = 0;
    for (int i = 0; i < RANDOM_TENSORS; i++)
        tensor[i] = new_bytes(&p, p.device, "t", 1 + (int64_t)draw(seed, &count, 300), i % 3 == 0);
    for (int i = 0; i < RANDOM_TASKS; i++) {
        size_t to = draw(seed, &count, RANDOM_TENSORS), from = draw(seed, &count, RANDOM_TENSORS);
        struct lane *lane = &p.machine->lane[draw(seed, &count, (size_t)p.machine->n_lanes)];
        bool reads = from != to && (written[from] || tensor[from]->persistent);
        add_paper(&p, lane, "task", tensor[to], reads ? tensor[from] : NULL, NULL);
        written[to] = true;
    }
    finish_paper(&p);
    return p;
}

static double *random_seconds(size_t n, uint64_t seed)
{
    double *seconds = allocate(n, sizeof *seconds);
    for (size_t i = 0; i < n; i++)
        seconds[i] = floor(16 * random_uniform(seed, STREAM_TEST, 1, i)) / 16; /* exact, and often 0 or equal */
    return seconds;
}

/* The other way to the same times: without shared links a task starts when the last of its predecessors has ended, and
 * these all come before it in the order (iteration, position). */
static void longest_paths(const struct step *s, const double *seconds, struct span *span)
{
    int n = (int)s->n, last[MAX_LANES];
    double iteration_end[SIMULATED_STEPS] = {0};
    memset(last, -1, sizeof last);
    for (int node = 0; node < SIMULATED_STEPS * n; node++) {
        const struct task *t = &s->tasks[node % n];
        double start = node >= 2 * n ? iteration_end[node / n - 2] : 0;
        if (last[t->lane->index] >= 0)
            start = fmax(start, span[last[t->lane->index]].end);
        for (size_t e = 0; e < t->n_edges; e++) {
            int from = node - node % n + (int)t->edges[e].from - (t->edges[e].previous ? n : 0);
            if (t->edges[e].wait && from >= 0)
                start = fmax(start, span[from].end);
        }
        span[node] = (struct span){start, start + seconds[node % n]};
        iteration_end[node / n] = fmax(iteration_end[node / n], span[node].end);
        last[t->lane->index] = node;
    }
}

static void expect_longest_paths(const struct simulation *sim)
{
    struct span *span = allocate(SIMULATED_STEPS * sim->step->n, sizeof *span);
    longest_paths(sim->step, sim->seconds, span);
    for (int i = 0; i < SIMULATED_STEPS; i++)
        expect_times(sim, i, &span[(size_t)i * sim->step->n]);
    free(span);
}

static void test_times_are_longest_paths(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct paper p = random_list(seed, &slow, 2);
        double *seconds = random_seconds(p.step->n, seed);
        struct simulation *sim = simulate_durations(p.step, seconds);
        expect_longest_paths(sim);
        free_simulation(sim), free(seconds);
        end_paper(&p);
    }
}

static void test_durations_times_k(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct paper p = random_list(seed, &slow, 2);
        double *seconds = random_seconds(p.step->n, seed), k = 3;
        struct simulation *once = simulate_durations(p.step, seconds);
        for (size_t i = 0; i < p.step->n; i++)
            seconds[i] *= k;
        struct simulation *thrice = simulate_durations(p.step, seconds);
        expect_number("period", thrice->period, k * once->period);
        for (size_t i = 0; i < SIMULATED_STEPS * p.step->n; i++)
            expect_number("end", thrice->moments[i].end, k * once->moments[i].end);
        free_simulation(once), free_simulation(thrice), free(seconds);
        end_paper(&p);
    }
}

static void test_an_edge_less_never_takes_longer(void **state)
{
    (void)state;
    struct paper p = random_list(7, &slow, 2);
    double *seconds = random_seconds(p.step->n, 7);
    struct simulation *all = simulate_durations(p.step, seconds);
    size_t dropped = 0, shorter = 0;
    for (size_t i = 0; i < p.step->n; i++)
        for (size_t e = 0; e < p.step->tasks[i].n_edges; e++) {
            struct edge *edge = &p.step->tasks[i].edges[e];
            if (!edge->wait)
                continue;
            edge->wait = false;
            struct simulation *less = simulate_durations(p.step, seconds);
            for (size_t k = 0; k < SIMULATED_STEPS * p.step->n; k++)
                assert_true(less->moments[k].end <= all->moments[k].end);
            shorter += less->moments[3 * p.step->n - 1].end < all->moments[3 * p.step->n - 1].end;
            free_simulation(less);
            edge->wait = true;
            dropped++;
        }
    assert_true(dropped > 20 && shorter > 0);
    free_simulation(all), free(seconds);
    end_paper(&p);
}

/* What a copy gets of its link while it runs: 1/k of the time in which k copies of its link run. */
static double share_of(const struct simulation *sim, size_t node, const int *link)
{
    size_t n = sim->step->n;
    const struct moment *m = &sim->moments[node];
    double got = 0, next;
    for (double from = m->start; from < m->end; from = next) {
        size_t together = 0;
        next = m->end;
        for (size_t k = 0; k < SIMULATED_STEPS * n; k++) {
            const struct moment *o = &sim->moments[k];
            if (link[k % n] != link[node % n] || o->end <= from)
                continue;
            next = fmin(next, o->start > from ? o->start : o->end);
            together += o->start <= from;
        }
        got += (next - from) / (double)together;
    }
    return got;
}

/* Four devices on one link: every copy gets its work done, in the time that its share takes and no other. */
static void test_random_copies_share_evenly(void **state)
{
    (void)state;
    struct speeds speeds = slow;
    double work = 0, time = 0;
    speeds.per_link = 4;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct paper p = random_list(seed, &speeds, 4);
        int link[RANDOM_TASKS];
        for (int i = 0; i < RANDOM_TASKS; i++) {
            enum trace_lane_kind kind = p.step->tasks[i].lane->kind;
            link[i] = kind == LANE_UPLOAD ? 1 : kind == LANE_DOWNLOAD ? 2 : 3 + i; /* no link: alone */
        }
        struct simulation *sim = simulate(p.step, p.costs);
        for (size_t node = 0; node < SIMULATED_STEPS * RANDOM_TASKS; node++) {
            expect_number("work done", share_of(sim, node, link), sim->seconds[node % RANDOM_TASKS]);
            work += sim->seconds[node % RANDOM_TASKS];
            time += sim->moments[node].end - sim->moments[node].start;
        }
        free_simulation(sim);
        end_paper(&p);
    }
    assert_true(time > 1.02 * work); /* links were in fact shared */
}

/* ---- the builder's lists ----------------------------------------------------------------------------------------- */

/* A tiny model on `ranks` devices of the description at `path`, planned only; two micro-batches on each. */
static struct trainer *plan_tiny(const char *path, int ranks)
{
    static char mesh[16];
    struct settings *s = default_settings();
    s->layers = 2, s->heads = 2, s->channels = 32, s->seq_len = 16;
    s->batch = 2 * ranks, s->micro_batch = 1;
    s->hardware = path;
    s->verify = s->simulate = true;
    snprintf(mesh, sizeof mesh, "dp=%d", ranks);
    s->mesh = mesh;
    return new_trainer(s, LIST_TRAIN, false, true);
}

static const struct speeds plausible = {
    .per_link = 2, .bytes_per_s = 1e10, .launch = 1e-6, .link = 1e8, .latency = 1e-5};

/* One device shares no link: predicting with costs is predicting with the durations that the costs give. */
static void test_simulate_is_simulate_durations(void **state)
{
    (void)state;
    struct trainer *t = plan_tiny(write_hardware("tiny.txt", &plausible), 1);
    struct simulation *a = simulate(t->train, t->costs), *b = simulate_durations(t->train, a->seconds);
    assert_memory_equal(a->moments, b->moments, SIMULATED_STEPS * t->train->n * sizeof *a->moments);
    assert_true(a->period == b->period && a->period > 0);
    assert_memory_equal(a->busy, b->busy, sizeof a->busy);
    assert_memory_equal(a->peak, b->peak, sizeof a->peak);
    assert_int_equal(a->by_source[COST_MODELLED], t->train->n);
    expect_longest_paths(a);
    free_simulation(a), free_simulation(b);
    free_trainer(t);
}

static bool on_link(const struct task *t) { return t->lane->kind == LANE_UPLOAD || t->lane->kind == LANE_DOWNLOAD; }

/* Four devices in pairs on links that take no time: what remains is the longest path of the computations. */
static void test_free_links_leave_the_compute_path(void **state)
{
    (void)state;
    struct speeds free_links = plausible;
    free_links.link = 1e30, free_links.latency = 0;
    struct trainer *t = plan_tiny(write_hardware("free.txt", &free_links), 4);
    struct trainer *slower = plan_tiny(write_hardware("tiny.txt", &plausible), 4);
    struct simulation *sim = simulate(t->train, t->costs), *bound = simulate(slower->train, slower->costs);
    for (size_t i = 0; i < t->train->n; i++)
        if (on_link(&t->train->tasks[i])) {
            assert_true(sim->seconds[i] < 1e-20);
            sim->seconds[i] = 0;
        }
    expect_longest_paths(sim);
    assert_true(bound->period > 1.5 * sim->period); /* with real links, the copies are what counts */
    for (int d = 0; d < 4; d++) {
        double busy = sim->busy[t->machine->device[d].lane[LANE_COMPUTE]->index];
        assert_true(busy > 0 && busy <= sim->period * (1 + 1e-9));
    }
    free_simulation(sim), free_simulation(bound);
    free_trainer(t), free_trainer(slower);
}

static void test_the_shipped_hardware(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int ranks;
    } shipped[] = {{"laptop", 1}, {"workstation", 1}, {"server", 8}};
    for (size_t i = 0; i < COUNT(shipped); i++) {
        char *path = format_string("data/hardware/%s.txt", shipped[i].name);
        struct trainer *t = plan_tiny(path, shipped[i].ranks);
        assert_string_equal(t->costs->name, shipped[i].name);
        struct simulation *sim = simulate(t->train, t->costs);
        assert_true(sim->period > 1e-6 && sim->period < 1);
        assert_int_equal(sim->by_source[COST_MODELLED], t->train->n);
        for (int d = 0; d <= t->machine->n_devices; d++)
            assert_in_range(sim->peak[d], 1, t->machine->device[d].budget);
        char *wrong = verify(t->train, t->values);
        if (wrong)
            test_failed("%s: %s\n", path, wrong);
        free_simulation(sim), free(path);
        free_trainer(t);
    }
}

/* ---- lists that were broken on purpose --------------------------------------------------------------------------- */

/* Place and order the list again, as is done behind passes. */
static void finish_again(struct trainer *t)
{
    for (size_t i = 0; i < t->pool->n; i++) {
        struct tensor *x = t->pool->tensors[i];
        x->step = NULL;
        x->first = INT32_MAX;
        x->last = x->slab = -1;
    }
    place(t->pool, &t->train, 1, true);
    depend(t->train, true);
}

static struct trainer *plan_two(void) { return plan_tiny(write_hardware("tiny.txt", &plausible), 2); }

/* The sentence of the checker, which must not be silent and names `part`. */
static void expect_wrong(const char *what, char *wrong, const char *part)
{
    if (!wrong || !strstr(wrong, part))
        test_failed("%s: expected \"%s\", got: %s\n", what, part, wrong ? wrong : "nothing wrong");
    free(wrong);
}

static void expect_right(const char *what, char *wrong)
{
    if (wrong)
        test_failed("%s: %s\n", what, wrong);
}

/* Caught by verify(): order.  The values are those of the list's own order, so nothing is wrong with them. */
static void test_a_dropped_wait(void **state)
{
    (void)state;
    struct trainer *t = plan_two();
    size_t waits = 0;
    expect_right("whole", verify(t->train, t->values));
    for (size_t i = 0; i < t->train->n; i++)
        for (size_t e = 0; e < t->train->tasks[i].n_edges; e++) {
            struct edge *edge = &t->train->tasks[i].edges[e];
            if (!edge->wait || waits++ % 4)
                continue;
            edge->wait = false;
            expect_wrong(t->train->tasks[i].name, verify(t->train, NULL), "nothing orders them");
            edge->wait = true;
        }
    assert_true(waits > 40);
    expect_right("values", compare_values(t->values, t->train));
    free_trainer(t);
}

static void move_task(struct step *s, size_t from, size_t to)
{
    struct task t = s->tasks[from];
    if (from < to)
        memmove(&s->tasks[from], &s->tasks[from + 1], (to - from) * sizeof t);
    else
        memmove(&s->tasks[to + 1], &s->tasks[to], (from - to) * sizeof t);
    s->tasks[to] = t;
}

static bool overlap(const struct tensor *a, const struct tensor *b)
{
    return a->root == b->root && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* The last task before i that writes what i reads, or -1. */
static int producer_of(const struct step *s, int i, const struct tensor *x)
{
    for (int k = i - 1; k >= 0; k--)
        for (int a = 0; a < s->tasks[k].n_access; a++)
            if (overlap(s->tasks[k].access[a].tensor, x) && (s->tasks[k].access[a].mode & ACCESS_WRITE))
                return k;
    return -1;
}

/* Caught by compare_values(): it reads another value, or what is not yet written.  Placed and ordered as it now stands,
 * the list is in itself sound wherever the tensor persists, so verify() alone may have nothing to say. */
static void test_a_task_before_its_producer(void **state)
{
    (void)state;
    struct trainer *t = plan_two();
    struct step *s = t->train;
    size_t moved = 0, by_verify = 0;
    for (int i = 0; i < (int)s->n; i += 3)
        for (int a = 0; a < s->tasks[i].n_access; a++) {
            const struct access *x = &s->tasks[i].access[a];
            int k = x->mode & ACCESS_READ ? producer_of(s, i, x->tensor) : -1;
            if (k < 0)
                continue;
            move_task(s, (size_t)i, (size_t)k);
            finish_again(t);
            char *wrong = verify(s, NULL);
            by_verify += wrong != NULL;
            free(wrong);
            expect_wrong(s->tasks[k].name, compare_values(t->values, s), "reads");
            move_task(s, (size_t)k, (size_t)i);
            moved++;
            break;
        }
    assert_true(moved > 50 && by_verify > moved / 2);
    finish_again(t);
    expect_right("moved back", verify(s, t->values));
    free_trainer(t);
}

static bool same_task(const struct task *a, const struct task *b)
{
    return a->layer == b->layer && a->lane == b->lane && strcmp(a->name, b->name) == 0;
}

/* Caught by compare_values(): both tensors are written and live, so the list is sound in itself. */
static void test_the_wrong_micro_batch(void **state)
{
    (void)state;
    struct trainer *t = plan_two();
    struct step *s = t->train;
    size_t tried = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < i && s->tasks[i].micro == 1; k++) {
            if (s->tasks[k].micro != 0 || !same_task(&s->tasks[i], &s->tasks[k]))
                continue;
            for (int a = 0; a < s->tasks[i].n_access; a++) {
                struct access *x = &s->tasks[i].access[a];
                struct tensor *right = x->tensor, *wrong = s->tasks[k].access[a].tensor;
                if (x->mode != ACCESS_READ || right == wrong)
                    continue;
                x->tensor = wrong;
                expect_wrong(s->tasks[i].name, compare_values(t->values, s), "reads other values");
                x->tensor = right;
                tried++;
            }
        }
    assert_true(tried > 50);
    free_trainer(t);
}

/* A tensor that is written once and read later, up to its end. */
static bool is_simple(const struct step *s, const struct tensor *x)
{
    size_t writes = 0;
    bool read_last = false;
    if (x->root != x || x->persistent || x->step != s || x->last <= x->first + 1)
        return false;
    for (int i = x->first; i <= x->last; i++)
        for (int a = 0; a < s->tasks[i].n_access; a++)
            if (s->tasks[i].access[a].tensor->root == x) {
                writes += (s->tasks[i].access[a].mode & ACCESS_WRITE) != 0;
                read_last = s->tasks[i].access[a].mode == ACCESS_READ;
            }
    return writes == 1 && read_last;
}

/* Caught by verify(): bytes.  As if the life of x had ended too early: another tensor, which is first written while x
 * is still to be read, lies on its bytes.  `from` and `to`: how far before x's last reader. */
static size_t free_early(struct trainer *t, int from, int to)
{
    size_t tried = 0;
    for (size_t i = 0; i < t->pool->n; i++) {
        const struct tensor *x = t->pool->tensors[i];
        for (size_t k = 0; is_simple(t->train, x) && k < t->pool->n; k++) {
            struct tensor *y = t->pool->tensors[k];
            if (y == x || y->root != y || y->step != t->train || y->device != x->device || y->bytes > x->bytes ||
                y->first <= x->first || y->first < x->last - from || y->first > x->last - to)
                continue;
            size_t address = y->address;
            int slab = y->slab;
            y->address = x->address, y->slab = x->slab;
            depend(t->train, true);
            expect_right(x->name, compare_values(t->values, t->train)); /* which looks at no addresses */
            expect_wrong(x->name, verify(t->train, NULL), "tensor");
            y->address = address, y->slab = slab;
            tried++;
            break;
        }
    }
    depend(t->train, true);
    return tried;
}

static void test_freed_too_early(void **state)
{
    (void)state;
    struct trainer *t = plan_two();
    assert_true(free_early(t, 1 << 20, 1) > 30);
    expect_right("mended", verify(t->train, t->values));
    free_trainer(t);
}

/* The last reader of x itself writes y onto x's bytes: a kernel reads them in any order, so that is wrong as well. */
static void test_freed_one_task_too_early(void **state)
{
    (void)state;
    struct trainer *t = plan_two();
    assert_true(free_early(t, 0, 0) > 5);
    free_trainer(t);
}

/* ---- swapping: copies that change nothing, and such that do -------------------------------------------------------
 */

/* a goes out to h and comes back as b, which g reads; w persists.
 *
 *     f   compute    a          out  download  h <- a        in  upload  b <- h        g  compute  w <- b
 */
struct swap {
    struct paper paper;
    struct values *plain; /* of the list without the copies */
    struct tensor *a, *b, *h;
};

static struct swap new_swap(bool h_persists)
{
    struct swap s = {.paper = new_paper(1, &slow)};
    struct paper *p = &s.paper;
    struct lane *compute = p->device->lane[LANE_COMPUTE];
    s.a = new_bytes(p, p->device, "a", 8, false), s.b = new_bytes(p, p->device, "b", 8, false);
    s.h = new_bytes(p, p->host, "h", 8, h_persists);
    struct tensor *w = new_bytes(p, p->device, "w", 8, true);
    add_paper(p, compute, "f", s.a, w, NULL);
    add_paper(p, compute, "g", w, s.a, NULL);
    s.plain = number_values(p->step);
    add_copy(p->step, p->device->lane[LANE_DOWNLOAD], "out", s.h, s.a);
    add_copy(p->step, p->device->lane[LANE_UPLOAD], "in", s.b, s.h);
    move_task(p->step, 1, 3);
    p->step->tasks[3].access[1].tensor = s.b;
    return s;
}

static void order_swap(struct swap *s)
{
    place(s->paper.pool, &s->paper.step, 1, true);
    depend(s->paper.step, true);
}

static void end_swap(struct swap *s)
{
    free_values(s->plain);
    end_paper(&s->paper);
}

static void test_a_swap_computes_the_same(void **state)
{
    (void)state;
    struct swap s = new_swap(false);
    order_swap(&s);
    expect_right("swap", verify(s.paper.step, s.plain));
    end_swap(&s);
}

/* Caught by both when h is new in every step; by compare_values() alone when h keeps what the last step left there. */
static void test_swapped_in_before_out(void **state)
{
    (void)state;
    for (int persists = 0; persists < 2; persists++) {
        struct swap s = new_swap(persists);
        move_task(s.paper.step, 2, 1);
        order_swap(&s);
        expect_wrong("in before out", compare_values(s.plain, s.paper.step), persists ? "other values" : "tensor h");
        if (persists)
            expect_right("sound in itself", verify(s.paper.step, NULL));
        else
            expect_wrong("in before out", verify(s.paper.step, NULL), "tensor h before anything is written");
        end_swap(&s);
    }
}

/* g writes over the bytes that `in` brings before f of the next step has them, and such: every wait is needed here. */
static void test_a_swap_needs_its_waits(void **state)
{
    (void)state;
    struct swap s = new_swap(false);
    order_swap(&s);
    for (size_t i = 0; i < s.paper.step->n; i++)
        for (size_t e = 0; e < s.paper.step->tasks[i].n_edges; e++) {
            struct edge *edge = &s.paper.step->tasks[i].edges[e];
            if (!edge->wait)
                continue;
            edge->wait = false;
            expect_wrong(s.paper.step->tasks[i].name, verify(s.paper.step, s.plain), "nothing orders them");
            edge->wait = true;
        }
    end_swap(&s);
}

/* Caught by compare_values(): a is written again behind the copy, so b is an old value; or the copy takes w. */
static void test_a_swap_of_another_value(void **state)
{
    (void)state;
    struct swap s = new_swap(false);
    s.paper.step->tasks[1].access[1].tensor = s.paper.step->tasks[0].access[1].tensor; /* out: h <- w */
    order_swap(&s);
    expect_right("sound in itself", verify(s.paper.step, NULL));
    expect_wrong("w in place of a", compare_values(s.plain, s.paper.step), "task 3 g");
    end_swap(&s);
}

/* Half of a goes out and comes back as a tensor of its own: values are known by part. */
static void test_a_swap_of_a_part(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++) {
        struct swap s = new_swap(false);
        struct paper *p = &s.paper;
        struct tensor *h = new_bytes(p, p->host, "half", 4, false), *back = new_bytes(p, p->device, "back", 4, false);
        struct tensor *left = new_view(p->pool, s.a, "left", 0, SHAPE(4));
        struct tensor *right = new_view(p->pool, s.a, "right", 4, SHAPE(4));
        struct task *t = p->step->tasks;
        t[3].access[1].tensor = right;
        struct task without[] = {t[0], t[3]};
        struct step plain = *p->step;
        plain.tasks = without, plain.n = COUNT(without);
        free_values(s.plain);
        s.plain = number_values(&plain);
        t[1].access[0].tensor = h, t[1].access[1].tensor = wrong ? left : right;
        t[2].access[0].tensor = back, t[2].access[1].tensor = h;
        t[3].access[1].tensor = back;
        order_swap(&s);
        if (wrong)
            expect_wrong("the left half", compare_values(s.plain, p->step), "task 3 g");
        else
            expect_right("the right half", verify(p->step, s.plain));
        end_swap(&s);
    }
}

/* In a real list: an activation of the forward pass goes out behind its first reader and comes back, as a new tensor,
 * in front of its last one. */
static void swap_tensor(struct trainer *t, struct tensor *x, int out, int in)
{
    struct step *s = t->train;
    struct tensor *h = new_tensor(t->pool, t->machine->host, x->class, "swapped", x->element, x->rank, x->shape);
    struct tensor *back = new_tensor(t->pool, x->device, x->class, x->name, x->element, x->rank, x->shape);
    for (int i = in; i <= x->last; i++)
        for (int a = 0; a < s->tasks[i].n_access; a++)
            if (s->tasks[i].access[a].tensor == x)
                s->tasks[i].access[a].tensor = back;
    add_copy(s, x->device->lane[LANE_DOWNLOAD], "swap.out", h, x);
    move_task(s, s->n - 1, (size_t)out);
    add_copy(s, x->device->lane[LANE_UPLOAD], "swap.in", back, h);
    move_task(s, s->n - 1, (size_t)in + 1);
}

static bool has_views(const struct trainer *t, const struct tensor *x)
{
    for (size_t i = 0; i < t->pool->n; i++)
        if (t->pool->tensors[i]->root == x && t->pool->tensors[i] != x)
            return true;
    return false;
}

static void test_swapping_activations_of_training(void **state)
{
    (void)state;
    struct trainer *t = plan_two();
    size_t n = t->pool->n, swapped = 0, tasks = t->train->n;
    for (size_t i = 0; i < n && swapped < 12; i++) {
        struct tensor *x = t->pool->tensors[i];
        if (!is_simple(t->train, x) || x->device->is_host || has_views(t, x) || x->last - x->first < 20)
            continue;
        swap_tensor(t, x, x->first + 1, x->last);
        finish_again(t);
        expect_right(x->name, compare_values(t->values, t->train));
        swapped++;
    }
    assert_int_equal(swapped, 12);
    assert_int_equal(t->train->n, tasks + 2 * swapped);
    expect_right("all of them", verify(t->train, t->values));
    struct simulation *sim = simulate(t->train, t->costs);
    assert_true(sim->period > 0);
    free_simulation(sim);
    free_trainer(t);
}

/* What persists is a result too: a copy to it counts although no task of the list reads it. */
static void test_a_copy_that_is_left_out(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++) {
        struct paper p = new_paper(1, &slow);
        struct tensor *x = new_bytes(&p, p.device, "x", 8, false), *y = new_bytes(&p, p.device, "y", 8, false);
        struct tensor *result = new_bytes(&p, p.host, "result", 8, true);
        add_paper(&p, p.device->lane[LANE_COMPUTE], "make x", x, NULL, NULL);
        add_paper(&p, p.device->lane[LANE_COMPUTE], "make y", y, x, NULL);
        add_copy(p.step, p.device->lane[LANE_DOWNLOAD], "keep", result, y);
        struct values *values = number_values(p.step);
        if (wrong)
            p.step->tasks[2].access[1].tensor = x;
        else
            p.step->n--;
        expect_wrong(wrong ? "another tensor is kept" : "nothing is kept", compare_values(values, p.step), "");
        p.step->n = 3;
        free_values(values);
        end_paper(&p);
    }
}

/* ---- files of costs ---------------------------------------------------------------------------------------------- */

static const char profile_text[] = "# made by hand\n"
                                   "device = some device\ndriver = 1.0\nengine = own\nunits = 2\nvector = 8\n"
                                   "shape = small # and round\n\n"
                                   "link upload = 1e9 1e-6\nlink download = 2e9 2e-6\n"
                                   "memory work = 4096\n"
                                   "task small compute = 1000 100 400\n"
                                   "task small compute = 5000 900 4000\n"
                                   "task move upload = 3000 0 800\n"
                                   "task read cpu = 2000 0 100\n";

static void read_file(void *path) { free_costs(read_costs(path)); }

static void test_a_profile_is_read(void **state)
{
    (void)state;
    struct costs *c = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    assert_true(c->measured && c->units == 2 && c->vector == 8 && c->n_tasks == 4);
    assert_string_equal(c->device, "some device");
    assert_string_equal(c->shape, "small");
    assert_true(c->link[LANE_UPLOAD].bytes_per_s == 1e9 && c->link[LANE_DOWNLOAD].latency == 2e-6);
    assert_true(c->peak_memory[MEM_WORK] == 4096);
    assert_true(c->tasks[1].ns == 5000 && c->tasks[1].flops == 900 && c->tasks[1].lane == LANE_COMPUTE);
    const char *again = temp_path("again.txt");
    write_profile(again, c, c->shape);
    struct costs *copy = read_costs(again);
    assert_int_equal(copy->n_tasks, c->n_tasks);
    assert_memory_equal(copy->tasks, c->tasks, c->n_tasks * sizeof *c->tasks);
    assert_memory_equal(copy->link, c->link, sizeof c->link);
    assert_memory_equal(copy->peak_memory, c->peak_memory, sizeof c->peak_memory);
    assert_string_equal(copy->driver, "1.0");
    free_costs(copy), free_costs(c);
}

/* One line of a good file is replaced: the mistake is named with file and line. */
static void expect_bad_line(const char *good, const char *line, const char *bad)
{
    char part[64];
    const char *at = strstr(good, line);
    assert_non_null(at);
    int number = 1;
    for (const char *c = good; c < at; c++)
        number += *c == '\n';
    char *text = format_string("%.*s%s%s", (int)(at - good), good, bad, at + strcspn(at, "\n"));
    snprintf(part, sizeof part, "bad.txt, line %d: ", number);
    expect_refusal(read_file, (void *)write_file("bad.txt", text, strlen(text)), EXIT_USAGE, part);
    free(text);
}

static void test_bad_lines_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *line, *bad;
    } cases[] = {
        {"units", "units = 0"},
        {"units", "units = two"},
        {"units", "units"},
        {"units", "cores = 2"},
        {"device", "device ="},
        {"link up", "link upload = 1e9"},
        {"link up", "link upload = 0 1e-6"},
        {"link up", "link upload = 1e9 -1"},
        {"link up", "link upload = inf 0"},
        {"link up", "link upload = 1e9 inf"},
        {"link up", "link upload = 1e9 1e-6 s"},
        {"link up", "link sideways = 1e9 1e-6"},
        {"memory", "memory of work = 4096"},
        {"memory", "memory work = much"},
        {"task move", "task move upload = 0 0 800"},
        {"task move", "task move upload = 3000 0"},
        {"task move", "task move upload = 3000 0 800 5"},
        {"task move", "task move upload = inf 0 800"},
        {"task move", "task move upload = nan 0 800"},
        {"task move", "task move upload = 3000 -1 800"},
        {"task move", "task move = 3000 0 800"},
        {"task move", "task move sideways = 3000 0 800"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_bad_line(profile_text, cases[i].line, cases[i].bad);
}

static void test_bad_lines_of_hardware(void **state)
{
    (void)state;
    static const char *const bad[] = {"flops = fast", "flops = -1", "flops = inf", "flops = nan", "flops = 1e999"};
    char *good = format_string(hardware_text, 2, 1e9, 1e-6, 1e9, 1e-6, 1e9, 1e-6, 1e9, 1e-6);
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_bad_line(good, "flops", bad[i]);
    expect_bad_line(good, "memory", "memory = 0");
    expect_bad_line(good, "memory", "memory = 12 apples");
    expect_bad_line(good, "devices =", "devices = 1.5");
    free(good);
}

/* Without line i, the file is refused, and what is missing named. */
static void test_missing_lines_are_named(void **state)
{
    (void)state;
    static const char *const needed[] = {"device", "driver", "engine", "units", "vector", "shape", "link upload"};
    for (size_t i = 0; i < COUNT(needed); i++) {
        const char *at = strstr(profile_text, needed[i]), *name = needed[i];
        char part[64];
        char *text = format_string("%.*s%s", (int)(at - profile_text), profile_text, at + strcspn(at, "\n"));
        snprintf(part, sizeof part, "lack.txt: `%s", name);
        expect_refusal(read_file, (void *)write_file("lack.txt", text, strlen(text)), EXIT_USAGE, part);
        free(text);
    }
    expect_refusal(read_file, (void *)"no/such/file", EXIT_IO, "no/such/file");
    expect_refusal(read_file, (void *)"tests", EXIT_IO, "tests");
    expect_refusal(read_file, (void *)write_file("empty.txt", "", 0), EXIT_USAGE, "empty.txt");
}

static void expect_cost(const struct costs *c, const struct task *t, double ns, enum cost_source source)
{
    enum cost_source found;
    expect_number(t->name, 1e9 * task_seconds(c, t, &found), ns);
    assert_int_equal(found, source);
}

static struct task paper_task(struct lane *lane, const char *name, double flops, size_t bytes)
{
    struct task t = {.lane = lane, .flops = flops, .bytes = bytes};
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

/* small: 1000 ns at 100 FLOPs and 400 bytes, 5000 at 900 and 4000; the lane as a whole: 6000 ns for 4400 bytes. */
static void test_costs_of_a_profile(void **state)
{
    (void)state;
    struct costs *c = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    struct paper p = new_paper(1, &slow);
    struct lane *compute = p.device->lane[LANE_COMPUTE], *cpu = p.host->lane[LANE_CPU];
    struct task same = paper_task(compute, "small", 100, 400), other = paper_task(compute, "small", 900, 4000);
    struct task near_small = paper_task(compute, "small", 200, 500),
                near_large = paper_task(compute, "small", 450, 3000);
    struct task unseen = paper_task(compute, "unheard of", 5, 8800), host = paper_task(cpu, "read", 0, 201);
    expect_cost(c, &same, 1000, COST_MEASURED);
    expect_cost(c, &other, 5000, COST_MEASURED);
    expect_cost(c, &near_small, 2000, COST_SCALED); /* by FLOPs, from the nearest in bytes */
    expect_cost(c, &near_large, 2500, COST_SCALED);
    expect_cost(c, &unseen, 12000, COST_SCALED);
    expect_cost(c, &host, 4000, COST_SCALED); /* by bytes + 1 */
    c->scale_device = 2, c->scale_cpu = 4;
    expect_cost(c, &same, 500, COST_MEASURED);
    expect_cost(c, &unseen, 6000, COST_SCALED);
    expect_cost(c, &host, 1000, COST_SCALED);
    end_paper(&p);
    free_costs(c);
}

/* A copy: 800 bytes to the device, 1600 with what is read.  `link` alone changes it, `device` does not. */
static void test_costs_of_copies(void **state)
{
    (void)state;
    struct costs *c = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    struct paper p = new_paper(1, &slow);
    struct tensor *to = new_bytes(&p, p.device, "to", 200, true), *from = new_bytes(&p, p.host, "from", 200, true);
    struct task known = *add_copy(p.step, p.device->lane[LANE_UPLOAD], "move", to, from);
    struct task unknown = *add_copy(p.step, p.device->lane[LANE_DOWNLOAD], "back", from, to);
    known.bytes = 800;
    expect_cost(c, &known, 3000, COST_MEASURED);
    expect_cost(c, &unknown, 2000 + 400, COST_MEASURED); /* latency + 800 bytes at 2e9 bytes/s */
    c->scale_device = 10;
    expect_cost(c, &known, 3000, COST_MEASURED);
    expect_cost(c, &unknown, 2400, COST_MEASURED);
    c->scale_link = 2;
    expect_cost(c, &known, 1500, COST_MEASURED);
    expect_cost(c, &unknown, 2000 + 200, COST_MEASURED);
    end_paper(&p);
    free_costs(c);
}

/* On hardware: launch + the longer of computing and moving, on a host core launch + moving. */
static void test_costs_by_the_roofline(void **state)
{
    (void)state;
    struct paper p = new_paper(1, &(struct speeds){1, 1e9, 1e-6, 1e9, 5e-6}); /* 0.5 TFLOP/s, 1 GB/s, 1 us */
    struct lane *compute = p.device->lane[LANE_COMPUTE];
    struct task flops = paper_task(compute, "flops", 5e8, 1000), bytes = paper_task(compute, "bytes", 1000, 4000);
    struct task host = paper_task(p.host->lane[LANE_CPU], "host", 0, 2000);
    expect_cost(p.costs, &flops, 1000 + 1e6, COST_MODELLED);
    expect_cost(p.costs, &bytes, 1000 + 4000, COST_MODELLED);
    expect_cost(p.costs, &host, 1000 + 2000, COST_MODELLED);
    apply_what_if(p.costs, p.machine, "device=2x cpu=0.5x");
    expect_cost(p.costs, &flops, 1000 + 5e5, COST_MODELLED);
    expect_cost(p.costs, &bytes, 1000 + 2000, COST_MODELLED);
    expect_cost(p.costs, &host, 2000 + 4000, COST_MODELLED);
    end_paper(&p);
}

static void ask_what_if(void *words)
{
    struct paper p = new_paper(1, &slow);
    apply_what_if(p.costs, p.machine, words);
}

static void test_what_if(void **state)
{
    (void)state;
    static const char *const bad[] = {"link",    "link=",    "link=fast", "link=0x", "link=-1x", "link=infx",
                                      "link=2y", "link=2xx", "mem=0",     "mem=8Q",  "gpu=2x",   "link=2x cpu"};
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_refusal(ask_what_if, (void *)bad[i], EXIT_USAGE, "--what-if: '");
    struct paper p = new_paper(2, &slow);
    size_t host = p.host->budget;
    apply_what_if(p.costs, p.machine, "link=2x, cpu=0.5 device=1.5x mem=8K");
    assert_true(p.costs->scale_link == 2 && p.costs->scale_cpu == 0.5 && p.costs->scale_device == 1.5);
    assert_true(p.machine->device[0].budget == 8192 && p.machine->device[1].budget == 8192 && p.host->budget == host);
    end_paper(&p);
}

static void check_print(void *changed)
{
    struct costs *c = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    struct device d = {.name = "some device", .units = 2};
    free(c->driver);
    c->driver = copy_string(""); /* as of a device without a driver */
    if (strcmp(changed, "device") == 0)
        snprintf(d.name, sizeof d.name, "another");
    if (strcmp(changed, "units") == 0)
        d.units = 4;
    check_fingerprint(c, &d, strcmp(changed, "engine") ? "own" : "clblast");
    free_costs(c);
}

static void test_another_fingerprint_is_refused(void **state)
{
    (void)state;
    expect_refusal(check_print, (void *)"device", EXIT_USAGE, "device \"some device\", this run has \"another\"");
    expect_refusal(check_print, (void *)"units", EXIT_USAGE, "units \"2\", this run has \"4\"");
    expect_refusal(check_print, (void *)"engine", EXIT_USAGE, "engine \"own\", this run has \"clblast\"");
    assert_int_equal(run_child(check_print, (void *)"nothing").code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_profile_is_read),
        cmocka_unit_test(test_bad_lines_are_named),
        cmocka_unit_test(test_bad_lines_of_hardware),
        cmocka_unit_test(test_missing_lines_are_named),
        cmocka_unit_test(test_costs_of_a_profile),
        cmocka_unit_test(test_costs_of_copies),
        cmocka_unit_test(test_costs_by_the_roofline),
        cmocka_unit_test(test_what_if),
        cmocka_unit_test(test_another_fingerprint_is_refused),
        cmocka_unit_test(test_two_lanes_by_hand),
        cmocka_unit_test(test_two_iterations_are_in_flight),
        cmocka_unit_test(test_a_lane_blocks_behind_a_task_that_waits),
        cmocka_unit_test(test_list_position_decides_when_bytes_are_held),
        cmocka_unit_test(test_copies_share_a_link),
        cmocka_unit_test(test_a_copy_joins_half_way),
        cmocka_unit_test(test_directions_are_links_of_their_own),
        cmocka_unit_test(test_memory_over_time),
        cmocka_unit_test(test_times_are_longest_paths),
        cmocka_unit_test(test_durations_times_k),
        cmocka_unit_test(test_an_edge_less_never_takes_longer),
        cmocka_unit_test(test_simulate_is_simulate_durations),
        cmocka_unit_test(test_free_links_leave_the_compute_path),
        cmocka_unit_test(test_random_copies_share_evenly),
        cmocka_unit_test(test_the_shipped_hardware),
        cmocka_unit_test(test_a_dropped_wait),
        cmocka_unit_test(test_a_task_before_its_producer),
        cmocka_unit_test(test_the_wrong_micro_batch),
        cmocka_unit_test(test_freed_too_early),
        cmocka_unit_test(test_freed_one_task_too_early),
        cmocka_unit_test(test_a_swap_computes_the_same),
        cmocka_unit_test(test_swapped_in_before_out),
        cmocka_unit_test(test_a_swap_needs_its_waits),
        cmocka_unit_test(test_a_swap_of_another_value),
        cmocka_unit_test(test_a_swap_of_a_part),
        cmocka_unit_test(test_swapping_activations_of_training),
        cmocka_unit_test(test_a_copy_that_is_left_out),
    };
    return cmocka_run_group_tests_name("simulate", tests, NULL, NULL);
}
