/* test_pace.c - predictions compared with real queues.
 *
 * It tests src/tools/pace and src/planning/predict.  It checks that random delays and pacing change no bit, that paced
 * records keep the modelled times and order, that profiles are measured, and that the program can read what its
 * commands write.  It catches a task that begins before what it waits for has ended.
 *
 * To see it fail: in pace.c, turn the comparison round that says whether a task has ended late: now < flight->end.
 *
 * Nothing here depends on how fast the machine is, or on what else it does: no measured time has an upper
 * bound, and the error of a prediction has one that only a wrong scale of the times exceeds.
 */
#include "planning/console/numbers.h"
#include "planning/predict/predict.h"
#include "planning/trace/stats.h"
#include "tests/support/support.h"
#include "tests/support/support_training.h"
#include "tools/pace/pace.h"
#include "trainer/train/hooks.h"

#include <jansson.h>
#include <math.h>

static const char description[] = "hardware = paced\ndevices = 2\ndevices_per_link = 2\nflops = 1e12\n"
                                  "efficiency = 0.5\nbandwidth = 1e11\nlaunch = 2e-6\nhost_bandwidth = 1e10\n"
                                  "host_launch = 1e-6\nlink upload = 1e10 1e-6\nlink download = 1e10 1e-6\n"
                                  "memory = 1G\nhost_memory = 1G\n";

static const char *write_description(void) { return write_file("paced.txt", description, strlen(description)); }

/* ---- a trainer that starts over ---------------------------------------------------------------------------------- */

static struct trainer *open_tiny(const char *devices, bool apart)
{
    static const char *const tiny = "--layers 1 --heads 2 --channels 32 --seq-len 8 --batch 4 --micro-batch 1";
    struct settings *settings = parse_words(lasting("%s -d %s", tiny, devices));
    contexts_apart(apart);
    struct trainer *trainer = new_trainer(settings, LIST_TRAIN);
    restore_contexts();
    return trainer;
}

/* Parameters of every rank, then Adam's m and v: all that outlives a step.  The caller frees it. */
static float *read_all_state(struct trainer *trainer, size_t *n)
{
    float *values = NULL;
    *n = 0;
    for (int rank = 0; rank < trainer->machine->n_devices; rank++) {
        struct state state = read_state(trainer, rank);
        values = reallocate(values, *n + state.n, sizeof *values);
        memcpy(values + *n, state.values, state.n * sizeof *values);
        *n += state.n;
        free(state.values);
    }
    return values;
}

/* Trains from the same first values, with two steps in flight and results retired as the training loop does. */
static float *train_again(struct trainer *trainer, uint32_t steps, size_t *n)
{
    begin_anew(trainer);
    for (uint32_t number = 1; number <= steps; number++) {
        issue_step(trainer, number);
        step_result(trainer, number - 1);
    }
    assert_true(isfinite(step_result(trainer, steps)->loss));
    drain(trainer->train_list);
    return read_all_state(trainer, n);
}

static float *train_serial(struct trainer *trainer, uint32_t steps, size_t *n)
{
    execution.serial = true;
    float *values = train_again(trainer, steps, n);
    execution.serial = false;
    return values;
}

/* ---- random delays ----------------------------------------------------------------------------------------------- */

enum { DELAYED_RUNS = 50, STEPS = 3 };

/* Whatever task is late, the edges alone make the order: always the bits of --serial. */
static void expect_delays_change_nothing(const char *devices, bool apart)
{
    struct trainer *trainer = open_tiny(devices, apart);
    size_t n, same;
    float *expected = train_serial(trainer, STEPS, &n);
    for (uint64_t seed = 1; seed <= DELAYED_RUNS; seed++) {
        start_delays(trainer->train_list, seed);
        float *values = train_again(trainer, STEPS, &same);
        stop_pacing(trainer->train_list);
        assert_int_equal(same, n);
        expect_same_bits(lasting("-d %s, apart %d, --delay-seed %d", devices, apart, (int)seed), values, expected, n);
        free(values);
    }
    free(expected);
    free_trainer(trainer);
}

LONG_TEST(delays_change_nothing_on_one_device) { expect_delays_change_nothing("0:0", false); }

TEST(delays_change_nothing_on_two_devices) { expect_delays_change_nothing(two_devices(), false); }

TEST(delays_change_nothing_in_two_contexts) { expect_delays_change_nothing(two_devices(), true); }

/* ---- paced records ----------------------------------------------------------------------------------------------- */

struct times {
    uint64_t start, end;
};
struct recording { /* [iteration * tasks + task], iterations from 1 */
    struct times *times;
    size_t n;
};

static void keep_times(void *context, const struct list *list, const struct task *task,
                       const struct task_flight *flight)
{
    struct recording *recording = context;
    assert_at_least(now_ns(), flight->end); /* the padded end is when others were told, not only what is written down */
    recording->times[flight->iteration * list->n + task->index] = (struct times){flight->start, flight->end};
    recording->n++;
}

struct paced {
    struct trainer *trainer;
    struct costs *costs;
    struct simulation *simulation;
    struct recording recording;
    size_t overruns, tasks;
    double seconds; /* the modelled time of the overruns */
};

/* Four steps, paced; the weights must be those of --serial. */
static struct paced train_paced(double scale)
{
    struct paced paced = {.trainer = open_tiny(two_devices(), true), .costs = read_costs(write_description())};
    struct list *list = paced.trainer->train_list;
    size_t n, same;
    float *expected = train_serial(paced.trainer, 4, &n);
    paced.simulation = must_simulate(list, paced.costs);
    paced.recording.times = allocate(5 * list->n, sizeof *paced.recording.times);
    struct pace *pace = start_padding(list, paced.simulation->steady, paced.simulation->period, scale);
    assert_close(pace->pacer.scale, scale, 0);
    struct observer keeper = {.ended = keep_times, .context = &paced.recording};
    add_observer(&keeper);
    float *values = train_again(paced.trainer, 4, &same);
    remove_observer(&keeper);
    paced.overruns = pace->overruns;
    paced.tasks = pace->tasks;
    paced.seconds = 1e-9 * (double)pace->overrun_ns / pace->pacer.scale;
    stop_pacing(list);
    assert_int_equal(same, n);
    assert_int_equal(paced.recording.n, 4 * list->n);
    expect_same_bits("paced", values, expected, n);
    free(values);
    free(expected);
    return paced;
}

static void end_paced(struct paced *paced)
{
    free(paced->recording.times);
    free_simulation(paced->simulation);
    free_trainer(paced->trainer);
    free_costs(paced->costs);
}

static uint64_t padded_ns(const struct paced *paced, size_t i, double scale)
{
    const struct moment *moment =
        &paced->simulation->moments[(size_t)paced->simulation->first * paced->trainer->train_list->n + i];
    return (uint64_t)(1e9 * (moment->end - moment->start) * scale);
}

static void expect_after(const struct list *list, uint32_t number, size_t i, const struct times *mine,
                         const struct times *before, const char *what)
{
    if (mine->start < before->end)
        test_failed("step %u, task %zu %s starts %.3f us before the end of %s\n", number, i, list->tasks[i]->name,
                    1e-3 * (double)(before->end - mine->start), what);
}

static void expect_in_turn(const struct paced *paced, uint32_t number, size_t i, const struct times **lane_before)
{
    const struct list *list = paced->trainer->train_list;
    const struct task *task = list->tasks[i];
    const struct times *all = paced->recording.times, *mine = &all[number * list->n + i];
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
        if (edge->needs_wait && number > edge->previous)
            expect_after(list, number, i, mine, &all[(number - edge->previous) * list->n + edge->producer],
                         list->tasks[edge->producer]->name);
    if (lane_before[task->lane->index])
        expect_after(list, number, i, mine, lane_before[task->lane->index], "the task before it on its lane");
    lane_before[task->lane->index] = mine;
}

/* Every task takes its modelled time or longer, after all that it waits for and after its lane's last; those that take
 * longer are the overruns that are counted. */
TEST(paced_tasks_take_their_modelled_time)
{
    double scale = 150; /* a launch of 2 us is 0.3 ms */
    struct paced paced = train_paced(scale);
    const struct list *list = paced.trainer->train_list;
    const struct times *lane_before[64] = {NULL};
    size_t overruns = 0;
    double late = 0;
    for (uint32_t number = 1; number <= 4; number++)
        for (size_t i = 0; i < list->n; i++) {
            const struct times *times = &paced.recording.times[number * list->n + i];
            uint64_t least = padded_ns(&paced, i, scale);
            assert_at_least(times->end - times->start, least);
            if (times->end - times->start > least)
                overruns++;
            late += 1e-9 * (double)(times->end - times->start - least) / scale;
            expect_in_turn(&paced, number, i, lane_before);
        }
    assert_int_equal(paced.tasks, 4 * list->n);
    assert_int_equal(paced.overruns, overruns);
    assert_close(paced.seconds, late, 1e-9 * (1 + late));
    print_message("# paced: %zu of %zu tasks overran\n", overruns, paced.tasks);
    end_paced(&paced);
}

/* The scale that is chosen shows the median task for 5 ms at least. */
TEST(the_scale_shows_the_median_task_for_5_ms)
{
    struct trainer *trainer = open_tiny("0:0", false);
    struct costs *costs = read_costs(write_description());
    struct simulation *simulation = must_simulate(trainer->train_list, costs);
    init_random(trainer->model, 1);
    struct pace *pace = start_padding(trainer->train_list, simulation->steady, simulation->period, 0);
    double middle = median(simulation->seconds, trainer->train_list->n);
    assert_at_least(pace->pacer.scale * middle, 5e-3 * (1 - 1e-9));
    assert_true(isfinite(pace->pacer.scale));
    stop_pacing(trainer->train_list);
    free_simulation(simulation);
    free_costs(costs);
    free_trainer(trainer);
}

/* ---- the commands ------------------------------------------------------------------------------------------------ */

#define TINY "--model tiny --layers 1 --seq-len 8 --batch 2 --micro-batch 1 -d 0:0"
#define TRAIN "train " TINY " --steps 3 --sample-tokens 0 --val-batches 1"

static void expect_same_files(const char *a, const char *b)
{
    char *line = lasting("cmp '%s' '%s' >&2", a, b);
    assert_int_equal(system(line), 0); /* NOLINT */
}

/* The weights are those of the run that is not paced. */
TEST(a_paced_run_saves_the_same_weights)
{
    const char *plain = temp_path("plain"), *paced = temp_path("paced");
    expect_yard(EXIT_OK, "", TRAIN " --save %s", plain);
    expect_yard(EXIT_OK, "paced", TRAIN " --save %s --pace %s", paced, write_description());
    expect_same_files(lasting("%s/model.safetensors", plain), lasting("%s/model.safetensors", paced));
}

/* A paced trace and the simulated one of the same list: the same tasks, and times on one scale. */
TEST(a_paced_trace_has_the_tasks_and_times_of_the_simulation)
{
    const char *hardware = write_description();
    const char *paced = temp_path("paced.trace");
    const char *simulation = temp_path("sim.trace");
    expect_yard(EXIT_OK, "", TRAIN " --pace %s --trace %s", hardware, paced);
    expect_yard(EXIT_OK, "", "plan " TINY " --hardware %s --simulate --trace %s", hardware, simulation);
    struct trace *trace = read_trace(paced);
    assert_int_equal(trace->header.kind, TRACE_PACED);
    free_trace(trace);
    expect_yard(EXIT_OK, "trace    paced", "trace summary %s", paced);
    json_t *diff = yard_json("trace diff %s %s --json --list train", paced, simulation);
    double mape = number_at(diff, "task_mape"), makespan = number_at(diff, "makespan_error");
    print_message("# paced against simulated: task_mape %.4f, makespan error %.4f\n", mape, makespan);
    assert_below(mape, 0.9); /* without the scale, 2000 times too long, it would be 0.9995 */
    assert_below(fabs(makespan), 0.9);
    assert_int_equal(json_array_size(json_object_get(diff, "only_in_a")), 0);
    assert_int_equal(json_array_size(json_object_get(diff, "only_in_b")), 0);
}

/* Busy shares, the critical path and the counts of one simulation agree with each other, and with its trace. */
TEST(a_simulation_is_the_same_as_data_and_as_a_trace)
{
    const char *file = temp_path("plan.trace"), *key;
    json_t *value, *simulation = json_at(yard_json("plan --model tiny --hardware data/hardware/server.txt --mesh dp=4 "
                                                   "--simulate --json --trace %s",
                                                   file),
                                         "simulation");
    double ms = number_at(simulation, "step_ms"), path = 0;
    size_t i;
    json_object_foreach(json_at(simulation, "busy"), key, value)
    {
        assert_at_least(json_number_value(value), 0);
        assert_at_most(json_number_value(value), 1 + 1e-9);
    }
    json_array_foreach(json_at(simulation, "critical_path"), i, value) { path += number_at(value, "ms"); }
    assert_close(path, ms, 1e-5); /* it fills the step without a hole, in whole nanoseconds */
    assert_above(number_at(simulation, "tasks.modelled"), 50);
    assert_close(number_at(simulation, "tasks.measured"), 0, 0);
    assert_close(number_at(simulation, "tasks.scaled"), 0, 0);
    assert_string_equal(text_at(simulation, "kind"), "simulated");
    assert_string_equal(text_at(yard_json("trace summary %s --json", file), "kind"), "simulated");
    struct trace *trace = read_trace(file);
    struct trace_steps steps = steps_of_list(trace, 0);
    assert_at_least(steps.n, 3); /* as many as it took until the times repeat */
    uint64_t last = steps.items[steps.n - 1].end - steps.items[steps.n - 2].end;
    assert_close(1e-6 * (double)last, ms, 1e-5);             /* whole nanoseconds */
    assert_close(1e-6 * median_period_ns(&steps), ms, 1e-5); /* what `yard trace summary` prints */
    free_trace(trace);
}

/* ---- what ran beside the device ---------------------------------------------------------------------------------- */

static bool role_is(const struct trace *trace, const struct trace_task *task, const char *role)
{
    return strcmp(trace->header.role[task->role], role) == 0;
}

/* What devices did while an update ran on the CPU. */
struct company {
    bool beside; /* the update ran beside backwards or updates of other layers, in its own step */
    bool left;   /* such tasks of its step had not ended when the update began */
    bool next;   /* the update ran beside tasks of a later step */
};

static struct company company_of(const struct trace *trace, const struct trace_record *record)
{
    const struct trace_task *task = &trace->tasks[record->task];
    struct company company = {.beside = false};
    for (const struct trace_record *other = trace->records; other < trace->records + trace->n_records; other++) {
        const struct trace_task *of = &trace->tasks[other->task];
        bool ends_a_layer = role_is(trace, of, "backward") || role_is(trace, of, "update");
        bool later = ends_a_layer && of->layer != task->layer;
        bool meets = other->start < other->end && other->start < record->end && record->start < other->end;
        if (trace->lanes[of->lane].kind != LANE_COMPUTE || of->list != task->list)
            continue;
        company.left |= later && other->step == record->step && other->end > record->start && other->end > other->start;
        company.beside |= meets && later && other->step == record->step;
        company.next |= meets && other->step > record->step && (role_is(trace, of, "forward") || ends_a_layer);
    }
    return company;
}

struct updates { /* so many updates on the CPU */
    int all;
    int beside;
    int none_left;
    int next_step;
};

static const char *words_of(struct updates updates)
{
    return lasting("%d updates, %d beside others, %d with none left, %d in the next step", updates.all, updates.beside,
                   updates.none_left, updates.next_step);
}

/* Takes the pair of each update on the CPU with each record of a device. */
static struct updates count_updates(const struct trace *trace)
{
    struct updates counted = {0};
    struct trace_steps steps = steps_of_list(trace, 0);
    for (size_t i = 0; i < trace->n_records; i++) {
        const struct trace_record *record = &trace->records[i];
        const struct trace_task *task = &trace->tasks[record->task];
        const struct trace_lane *lane = &trace->lanes[task->lane];
        bool is_update = lane->kind == LANE_CPU && role_is(trace, task, "update");
        if (!is_update || record->end == record->start || !is_counted(trace, &steps, i))
            continue;
        struct company company = company_of(trace, record);
        counted.all++;
        if (company.beside)
            counted.beside++;
        if (!company.left)
            counted.none_left++;
        if (company.next)
            counted.next_step++;
    }
    return counted;
}

/* Adds up the rows of the summary, and checks that each says how long updates were hidden if any was. */
static struct updates read_updates(const char *path)
{
    struct updates said = {0};
    json_t *row, *rows = json_at(yard_json("trace summary %s --json", path), "cpu_updates");
    size_t n;
    json_array_foreach(rows, n, row)
    {
        int beside = (int)number_at(row, "beside");
        int next_step = (int)number_at(row, "next_step");
        said.all += (int)number_at(row, "tasks");
        said.beside += beside;
        said.none_left += (int)number_at(row, "none_left");
        said.next_step += next_step;
        assert_at_most(number_at(row, "hidden_ms_per_step"), number_at(row, "ms_per_step") + 1e-9);
        assert_int_equal(number_at(row, "hidden_ms_per_step") > 0, beside + next_step > 0);
    }
    return said;
}

static void expect_beside(const char *path)
{
    struct trace *trace = read_trace(path);
    struct updates counted = count_updates(trace);
    struct updates said = read_updates(path);
    bool is_same = said.all == counted.all && said.beside == counted.beside && said.none_left == counted.none_left &&
                   said.next_step == counted.next_step;
    if (!is_same)
        test_failed("%s: %s instead of %s\n", path, words_of(said), words_of(counted));
    free_trace(trace);
}

enum { TASKS = 24, LANES = 4, ROUNDS = 4 }; /* of a random trace */

static void draw_tasks(struct trace_task tasks[TASKS], uint32_t seed)
{
    static const enum role of_kind[] = {ROLE_FORWARD, ROLE_BACKWARD, ROLE_UPDATE, ROLE_REDUCE};
    for (uint32_t i = 0; i < TASKS; i++) {
        struct random4 random4 = random_words(seed, STREAM_TEST, 0, i);
        uint32_t lane = i % LANES;
        tasks[i] = (struct trace_task){.name = "persist",
                                       .layer = (int)(random4.word[0] % 3) - 1,
                                       .lane = lane,
                                       .bytes = 8,
                                       .role = of_kind[random4.word[1] % 4]};
        if (lane == 3)
            tasks[i].role = ROLE_SNAPSHOT;
    }
}

/* The tasks of a lane follow one another, with a pause or without, and some take no time. */
static void write_random_times(struct trace_writer *writer, uint32_t seed)
{
    uint64_t clock[LANES] = {0};
    for (uint32_t step = 1; step <= ROUNDS; step++)
        for (uint32_t i = 0; i < TASKS; i++) {
            struct random4 random4 = random_words(seed, STREAM_TEST, step, i);
            uint64_t *now = &clock[i % LANES];
            uint64_t start = *now + random4.word[0] % 3 * (random4.word[1] % 9);
            uint64_t end = start + random4.word[2] % 5;
            *now = end;
            end_trace_record(writer, begin_trace_record(writer, step, i, start), start + 1, end + 1, 0);
        }
}

/* Lanes in order, anything else at random. */
static const char *write_random_trace(uint32_t seed, double pace_scale)
{
    struct trace_device devices[2] = {{.id = "gpu"}, {.id = "host"}};
    struct trace_lane lanes[LANES] = {
        {.name = "a", .kind = LANE_COMPUTE},
        {.name = "b", .kind = LANE_COMPUTE},
        {.name = "c", .kind = LANE_CPU, .device_index = 1},
        {.name = "d", .kind = LANE_DISK, .device_index = 1},
    };
    struct trace_task tasks[TASKS];
    draw_tasks(tasks, seed);
    struct trace tables = {.header = {.kind = TRACE_SIMULATED,
                                      .pace_scale = pace_scale,
                                      .n_devices = 2,
                                      .n_lanes = LANES,
                                      .n_tasks = TASKS,
                                      .n_lists = 1,
                                      .n_roles = ROLES,
                                      .list = {"train"}},
                           .devices = devices,
                           .lanes = lanes,
                           .tasks = tasks};
    const char *path = temp_path("random.trace");
    for (int i = 0; i < ROLES; i++)
        snprintf(tables.header.role[i], sizeof tables.header.role[i], "%s", role_name[i]);
    struct trace_writer *writer = open_trace_writer(path, &tables, TASKS * ROUNDS);
    write_random_times(writer, seed);
    close_trace_writer(writer);
    return path;
}

static json_t *cpu_updates_at_pace(double scale)
{
    return json_at(yard_json("trace summary %s --json", write_random_trace(1, scale)), "cpu_updates");
}

/* A trace may say that its times are to be doubled. */
TEST(times_beside_the_device_follow_the_pace)
{
    const json_t *plain = cpu_updates_at_pace(1), *doubled = cpu_updates_at_pace(2);
    assert_above(json_array_size(plain), 0);
    for (size_t i = 0; i < json_array_size(plain); i++) {
        double ms = number_at(json_array_get(plain, i), "ms_per_step");
        assert_above(ms, 0);
        assert_close(number_at(json_array_get(doubled, i), "ms_per_step") / (2 * ms), 1, 1e-6);
    }
}

/* At its end a run sums up its own trace, in modelled times as `yard trace summary` does. */
TEST(a_paced_run_tells_modelled_times)
{
    const char *trace = temp_path("told.trace");
    struct ran ran = expect_yard(EXIT_OK, "updates on the CPU: ", TRAIN " --overlap all-cpu --pace %s --trace %s",
                                 write_description(), trace);
    const json_t *rows = json_at(yard_json("trace summary %s --json", trace), "cpu_updates");
    const char *line = strstr(strstr(ran.out, "updates on the CPU: "), "ms/step");
    assert_above(json_array_size(rows), 0);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        double ms = 0;
        line = strchr(line, '\n') + 1;
        assert_int_equal(sscanf(line, "%*s %*d %*d %*d %*d %lf", &ms), 1);
        assert_close(ms, number_at(json_array_get(rows, i), "ms_per_step"), 0.0006); /* it has three decimals */
    }
}

LONG_TEST(what_ran_beside_the_device_is_counted)
{
    for (uint32_t seed = 0; seed < 100; seed++)
        expect_beside(write_random_trace(seed, 1));
    static const char *const runs[] = {
        "plan --list data/steps/overlap.txt --simulate",
        "plan --model tiny -d 0:0x2 --mesh pp=2 --hardware data/hardware/server.txt --simulate",
        "train --model tiny --steps 6 --sample-tokens 0"};
    for (size_t i = 0; i < COUNT(runs) * 2; i++) {
        const char *trace = temp_path("beside.trace");
        const char *snap = temp_path(lasting("beside%zu.snap", i));
        const char *run = runs[i / 2];
        bool clips = i % 2 == 1;
        struct ran ran = expect_yard(EXIT_OK, "", "%s --overlap all-cpu --snapshot %s --trace %s --clip %d", run, snap,
                                     trace, clips);
        expect_beside(trace);
        assert_int_equal(strstr(ran.out, "--clip holds all updates") != NULL, clips);
        if (!strstr(run, "plan"))
            assert_contains(ran.out, "updates on the CPU: ");
        json_t *rows = json_at(yard_json("trace summary %s --json", trace), "cpu_updates"), *row;
        size_t k;
        /* With clipping, updates are held until the last backward has ended: of one device, nothing is left then. */
        bool has_one_device = !strstr(run, "pp=2");
        if (clips && has_one_device)
            json_array_foreach(rows, k, row) assert_close(number_at(row, "none_left"), number_at(row, "tasks"), 0);
    }
}

/* A run reads its own trace at its end.  Another program has changed the trace by then: that is worth a warning, and
 * the run ends as it would have. */
static void train_with_damage(uint64_t at, uint32_t word)
{
    struct trace_header header;
    const char *path = temp_path("own.trace");
    struct trainer *trainer = new_trainer(parse_words(lasting(TINY " --overlap all-cpu --trace %s", path)), LIST_TRAIN);
    tell_model_filled(trainer);
    issue_step(trainer, 1);
    step_result(trainer, 1);
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &header, sizeof header, 0), sizeof header);
    if (at >= sizeof header)
        at += header.records_at - sizeof header;
    assert_int_equal(pwrite(fd, &word, sizeof word, (off_t)at), sizeof word);
    close(fd);
    free_trainer(trainer);
}

CASE(impossible_record) { train_with_damage(sizeof(struct trace_header) + offsetof(struct trace_record, task), 99999); }

CASE(other_header) { train_with_damage(offsetof(struct trace_header, n_tasks), 99999); }

TEST(a_run_survives_damage_to_its_trace)
{
    expect_case("impossible_record", EXIT_OK, "yard: warning: the trace ", "its record 0 is impossible", NULL);
    expect_case("other_header", EXIT_OK, "yard: warning: the trace ", "was overwritten while it was read", NULL);
}

/* A trace that contradicts itself: one lane runs two tasks at once.  No more of an update is hidden than there is. */
TEST(no_update_is_hidden_longer_than_it_takes)
{
    struct trace_device devices[2] = {{.id = "gpu"}, {.id = "host"}};
    struct trace_lane lanes[2] = {
        {.name = "a", .kind = LANE_COMPUTE},
        {.name = "c", .kind = LANE_CPU, .device_index = 1},
    };
    struct trace_task tasks[2] = {{.name = "backward", .layer = 0, .lane = 0, .role = 0},
                                  {.name = "update", .layer = 1, .lane = 1, .role = 1}};
    const struct trace tables = {.header = {.kind = TRACE_REAL,
                                            .pace_scale = 1,
                                            .n_devices = 2,
                                            .n_lanes = 2,
                                            .n_tasks = 2,
                                            .n_lists = 1,
                                            .n_roles = 2,
                                            .list = {"train"},
                                            .role = {"backward", "update"}},
                                 .devices = devices,
                                 .lanes = lanes,
                                 .tasks = tasks};
    const char *path = temp_path("twice.trace");
    struct trace_writer *writer = open_trace_writer(path, &tables, 8);
    for (uint32_t step = 1; step <= 2; step++) {
        uint64_t begin = step * 1000;
        end_trace_record(writer, begin_trace_record(writer, step, 1, begin), begin, begin + 100, 0);
        for (int twice = 0; twice < 2; twice++)
            end_trace_record(writer, begin_trace_record(writer, step, 0, begin), begin + 10, begin + 90, 0);
    }
    close_trace_writer(writer);
    json_t *row = json_at(yard_json("trace summary %s --json", path), "cpu_updates.0");
    assert_above(number_at(row, "beside"), 0);
    assert_at_most(number_at(row, "hidden_ms_per_step"), number_at(row, "ms_per_step"));
}

/* ---- yard profile ------------------------------------------------------------------------------------------------ */

/* A profile that was written is read, is written the same again, and gives every task of this shape its measured time;
 * on another device it is refused. */
TEST(a_profile_is_measured_and_read_back)
{
    const char *path = temp_path("measured.txt"), *again = temp_path("again.txt");
    expect_yard(EXIT_OK, "", "profile " TINY " -o %s", path);
    struct costs *costs = read_costs(path);
    struct costs other = *costs;
    assert_true(costs->measured);
    assert_above(costs->n_tasks, 20);
    assert_above(costs->speeds[LANE_UPLOAD].bytes_per_s, 0);
    assert_above(costs->speeds[LANE_DOWNLOAD].bytes_per_s, 0);
    write_profile(again, costs, costs->shape);
    expect_same_files(path, again);
    json_t *tasks = json_at(yard_json("plan " TINY " --profile %s --simulate --json", path), "simulation.tasks");
    assert_above(number_at(tasks, "measured"), 50);
    assert_close(number_at(tasks, "scaled"), 0, 0);
    assert_close(number_at(tasks, "modelled"), 0, 0);
    expect_yard(EXIT_OK, "scaled", "plan --model tiny -d 0:0 --profile %s --simulate", path); /* another shape */
    other.device = (char *)"another device";
    write_profile(again, &other, costs->shape);
    expect_yard(EXIT_USAGE, "was made with device \"another device\"", "plan " TINY " --simulate --profile %s", again);
    free_costs(costs);
}
