/* test_costs.c - files of costs, which are profiles and descriptions of hardware: what they may say, and which times
 * follow.
 *
 * It tests src/planning/predict.  It checks that each line of a file arrives in the costs that are read, that a message
 * about a mistake names its line, and that the time of a task follows from flops, bytes and latency by the roofline's
 * formula.  It catches a line that is accepted although its number is impossible, a missing line that counts as zero,
 * and a copy without its latency.
 *
 * To see it fail: in costs_file.c, let the first number of a speed be below 1.
 *
 * The files are texts in this program, and times follow from their numbers.  No OpenCL device is opened here, so forked
 * children make the mistakes.
 */
#include "planning/predict/predict.h"
#include "tests/support/support_paper.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

/* ---- reading them ------------------------------------------------------------------------------------------------ */

static const char profile_text[] = "# made by hand\n"
                                   "device = some device\ndriver = 1.0\nengine = own\nunits = 2\nvector = 8\n"
                                   "shape = small # and round\n\n"
                                   "link upload = 1e9 1e-6\nlink download = 2e9 2e-6\n"
                                   "memory work = 4096\n"
                                   "task small compute = 1000 100 400\n"
                                   "task small compute = 5000 900 4000\n"
                                   "task small compute layer=0 = 7000 100 400\n"
                                   "task move upload = 3000 0 800\n"
                                   "task read cpu = 2000 0 100\n";

static void read_file(void *path) { free_costs(read_costs(path)); }

TEST(a_profile_is_read)
{
    struct costs *costs = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    assert_true(costs->measured);
    assert_int_equal(costs->units, 2);
    assert_int_equal(costs->vector, 8);
    assert_int_equal(costs->n_tasks, 5);
    assert_string_equal(costs->device, "some device");
    assert_string_equal(costs->shape, "small");
    expect_number("bytes per second up", costs->speeds[LANE_UPLOAD].bytes_per_s, 1e9);
    expect_number("latency down", costs->speeds[LANE_DOWNLOAD].latency, 2e-6);
    expect_number("peak of work tensors", costs->peak_memory[MEM_WORK], 4096);
    assert_int_equal(costs->tasks[2].layer, 0);
    assert_int_equal(costs->tasks[1].layer, -1);
    expect_number("ns of task 1", costs->tasks[1].ns, 5000);
    expect_number("flops of task 1", costs->tasks[1].flops, 900);
    assert_int_equal(costs->tasks[1].lane, LANE_COMPUTE);
    const char *again = temp_path("again.txt");
    write_profile(again, costs, costs->shape);
    struct costs *copy = read_costs(again);
    assert_int_equal(copy->n_tasks, costs->n_tasks);
    assert_memory_equal(copy->tasks, costs->tasks, costs->n_tasks * sizeof *costs->tasks);
    assert_memory_equal(copy->speeds, costs->speeds, sizeof costs->speeds);
    assert_memory_equal(copy->peak_memory, costs->peak_memory, sizeof costs->peak_memory);
    assert_string_equal(copy->driver, "1.0");
    free_costs(copy);
    free_costs(costs);
}

/* One line of a good file is replaced: the mistake is named with file and line. */
static void expect_bad_line(const char *good, const char *line, const char *bad)
{
    char part[64];
    const char *at = strstr(good, line);
    assert_non_null(at);
    int number = 1;
    for (const char *before = good; before < at; before++)
        if (*before == '\n')
            number++;
    char *text = lasting("%.*s%s%s", (int)(at - good), good, bad, at + strcspn(at, "\n"));
    snprintf(part, sizeof part, "bad.txt, line %d: ", number);
    expect_refusal(read_file, write_file("bad.txt", text, strlen(text)), EXIT_USAGE, part);
}

TEST(bad_lines_are_named)
{
    static const struct {
        const char *line, *bad;
    } cases[] = {
        {"units", "units = 0"},
        {"units", "units = two"},
        {"units", "cores = 2"},
        {"device", "device ="},
        {"link up", "link upload = 1e9"},
        {"link up", "link upload = 0 1e-6"},
        {"link up", "link upload = 1e9 inf"},
        {"link up", "link upload = 1e9 1e-6 s"},
        {"link up", "link sideways = 1e9 1e-6"},
        {"memory", "memory work = much"},
        {"task move", "task move upload = 0 0 800"},
        {"task move", "task move upload = 3000 0 800 5"},
        {"task move", "task move upload = nan 0 800"},
        {"task move", "task move upload = 3000 -1 800"},
        {"task move", "task move upload layer=-1 = 3000 0 800"},
        {"task move", "task move = 3000 0 800"},
        {"task move", "task move sideways = 3000 0 800"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_bad_line(profile_text, cases[i].line, cases[i].bad);
}

TEST(bad_lines_of_hardware_are_refused)
{
    static const char *const bad[] = {"flops = fast", "flops = -1", "flops = inf", "flops = nan", "flops = 1e999"};
    char *good = hardware_text(&plausible_speeds);
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_bad_line(good, "flops", bad[i]);
    expect_bad_line(good, "memory", "memory = 0");
    expect_bad_line(good, "memory", "memory = 12 apples");
    expect_bad_line(good, "devices =", "devices = 1.5");
    free(good);
}

/* A profile without one of these lines is refused, and the sentence names the line. */
TEST(missing_lines_are_named)
{
    static const char *const needed[] = {"device", "driver", "engine", "units", "vector", "shape", "link upload"};
    for (size_t i = 0; i < COUNT(needed); i++) {
        const char *at = strstr(profile_text, needed[i]);
        char part[64];
        char *text = lasting("%.*s%s", (int)(at - profile_text), profile_text, at + strcspn(at, "\n"));
        snprintf(part, sizeof part, "lack.txt: `%s", needed[i]);
        expect_refusal(read_file, write_file("lack.txt", text, strlen(text)), EXIT_USAGE, part);
    }
    expect_refusal(read_file, (void *)"no/such/file", EXIT_IO, "no/such/file");
    expect_refusal(read_file, (void *)"tests", EXIT_IO, "tests");
    expect_refusal(read_file, write_file("empty.txt", "", 0), EXIT_USAGE, "empty.txt");
}

static void expect_cost(const struct costs *costs, const struct task *task, double ns, enum cost_source source)
{
    enum cost_source found;
    expect_number(task->name, 1e9 * task_seconds(costs, task, &found), ns);
    assert_int_equal(found, source);
}

static struct task paper_task(struct lane *lane, const char *name, double flops, size_t bytes)
{
    struct task task = {.lane = lane, .layer = -1, .flops = flops, .bytes = bytes, .extra.seconds = NAN};
    snprintf(task.name, sizeof task.name, "%s", name);
    return task;
}

/* small: 1000 ns at 100 FLOPs and 400 bytes, 5000 at 900 and 4000, and in layer 0 7000; the lane as a whole: 13000 ns
 * for 4800 bytes. */
TEST(a_task_costs_what_its_profile_says)
{
    struct costs *costs = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    struct paper paper = new_paper(1, &slow_speeds);
    struct lane *compute = paper.device->lanes[LANE_COMPUTE], *cpu = paper.host->lanes[LANE_CPU];
    struct task same = paper_task(compute, "small", 100, 400), other = paper_task(compute, "small", 900, 4000);
    struct task near_small = paper_task(compute, "small", 200, 500),
                near_large = paper_task(compute, "small", 450, 3000);
    struct task unseen = paper_task(compute, "unheard of", 5, 9600), host = paper_task(cpu, "read", 0, 201);
    expect_cost(costs, &same, 1000, COST_MEASURED);
    expect_cost(costs, &other, 5000, COST_MEASURED);
    expect_cost(costs, &near_small, 2000, COST_SCALED); /* by FLOPs, from the nearest in bytes */
    expect_cost(costs, &near_large, 5000 * 450 / 900, COST_SCALED);
    expect_cost(costs, &unseen, 13000 * 9600 / 4800, COST_SCALED); /* by bytes, from the whole lane */
    expect_cost(costs, &host, 4000, COST_SCALED);                  /* by bytes + 1 */
    same.layer = 0;
    expect_cost(costs, &same, 7000, COST_MEASURED);
    same.layer = 1;
    expect_cost(costs, &same, 1000, COST_MEASURED);
    costs->scale_device = 2;
    costs->scale_cpu = 4;
    expect_cost(costs, &same, 500, COST_MEASURED);
    expect_cost(costs, &unseen, 13000, COST_SCALED);
    expect_cost(costs, &host, 1000, COST_SCALED);
    end_paper(&paper);
    free_costs(costs);
}

/* A copy of 800 bytes moves 1600: it reads as many as it writes.  The scale of links changes its time, and that of
 * devices does not. */
TEST(a_copy_costs_what_its_link_says)
{
    struct costs *costs = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    struct paper paper = new_paper(1, &slow_speeds);
    struct tensor *to = new_words(&paper, paper.device, "to", 200, PERSISTENT),
                  *from = new_words(&paper, paper.host, "from", 200, PERSISTENT);
    struct lane *up = paper.device->lanes[LANE_UPLOAD], *down = paper.device->lanes[LANE_DOWNLOAD];
    struct task known = *add_copy(paper.list, up, "move", to, from);
    struct task unknown = *add_copy(paper.list, down, "back", from, to);
    assert_close(seconds_of_copy(costs, "move", up, paper.device, paper.host, 800), seconds_alone(costs, &known), 0);
    assert_close(seconds_of_copy(costs, "back", down, paper.host, paper.device, 800), seconds_alone(costs, &unknown),
                 0);
    known.bytes = 800;
    expect_cost(costs, &known, 3000, COST_MEASURED);
    expect_cost(costs, &unknown, 2000 + 400, COST_MEASURED); /* latency + 800 bytes at 2e9 bytes/s */
    costs->scale_device = 10;
    expect_cost(costs, &known, 3000, COST_MEASURED);
    expect_cost(costs, &unknown, 2400, COST_MEASURED);
    costs->scale_link = 2;
    expect_cost(costs, &known, 1500, COST_MEASURED);
    expect_cost(costs, &unknown, 2000 + 200, COST_MEASURED);
    end_paper(&paper);
    free_costs(costs);
}

/* A byte takes 1 ns, a task 1 us more; support_paper.c describes a device of 0.5 TFLOP/s: 5e8 FLOPs take 1 ms. */
static const struct speeds round_speeds = {
    .per_link = 1,
    .bytes_per_s = 1e9,
    .launch = 1e-6,
    .link = 1e9,
    .latency = 5e-6,
};

/* On described hardware a kernel takes the launch and the longer of computing and moving its bytes.  A task of the host
 * takes the launch and moving. */
TEST(hardware_costs_are_those_of_the_roofline)
{
    struct paper paper = new_paper(1, &round_speeds);
    struct lane *compute = paper.device->lanes[LANE_COMPUTE];
    struct task flops = paper_task(compute, "flops", 5e8, 1000), bytes = paper_task(compute, "bytes", 0, 4000);
    struct task host = paper_task(paper.host->lanes[LANE_CPU], "host", 0, 2000);
    expect_cost(paper.costs, &flops, 1000 + 1e6, COST_MODELLED);
    expect_cost(paper.costs, &bytes, 1000 + 4000, COST_MODELLED);
    expect_cost(paper.costs, &host, 1000 + 2000, COST_MODELLED);
    apply_what_if(paper.costs, paper.machine, "device=2x cpu=0.5x");
    expect_cost(paper.costs, &flops, 1000 + 5e5, COST_MODELLED);
    expect_cost(paper.costs, &bytes, 1000 + 2000, COST_MODELLED);
    expect_cost(paper.costs, &host, 2000 + 4000, COST_MODELLED);
    paper.costs->units = 8;
    paper.costs->scale_device = 1;
    bytes.file = "x.cl";
    flops.file = "x.cl";
    for (size_t groups = 1; groups <= 20; groups++) {
        struct grid grid = {1, {groups * 64, 1, 1}, {64, 1, 1}};
        bytes.grid = grid;
        flops.grid = grid;
        expect_cost(paper.costs, &bytes, 1000 + 4000 * 8.0 / (double)MIN(groups, 8), COST_MODELLED);
        expect_cost(paper.costs, &flops, 1000 + 1e6, COST_MODELLED); /* a product */
    }
    end_paper(&paper);
}

/* Lanes of the host may have speeds of their own; the disk's is shared by all that is on it. */
TEST(lanes_of_the_host_may_have_speeds_of_their_own)
{
    struct paper paper = new_paper(1, &round_speeds);
    struct link const *link[2];
    struct task *persist = add_host(paper.list, paper.host->lanes[LANE_DISK], "persist", NULL, NULL);
    struct task feed = paper_task(paper.host->lanes[LANE_FEED], "feed", 0, 2000);
    struct task cpu = paper_task(paper.host->lanes[LANE_CPU], "cpu", 0, 2000);
    add_access(persist, new_words(&paper, paper.host, "x", 500, PERSISTENT), ACCESS_READ);
    paper.costs->speeds[LANE_DISK] = (struct lane_speed){.bytes_per_s = 5e8, .latency = 3e-6};
    paper.costs->speeds[LANE_FEED] = (struct lane_speed){.bytes_per_s = 2e9};
    expect_cost(paper.costs, persist, 3000 + 4000, COST_MODELLED);
    expect_cost(paper.costs, &feed, 1000, COST_MODELLED);
    expect_cost(paper.costs, &cpu, 1000 + 2000, COST_MODELLED);
    set_speeds(paper.machine, paper.costs);
    links_of(persist, link);
    assert_non_null(link[0]);
    assert_ptr_equal(link[0], paper.host->extra.described.disk);
    assert_null(link[1]);
    expect_number("rate of the disk", link[0]->rate, 5e8);
    expect_number("latency of the disk", link[0]->latency, 3e-6);
    end_paper(&paper);
}

static void ask_what_if(void *words)
{
    struct paper paper = new_paper(1, &slow_speeds);
    apply_what_if(paper.costs, paper.machine, words);
}

TEST(what_if_scales_costs_and_refuses_other_words)
{
    static const char *const bad[] = {"link",    "link=",    "link=fast", "link=0x", "link=-1x", "link=infx",
                                      "link=2y", "link=2xx", "mem=0",     "mem=8Q",  "gpu=2x",   "link=2x cpu"};
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_refusal(ask_what_if, (void *)bad[i], EXIT_USAGE, "--what-if takes words such as");
    struct paper paper = new_paper(2, &slow_speeds);
    size_t host = paper.host->budget;
    apply_what_if(paper.costs, paper.machine, "link=2x,\tcpu=0.5\ndevice=1.5x mem=8K");
    expect_number("scale of links", paper.costs->scale_link, 2);
    expect_number("scale of the CPU", paper.costs->scale_cpu, 0.5);
    expect_number("scale of devices", paper.costs->scale_device, 1.5);
    assert_int_equal(paper.machine->devices[0].budget, 8192);
    assert_int_equal(paper.machine->devices[1].budget, 8192);
    assert_int_equal(paper.host->budget, host);
    end_paper(&paper);
}

static void read_with_change(void *changed)
{
    struct costs *costs = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    struct device device = {.name = "some device", .units = 2, .shape.vector = 8};
    free(costs->driver);
    costs->driver = copy_string(""); /* as of a device without a driver */
    if (strcmp(changed, "device") == 0)
        snprintf(device.name, sizeof device.name, "another");
    if (strcmp(changed, "units") == 0)
        device.units = 4;
    if (strcmp(changed, "vector") == 0)
        device.shape.vector = 4;
    refuse_if_other_fingerprint(costs, &device, strcmp(changed, "engine") ? "own" : "clblast");
    free_costs(costs);
}

TEST(another_fingerprint_is_refused)
{
    expect_refusal(read_with_change, (void *)"device", EXIT_USAGE,
                   "device \"some device\", but this run has \"another\"");
    expect_refusal(read_with_change, (void *)"units", EXIT_USAGE, "units \"2\", but this run has \"4\"");
    expect_refusal(read_with_change, (void *)"vector", EXIT_USAGE, "vector \"8\", but this run has \"4\"");
    expect_refusal(read_with_change, (void *)"engine", EXIT_USAGE, "engine \"own\", but this run has \"clblast\"");
    assert_int_equal(run_child(read_with_change, (void *)"nothing").code, 0);
}
