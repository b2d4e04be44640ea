/* test_costs.c - files of costs, that is profiles and descriptions of hardware: what they may say, and which times
 * follow.
 *
 * It tests src/tools/predict.  Each line of a file arrives in the costs that are read; a mistake is named with its
 * line; and the time of a task follows from flops, bytes and latency by the formula of the roofline.  A line that is
 * believed though it says nothing that can be, a missing one that is taken for zero, and a copy without its latency are
 * found.
 *
 * Files are texts in this program; times follow from their numbers.  No OpenCL device is opened here: mistakes are made
 * in forked children.
 */
#include "tests/support/support_paper.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

/* ---- reading them ---------------------------------------------------------------------------------------------- */

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
    struct costs *c = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    assert_true(c->measured);
    assert_int_equal(c->units, 2);
    assert_int_equal(c->vector, 8);
    assert_int_equal(c->n_tasks, 5);
    assert_string_equal(c->device, "some device");
    assert_string_equal(c->shape, "small");
    expect_number("bytes per second up", c->speed[LANE_UPLOAD].bytes_per_s, 1e9);
    expect_number("latency down", c->speed[LANE_DOWNLOAD].latency, 2e-6);
    expect_number("peak of work tensors", c->peak_memory[MEM_WORK], 4096);
    assert_int_equal(c->tasks[2].layer, 0);
    assert_int_equal(c->tasks[1].layer, -1);
    expect_number("ns of task 1", c->tasks[1].ns, 5000);
    expect_number("flops of task 1", c->tasks[1].flops, 900);
    assert_int_equal(c->tasks[1].lane, LANE_COMPUTE);
    const char *again = temp_path("again.txt");
    write_profile(again, c, c->shape);
    struct costs *copy = read_costs(again);
    assert_int_equal(copy->n_tasks, c->n_tasks);
    assert_memory_equal(copy->tasks, c->tasks, c->n_tasks * sizeof *c->tasks);
    assert_memory_equal(copy->speed, c->speed, sizeof c->speed);
    assert_memory_equal(copy->peak_memory, c->peak_memory, sizeof c->peak_memory);
    assert_string_equal(copy->driver, "1.0");
    free_costs(copy);
    free_costs(c);
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

TEST(bad_lines_of_hardware)
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

/* Without line i, the file is refused, and what is missing named. */
TEST(missing_lines_are_named)
{
    static const char *const needed[] = {"device", "driver", "engine", "units", "vector", "shape", "link upload"};
    for (size_t i = 0; i < COUNT(needed); i++) {
        const char *at = strstr(profile_text, needed[i]), *name = needed[i];
        char part[64];
        char *text = lasting("%.*s%s", (int)(at - profile_text), profile_text, at + strcspn(at, "\n"));
        snprintf(part, sizeof part, "lack.txt: `%s", name);
        expect_refusal(read_file, write_file("lack.txt", text, strlen(text)), EXIT_USAGE, part);
    }
    expect_refusal(read_file, (void *)"no/such/file", EXIT_IO, "no/such/file");
    expect_refusal(read_file, (void *)"tests", EXIT_IO, "tests");
    expect_refusal(read_file, write_file("empty.txt", "", 0), EXIT_USAGE, "empty.txt");
}

static void expect_cost(const struct costs *c, const struct task *t, double ns, enum cost_source source)
{
    enum cost_source found;
    expect_number(t->name, 1e9 * task_seconds(c, t, &found), ns);
    assert_int_equal(found, source);
}

static struct task paper_task(struct lane *lane, const char *name, double flops, size_t bytes)
{
    struct task t = {.lane = lane, .layer = -1, .flops = flops, .bytes = bytes, .seconds = -1};
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

/* small: 1000 ns at 100 FLOPs and 400 bytes, 5000 at 900 and 4000, and in layer 0 7000; the lane as a whole: 13000 ns
 * for 4800 bytes. */
TEST(costs_of_a_profile)
{
    struct costs *c = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    struct paper p = new_paper(1, &slow_speeds);
    struct lane *compute = p.device->lane[LANE_COMPUTE], *cpu = p.host->lane[LANE_CPU];
    struct task same = paper_task(compute, "small", 100, 400), other = paper_task(compute, "small", 900, 4000);
    struct task near_small = paper_task(compute, "small", 200, 500),
                near_large = paper_task(compute, "small", 450, 3000);
    struct task unseen = paper_task(compute, "unheard of", 5, 9600), host = paper_task(cpu, "read", 0, 201);
    expect_cost(c, &same, 1000, COST_MEASURED);
    expect_cost(c, &other, 5000, COST_MEASURED);
    expect_cost(c, &near_small, 2000, COST_SCALED); /* by FLOPs, from the nearest in bytes */
    expect_cost(c, &near_large, 5000 * 450 / 900, COST_SCALED);
    expect_cost(c, &unseen, 13000 * 9600 / 4800, COST_SCALED); /* by bytes, from the whole lane */
    expect_cost(c, &host, 4000, COST_SCALED);                  /* by bytes + 1 */
    same.layer = 0;
    expect_cost(c, &same, 7000, COST_MEASURED);
    same.layer = 1;
    expect_cost(c, &same, 1000, COST_MEASURED);
    c->scale_device = 2;
    c->scale_cpu = 4;
    expect_cost(c, &same, 500, COST_MEASURED);
    expect_cost(c, &unseen, 13000, COST_SCALED);
    expect_cost(c, &host, 1000, COST_SCALED);
    end_paper(&p);
    free_costs(c);
}

/* A copy: 800 bytes to the device, 1600 with what is read.  `link` alone changes it, `device` does not. */
TEST(costs_of_copies)
{
    struct costs *c = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    struct paper p = new_paper(1, &slow_speeds);
    struct tensor *to = new_bytes(&p, p.device, "to", 200, true), *from = new_bytes(&p, p.host, "from", 200, true);
    struct lane *up = p.device->lane[LANE_UPLOAD], *down = p.device->lane[LANE_DOWNLOAD];
    struct task known = *add_copy(p.step, up, "move", to, from);
    struct task unknown = *add_copy(p.step, down, "back", from, to);
    assert_true(seconds_of_copy(c, "move", up, p.device, p.host, 800) == seconds_alone(c, &known));
    assert_true(seconds_of_copy(c, "back", down, p.host, p.device, 800) == seconds_alone(c, &unknown));
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
TEST(costs_by_the_roofline)
{
    struct paper p = new_paper(1, &(struct speeds){1, 1e9, 1e-6, 1e9, 5e-6}); /* 0.5 TFLOP/s, 1 GB/s, 1 us */
    struct lane *compute = p.device->lane[LANE_COMPUTE];
    struct task flops = paper_task(compute, "flops", 5e8, 1000), bytes = paper_task(compute, "bytes", 0, 4000);
    struct task host = paper_task(p.host->lane[LANE_CPU], "host", 0, 2000);
    expect_cost(p.costs, &flops, 1000 + 1e6, COST_MODELLED);
    expect_cost(p.costs, &bytes, 1000 + 4000, COST_MODELLED);
    expect_cost(p.costs, &host, 1000 + 2000, COST_MODELLED);
    apply_what_if(p.costs, p.machine, "device=2x cpu=0.5x");
    expect_cost(p.costs, &flops, 1000 + 5e5, COST_MODELLED);
    expect_cost(p.costs, &bytes, 1000 + 2000, COST_MODELLED);
    expect_cost(p.costs, &host, 2000 + 4000, COST_MODELLED);
    p.costs->units = 8;
    p.costs->scale_device = 1;
    bytes.file = flops.file = "x.cl";
    for (size_t groups = 1; groups <= 20; groups++) {
        bytes.grid = flops.grid = (struct grid){1, {groups * 64, 1, 1}, {64, 1, 1}};
        expect_cost(p.costs, &bytes, 1000 + 4000 * 8.0 / (double)MIN(groups, 8), COST_MODELLED);
        expect_cost(p.costs, &flops, 1000 + 1e6, COST_MODELLED); /* a product */
    }
    end_paper(&p);
}

/* Lanes of the host may have speeds of their own; the disk's is shared by all that is on it. */
TEST(costs_of_host_lanes)
{
    struct paper p = new_paper(1, &(struct speeds){1, 1e9, 1e-6, 1e9, 5e-6});
    struct link const *link[2];
    struct task *persist = add_host(p.step, p.host->lane[LANE_DISK], "persist", NULL, NULL);
    struct task feed = paper_task(p.host->lane[LANE_FEED], "feed", 0, 2000);
    struct task cpu = paper_task(p.host->lane[LANE_CPU], "cpu", 0, 2000);
    add_access(persist, new_bytes(&p, p.host, "x", 500, true), ACCESS_READ);
    p.costs->speed[LANE_DISK] = (struct lane_speed){5e8, 3e-6};
    p.costs->speed[LANE_FEED] = (struct lane_speed){2e9, 0};
    expect_cost(p.costs, persist, 3000 + 4000, COST_MODELLED);
    expect_cost(p.costs, &feed, 1000, COST_MODELLED);
    expect_cost(p.costs, &cpu, 1000 + 2000, COST_MODELLED);
    describe_speeds(p.machine, p.costs);
    links_of(persist, link);
    assert_true(link[0]);
    assert_true(link[0] == p.host->described.disk);
    assert_true(!link[1]);
    expect_number("rate of the disk", link[0]->rate, 5e8);
    expect_number("latency of the disk", link[0]->latency, 3e-6);
    end_paper(&p);
}

static void ask_what_if(void *words)
{
    struct paper p = new_paper(1, &slow_speeds);
    apply_what_if(p.costs, p.machine, words);
}

TEST(what_if)
{
    static const char *const bad[] = {"link",    "link=",    "link=fast", "link=0x", "link=-1x", "link=infx",
                                      "link=2y", "link=2xx", "mem=0",     "mem=8Q",  "gpu=2x",   "link=2x cpu"};
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_refusal(ask_what_if, (void *)bad[i], EXIT_USAGE, "--what-if: '");
    struct paper p = new_paper(2, &slow_speeds);
    size_t host = p.host->budget;
    apply_what_if(p.costs, p.machine, "link=2x,\tcpu=0.5\ndevice=1.5x mem=8K");
    expect_number("scale of links", p.costs->scale_link, 2);
    expect_number("scale of the CPU", p.costs->scale_cpu, 0.5);
    expect_number("scale of devices", p.costs->scale_device, 1.5);
    assert_int_equal(p.machine->device[0].budget, 8192);
    assert_int_equal(p.machine->device[1].budget, 8192);
    assert_int_equal(p.host->budget, host);
    end_paper(&p);
}

static void check_print(void *changed)
{
    struct costs *c = read_costs(write_file("profile.txt", profile_text, strlen(profile_text)));
    struct device d = {.name = "some device", .units = 2, .shape.vector = 8};
    free(c->driver);
    c->driver = copy_string(""); /* as of a device without a driver */
    if (strcmp(changed, "device") == 0)
        snprintf(d.name, sizeof d.name, "another");
    if (strcmp(changed, "units") == 0)
        d.units = 4;
    if (strcmp(changed, "vector") == 0)
        d.shape.vector = 4;
    check_fingerprint(c, &d, strcmp(changed, "engine") ? "own" : "clblast");
    free_costs(c);
}

TEST(another_fingerprint_is_refused)
{
    expect_refusal(check_print, (void *)"device", EXIT_USAGE, "device \"some device\", this run has \"another\"");
    expect_refusal(check_print, (void *)"units", EXIT_USAGE, "units \"2\", this run has \"4\"");
    expect_refusal(check_print, (void *)"vector", EXIT_USAGE, "vector \"8\", this run has \"4\"");
    expect_refusal(check_print, (void *)"engine", EXIT_USAGE, "engine \"own\", this run has \"clblast\"");
    assert_int_equal(run_child(check_print, (void *)"nothing").code, 0);
}
