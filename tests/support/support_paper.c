#include "support_paper.h"

#include <math.h>

/* ---- hardware ---------------------------------------------------------------------------------------------------- */

const struct speeds slow_speeds = {.per_link = 1, .bytes_per_s = 1e3, .launch = 1e-300, .link = 1e3};
const struct speeds plausible_speeds = {
    .per_link = 2, .bytes_per_s = 1e10, .launch = 1e-6, .link = 1e8, .latency = 1e-5};

static const char hardware_format[] = "hardware = paper\ndevices = 8\ndevices_per_link = %d\nflops = 1e12\n"
                                      "efficiency = 0.5\nbandwidth = %g\nlaunch = %g\nhost_bandwidth = %g\n"
                                      "host_launch = %g\nlink upload = %g %g\nlink download = %g %g\n"
                                      "memory = 1G\nhost_memory = 1G\n";

char *hardware_text(const struct speeds *s)
{
    return format_string(hardware_format, s->per_link, s->bytes_per_s, s->launch, s->bytes_per_s, s->launch, s->link,
                         s->latency, s->link, s->latency);
}

const char *write_hardware(const char *name, const struct speeds *s)
{
    char *text = hardware_text(s);
    const char *path = write_file(name, text, strlen(text));
    free(text);
    return path;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

struct paper new_paper(int n_devices, const struct speeds *s)
{
    struct paper p = {.costs = read_costs(write_hardware("paper.txt", s))};
    p.machine = virtual_machine(p.costs, n_devices);
    p.device = &p.machine->device[0];
    p.host = p.machine->host;
    p.pool = new_pool(p.machine);
    p.step = new_step(p.pool, "paper");
    return p;
}

void end_paper(struct paper *p)
{
    free_list(p->step);
    free_costs(p->costs);
}

struct tensor *new_bytes(struct paper *p, struct device *d, const char *name, int64_t words, bool persistent)
{
    const struct tensor_form form = {
        .device = d,
        .class = MEM_ACTIVATIONS,
        .name = name,
        .shape = SHAPE(words),
    };
    struct tensor *t = new_tensor(p->pool, &form);
    t->persistent = persistent;
    return t;
}

static void no_work(void *context, const struct task *t, uint32_t number)
{
    (void)context;
    (void)t;
    (void)number;
}

struct task *add_paper(struct paper *p, struct lane *lane, const char *name, struct tensor *writes,
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

void finish_paper(struct paper *p)
{
    must(place(p->pool, &p->step, 1, PLACE_TO_CHECK));
    depend(p->step, ALL_EDGES);
    char *wrong = verify(p->step, NULL);
    if (wrong)
        test_failed("the list on paper is wrong: %s\n", wrong);
}

struct trainer *plan_tiny(const char *path, int ranks)
{
    static char mesh[16];
    struct settings *s = parse_settings(&train_page, 0, NULL);
    s->layers = 2;
    s->heads = 2;
    s->channels = 32;
    s->seq_len = 16;
    s->batch = 2 * ranks;
    s->micro_batch = 1;
    predict_options.hardware = path;
    proof_options.verify = predict_options.simulate = true;
    snprintf(mesh, sizeof mesh, "dp=%d", ranks);
    s->mesh = mesh;
    return new_trainer(s, LIST_TRAIN | PLAN_ONLY);
}

void expect_number(const char *what, double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected)))
        test_failed("%s: %.15g, expected %.15g\n", what, found, expected);
}

struct simulation *simulate_durations(const struct step *s, const double *seconds)
{
    struct machine *m = s->pool->machine;
    double *had = allocate(s->n, sizeof *had);
    drop_links(m);
    m->issue_seconds = 0;
    for (int i = 0; i < m->n_lanes; i++)
        m->lane[i]->gap_seconds = 0;
    for (size_t i = 0; i < s->n; i++) {
        had[i] = s->task[i]->seconds;
        s->task[i]->seconds = seconds[i];
    }
    struct simulation *sim = must_simulate(s, NULL);
    for (size_t i = 0; i < s->n; i++)
        s->task[i]->seconds = had[i];
    free(had);
    return sim;
}

/* ---- lists that are written as texts ----------------------------------------------------------------------------- */

struct step *read_text_list(const char *text)
{
    struct step *s = list_of("%s", text);
    finish_list(s);
    char *wrong = verify(s, NULL);
    if (wrong)
        test_failed("the list is wrong: %s\n", wrong);
    return s;
}

struct simulation *simulate_text(const char *text) { return must_simulate(read_text_list(text), NULL); }

void end_simulation(struct simulation *sim)
{
    struct step *s = (struct step *)sim->step;
    free_simulation(sim);
    free_list(s);
}

void expect_period(const char *text, double period, int pattern)
{
    struct simulation *sim = simulate_text(text);
    expect_number("period", sim->period, period);
    assert_int_equal(sim->pattern, pattern);
    assert_true(sim->settled);
    end_simulation(sim);
}

char *list_as_text(const struct step *s, const double *seconds)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    write_list(f, s, seconds);
    fclose(f);
    return text;
}

void expect_round_trip(const struct step *s, const struct simulation *sim)
{
    char *text = list_as_text(s, sim->seconds);
    struct step *again = read_text_list(text);
    struct simulation *second = must_simulate(again, NULL);
    char *twice = list_as_text(again, second->seconds);
    assert_string_equal(text, twice);
    gate_updates(again); /* a model's updates wait for its norm already: none is gated, or moves */
    for (size_t i = 0; i < again->n; i++) {
        assert_true(again->task[i]->gate != GATE_HELD);
        assert_string_equal(again->task[i]->name, s->task[i]->name);
    }
    for (size_t i = 0; i < again->n; i++)
        assert_int_equal(again->task[i]->message, s->task[i]->role == ROLE_BROADCAST ? s->task[i]->message : 0);
    depend(again, ALL_EDGES);
    assert_int_equal(again->n, s->n);
    assert_int_equal(second->steps, sim->steps);
    for (size_t i = 0; i < (size_t)sim->steps * s->n; i++)
        if (second->moments[i].start != sim->moments[i].start || second->moments[i].end != sim->moments[i].end)
            test_failed("task %zu %s: [%.17g, %.17g] from the file, [%.17g, %.17g] from the list\n", i % s->n,
                        s->task[i % s->n]->name, second->moments[i].start, second->moments[i].end,
                        sim->moments[i].start, sim->moments[i].end);
    assert_true(second->period == sim->period);
    end_simulation(second);
    free(text);
    free(twice);
}
