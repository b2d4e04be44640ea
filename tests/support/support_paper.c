/* support_paper.c - lists that are never run, on devices that exist only as a description of hardware. */
#include "support_paper.h"

#include "planning/lists/lists.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "support_lists.h"
#include "support_schedule.h"

#include <math.h>

/* ---- hardware ---------------------------------------------------------------------------------------------------- */

const struct speeds slow_speeds = {.per_link = 1, .bytes_per_s = 1e3, .launch = 1e-300, .link = 1e3};
const struct speeds plausible_speeds = {
    .per_link = 2, .bytes_per_s = 1e10, .launch = 1e-6, .link = 1e8, .latency = 1e-5};

static const char hardware_format[] = "hardware = paper\ndevices = 8\ndevices_per_link = %d\nflops = 1e12\n"
                                      "efficiency = 0.5\nbandwidth = %g\nlaunch = %g\nhost_bandwidth = %g\n"
                                      "host_launch = %g\nlink upload = %g %g\nlink download = %g %g\n"
                                      "memory = 1G\nhost_memory = 1G\n";

char *hardware_text(const struct speeds *speeds)
{
    return format_string(hardware_format, speeds->per_link, speeds->bytes_per_s, speeds->launch, speeds->bytes_per_s,
                         speeds->launch, speeds->link, speeds->latency, speeds->link, speeds->latency);
}

const char *write_hardware(const char *name, const struct speeds *speeds)
{
    char *text = hardware_text(speeds);
    const char *path = write_file(name, text, strlen(text));
    free(text);
    return path;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

struct paper new_paper(int n_devices, const struct speeds *speeds)
{
    struct paper paper = {.costs = read_costs(write_hardware("paper.txt", speeds))};
    paper.machine = virtual_machine(paper.costs, n_devices);
    paper.device = &paper.machine->devices[0];
    paper.host = paper.machine->host;
    paper.pool = new_pool(paper.machine);
    paper.list = new_list(paper.pool, "paper");
    return paper;
}

void end_paper(struct paper *paper)
{
    free_list_and_machine(paper->list);
    free_costs(paper->costs);
}

struct tensor *new_words(struct paper *paper, struct device *device, const char *name, int64_t words,
                         enum lifetime lifetime)
{
    const struct tensor_form form = {
        .device = device,
        .class = MEM_ACTIVATIONS,
        .name = name,
        .shape = SHAPE(words),
    };
    struct tensor *tensor = new_tensor(paper->pool, &form);
    tensor->persistent = lifetime == PERSISTENT;
    return tensor;
}

struct task *add_paper(struct paper *paper, struct lane *lane, const char *name, struct tensor *writes,
                       struct tensor *reads, struct tensor *reads_too)
{
    struct task *task = add_host(paper->list, lane, name, no_work, NULL);
    if (writes)
        add_access(task, writes, ACCESS_WRITE);
    if (reads)
        add_access(task, reads, ACCESS_READ);
    if (reads_too)
        add_access(task, reads_too, ACCESS_READ);
    return task;
}

void finish_paper(struct paper *paper)
{
    must(place(paper->pool, &paper->list, 1, PLACE_TO_CHECK));
    depend(paper->list, ALL_EDGES);
    struct problem *problem = verify_list(paper->list, NULL);
    if (problem)
        test_failed("the list on paper is wrong: %s\n", problem->sentence);
}

struct trainer *plan_tiny(const char *path, int ranks)
{
    static char mesh[16];
    struct settings *settings = parse_settings(&train_usage, 0, NULL);
    settings->layers = 2;
    settings->heads = 2;
    settings->channels = 32;
    settings->seq_len = 16;
    settings->batch = 2 * ranks;
    settings->micro_batch = 1;
    asked_predict.hardware = path;
    asked_proof.verify = asked_predict.simulate = true;
    snprintf(mesh, sizeof mesh, "dp=%d", ranks);
    settings->mesh = mesh;
    return plan_training(settings, LIST_TRAIN);
}

void expect_order(const struct list *list, const char *names)
{
    char *found = copy_string("");
    for (size_t i = 0; i < list->n; i++) {
        assert_int_equal(list->tasks[i]->index, i);
        append_text(&found, "%s%s", i ? " " : "", list->tasks[i]->name);
    }
    assert_string_equal(found, names);
    free(found);
}

/* A task keeps the neighbours that it had in an edit, so they are left out. */
static uint64_t hash_task(const struct task *task, uint64_t seed)
{
    uint64_t hash = hash_bytes(task, offsetof(struct task, prev), seed); /* prev and next stand before extra */
    hash = hash_bytes(&task->extra, sizeof task->extra, hash);
    hash = hash_bytes(task->accesses, (size_t)task->n_accesses * sizeof *task->accesses, hash);
    hash = hash_bytes(task->args, (size_t)task->n_args * sizeof *task->args, hash);
    return hash_bytes(task->edges, task->n_edges * sizeof *task->edges, hash);
}

uint64_t fingerprint(const struct list *list)
{
    const struct pool *pool = list->pool;
    size_t per_device = (size_t)pool->machine->n_devices + 1;
    uint64_t hash = hash_bytes(&list->tags, sizeof list->tags, list->extra.n_levels);
    hash = hash_bytes(&list->extra.last_origin, sizeof list->extra.last_origin, hash);
    hash = hash_bytes(&list->extra.last_message, sizeof list->extra.last_message, hash);
    if (list->extra.peak) { /* place() has set it */
        hash = hash_bytes(list->extra.peak, per_device * sizeof *list->extra.peak, hash);
        hash = hash_bytes(list->extra.peak_total, per_device * sizeof *list->extra.peak_total, hash);
    }
    for (size_t i = 0; i < pool->n; i++)
        hash = hash_bytes(pool->tensors[i], sizeof *pool->tensors[i], hash);
    for (size_t i = 0; i < list->n; i++)
        hash = hash_task(list->tasks[i], hash);
    return hash;
}

void expect_number(const char *what, double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected)))
        test_failed("%s: %.15g, expected %.15g\n", what, found, expected);
}

struct simulation *simulate_durations(const struct list *list, const double *seconds)
{
    struct machine *machine = list->pool->machine;
    double *had = allocate(list->n, sizeof *had);
    drop_links(machine);
    machine->issue_seconds = 0;
    for (int i = 0; i < machine->n_lanes; i++)
        machine->lanes[i]->gap_seconds = 0;
    for (size_t i = 0; i < list->n; i++) {
        had[i] = list->tasks[i]->extra.seconds;
        list->tasks[i]->extra.seconds = seconds[i];
    }
    struct simulation *simulation = must_simulate(list, NULL);
    for (size_t i = 0; i < list->n; i++)
        list->tasks[i]->extra.seconds = had[i];
    free(had);
    return simulation;
}

/* ---- lists that are written as texts ----------------------------------------------------------------------------- */

struct list *read_text_list(const char *text)
{
    struct list *list = read_list_text("%s", text);
    finish_list(list);
    struct problem *problem = verify_list(list, NULL);
    if (problem)
        test_failed("the list is wrong: %s\n", problem->sentence);
    return list;
}

struct simulation *simulate_text(const char *text) { return must_simulate(read_text_list(text), NULL); }

void end_simulation(struct simulation *simulation)
{
    struct list *list = (struct list *)simulation->list;
    free_simulation(simulation);
    free_list_and_machine(list);
}

void expect_period(const char *text, double period, int pattern)
{
    struct simulation *simulation = simulate_text(text);
    expect_number("period", simulation->period, period);
    assert_int_equal(simulation->pattern, pattern);
    assert_true(simulation->settled);
    end_simulation(simulation);
}

char *list_as_text(const struct list *list, const double *seconds)
{
    char *text = NULL;
    size_t n;
    FILE *file = open_memstream(&text, &n);
    assert_non_null(file);
    write_list(file, list, seconds);
    fclose(file);
    return text;
}

void expect_round_trip(const struct list *list, const struct simulation *simulation)
{
    char *text = list_as_text(list, simulation->seconds);
    struct list *again = read_text_list(text);
    struct simulation *second = must_simulate(again, NULL);
    char *twice = list_as_text(again, second->seconds);
    assert_string_equal(text, twice);
    gate_updates(again); /* a model's updates wait for its norm already: none is gated, or moves */
    for (size_t i = 0; i < again->n; i++) {
        assert_int_not_equal(again->tasks[i]->extra.gate, GATE_WAITS);
        assert_string_equal(again->tasks[i]->name, list->tasks[i]->name);
    }
    for (size_t i = 0; i < again->n; i++)
        assert_int_equal(again->tasks[i]->extra.message,
                         list->tasks[i]->role == ROLE_BROADCAST ? list->tasks[i]->extra.message : 0);
    depend(again, ALL_EDGES);
    assert_int_equal(again->n, list->n);
    assert_int_equal(second->steps, simulation->steps);
    for (size_t i = 0; i < (size_t)simulation->steps * list->n; i++)
        if (second->moments[i].start != simulation->moments[i].start ||
            second->moments[i].end != simulation->moments[i].end)
            test_failed("task %zu %s: [%.17g, %.17g] from the file, [%.17g, %.17g] from the list\n", i % list->n,
                        list->tasks[i % list->n]->name, second->moments[i].start, second->moments[i].end,
                        simulation->moments[i].start, simulation->moments[i].end);
    assert_close(second->period, simulation->period, 0);
    end_simulation(second);
    free(text);
    free(twice);
}
