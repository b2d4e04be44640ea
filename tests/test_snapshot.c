/* test_snapshot.c - the plan: which iterations are stored and when, against a calculation of its own that keeps every
 * slot in view; and on models: once, whatever the mesh.  (In a run: test_snaprun.c, killed: test_kills.c.)
 */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static json_t *plan(const char *words)
{
    struct ran ran = run_yard("plan --simulate --verify --json %s", words);
    if (ran.code != EXIT_OK)
        test_failed("%s: %s\n", words, ran.err);
    return json_load_file(ran.stdout_path, 0, NULL);
}

static json_t *report_of(json_t *plan)
{
    json_t *passes_on = json_object_get(plan, "passes");
    return json_array_get(passes_on, json_array_size(passes_on) - 1);
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* "1: 27 27, 2: 47 47 but not 3 4" */
static char *outcome(const char *words)
{
    json_t *all = plan(words), *r = report_of(all), *commit, *number;
    size_t i;
    char *text = copy_string("");
    assert_string_equal(json_string_value(json_object_get(r, "pass")), "snapshot");
    json_array_foreach(json_object_get(r, "commits"), i, commit)
    {
        char *more = format_string("%s%s%g: %.9g %.9g", text, i ? ", " : "", number_of(commit, "iteration"),
                                   number_of(commit, "written_ms"), number_of(commit, "durable_ms"));
        free(text);
        text = more;
    }
    json_array_foreach(json_object_get(r, "dropped"), i, number)
    {
        char *more = format_string("%s%s %g", text, i ? "" : " but not", json_number_value(number));
        free(text);
        text = more;
    }
    json_decref(all);
    return text;
}

static void expect_outcome(const char *words, const char *expected)
{
    char *found = outcome(words);
    if (strcmp(found, expected) != 0)
        test_failed("%s: %s\nexpected %s\n", words, found, expected);
    free(found);
}

#define LIST "--list data/steps/snapshot.txt --clip 0 --snapshot build/never.snap "

TEST(the_shipped_list)
{
    expect_outcome(LIST "--iterations 13",
                   "1: 27 27, 2: 47 47, 7: 75 75, 10: 99 99, 13: 123 123 but not 3 4 5 6 8 9 11 12");
    expect_outcome(LIST "--iterations 6 --snapshot-every 3", "3: 43 43, 6: 67 67");
    expect_outcome(LIST "--iterations 2 --snapshot-every 3", "");
    expect_outcome(LIST "--iterations 3000 --snapshot-every 1000",
                   "1000: 8019 8019, 2000: 16019 16019, 3000: 24019 24019");
    assert_int_not_equal(access("build/never.snap", F_OK), 0);
}

/* Training waits for no snapshot: a step's path goes through what it computes, 8 ms, also where tasks of a slot stood
 * in the list and left it. */
TEST(the_critical_path_has_no_snapshots)
{
    json_t *p = plan(LIST), *path = json_object_get(json_object_get(p, "simulation"), "critical_path");
    double sum = 0;
    for (size_t i = 0; i < json_array_size(path); i++) {
        const char *lane = json_string_value(json_object_get(json_array_get(path, i), "lane"));
        assert_string_equal(lane, "gpu compute");
        sum += json_number_value(json_object_get(json_array_get(path, i), "ms"));
    }
    assert_true(fabs(sum - 8) < 1e-6);
    json_decref(p);
}

/* laptop.txt without its disk: no time is claimed for it. */
TEST(a_disk_that_nobody_described)
{
    char *text = NULL, line[512];
    size_t size;
    FILE *in = fopen("data/hardware/laptop.txt", "r"), *out = open_memstream(&text, &size);
    while (fgets(line, sizeof line, in))
        if (!strstr(line, "link disk"))
            fputs(line, out);
    fclose(in), fclose(out);
    char *words =
        format_string("--model tiny --hardware %s --snapshot build/never.snap", write_file("diskless.txt", text, size));
    json_t *p = plan(words);
    assert_non_null(strstr(json_string_value(json_object_get(report_of(p), "reason")), "how fast the disk is nobody"));
    json_decref(p);
    free(words), free(text);
}

/* ---- at random --------------------------------------------------------------------------------------------------- */

enum { UNITS = 3, ITERATIONS = 40 };
struct scene { /* milliseconds; units are updated last one first, each with a byte count */
    int forward, backward[UNITS], update, bytes[UNITS], slots, every, latency;
    int rate; /* bytes per ms */
};

static struct scene random_scene(uint32_t seed)
{
    struct scene s = {.forward = 1};
    uint32_t n = 0;
#define DRAW(below) ((int)(random_uniform(77, STREAM_TEST, seed, n++) * (below)))
    s.forward = 1 + DRAW(9);
    s.update = 1 + DRAW(3);
    for (int u = 0; u < UNITS; u++)
        s.backward[u] = 1 + DRAW(9);
    for (int u = 0; u < UNITS; u++)
        s.bytes[u] = 1000 * (1 + DRAW(20));
    s.slots = 1 + DRAW(4);
    s.every = 1 + DRAW(3);
    s.latency = DRAW(4);
    s.rate = 100 * (1 + DRAW(40));
#undef DRAW
    return s;
}

static char *scene_text(const struct scene *s)
{
    char *text =
        format_string("device gpu memory=1G\ndisk %d000 %dms\ntensor a gpu 4 activations\n", s->rate, s->latency);
    for (int u = 0; u < UNITS; u++) {
        char *more =
            format_string("%stensor w%d gpu %d parameters\ntensor g%d gpu 4 gradients\n", text, u, s->bytes[u], u);
        free(text), text = more;
    }
    char *more = format_string("%stask f gpu.compute %dms role=forward reads=w0,w1,w2 writes=a\n", text, s->forward);
    free(text), text = more;
    for (int u = UNITS - 1; u >= 0; u--) {
        more = format_string("%stask b gpu.compute %dms role=backward reads=a writes=g%d\n"
                             "task u gpu.compute %dms role=update reads=g%d,w%d writes=w%d\n",
                             text, s->backward[u], u, s->update, u, u, u);
        free(text), text = more;
    }
    return text;
}

/* The slots one by one: which iteration each has, and from when on that one is in the file and safe. */
struct slot_now {
    int iteration; /* 0: none */
    double written, durable;
};

static bool holds(const struct slot_now *slot, int n, const struct slot_now *which, double now)
{
    int newest_written = 0, newest_durable = 0;
    for (int i = 0; i < n; i++) {
        if (slot[i].iteration && slot[i].written <= now + 1e-9)
            newest_written = MAX(newest_written, slot[i].iteration);
        if (slot[i].iteration && slot[i].durable <= now + 1e-9)
            newest_durable = MAX(newest_durable, slot[i].iteration);
    }
    return which->iteration &&
           (which->written > now + 1e-9 || which->iteration == newest_written || which->iteration == newest_durable);
}

static int free_slot(const struct slot_now *slot, int n, double now)
{
    int k = 0;
    while (k < n && holds(slot, n, &slot[k], now))
        k++;
    return k < n ? k : -1;
}

static char *reckon(const struct scene *s)
{
    char *stored = copy_string(""), *dropped = copy_string(""), *more;
    struct slot_now slot[8] = {{0}};
    double disk = 0, now = 0;
    for (int i = 1; i <= ITERATIONS; i++) {
        int found = -1;
        now += s->forward;
        for (int u = UNITS - 1; u >= 0; u--) {
            now += s->backward[u] + s->update;
            if (u == UNITS - 1 && i % s->every == 0)
                found = free_slot(slot, s->slots, now);
            disk = found < 0 ? disk : fmax(disk, now) + s->latency + (double)s->bytes[u] / s->rate;
        }
        if (found < 0 && i % s->every == 0) {
            more = format_string("%s %d", dropped, i);
            free(dropped), dropped = more;
        }
        if (found < 0)
            continue;
        slot[found] = (struct slot_now){i, disk, disk + s->latency};
        disk += s->latency;
        more = format_string("%s%s%d: %.9g %.9g", stored, *stored ? ", " : "", i, slot[found].written,
                             slot[found].durable);
        free(stored), stored = more;
    }
    more = format_string("%s%s%s", stored, *dropped ? " but not" : "", dropped);
    free(stored), free(dropped);
    return more;
}

TEST(random_lists)
{
    const char *many = getenv("SNAPSHOT_CASES");
    for (uint32_t seed = 0; seed < (many ? (uint32_t)atoi(many) : 60); seed++) {
        struct scene s = random_scene(seed);
        char *text = scene_text(&s), *expected = reckon(&s);
        const char *path = write_file("scene.txt", text, strlen(text));
        char *words = format_string("--list %s --clip 0 --snapshot x --snapshot-slots %d --snapshot-every %d "
                                    "--iterations %d",
                                    path, s.slots, s.every, ITERATIONS);
        expect_outcome(words, expected);
        free(text), free(expected), free(words);
    }
}

/* Wherever an update stands: a copy of each tensor that it writes, in every slot. */
TEST(all_that_an_update_writes_is_stored)
{
    enum { UPDATES = 16, SLOTS = 2 };
    char *text = copy_string("device gpu memory=1G\ndisk 1e9\n");
    for (int i = 0; i < UPDATES; i++)
        append_text(&text, "tensor w%d gpu 4096 parameters\ntensor m%d gpu 8192 optimizer\n", i, i);
    for (int i = 0; i < UPDATES; i++)
        append_text(&text, "task u gpu.compute 1 role=update reads=w%d,m%d writes=w%d,m%d\n", i, i, i, i);
    char *words = format_string("--list %s --clip 0 --snapshot x --snapshot-slots %d",
                                write_file("updates.txt", text, strlen(text)), SLOTS);
    json_t *all = plan(words), *task;
    size_t i, copies = 0;
    json_array_foreach(json_object_get(json_array_get(json_object_get(all, "lists"), 0), "tasks"), i, task) copies +=
        strcmp(json_string_value(json_object_get(task, "task")), "snapshot") == 0;
    assert_int_equal(copies, 2 * UPDATES * SLOTS);
    json_decref(all);
    free(text), free(words);
}

/* A disk so slow that no pattern shows: what would spare all drops, and a step that takes no less than its tasks. */
static void expect_slow(const char *rate, int slots, const char *expected)
{
    char *text = format_string("device gpu memory=1G\ndisk %s\ntensor w gpu 4000000 parameters\n"
                               "tensor a gpu 4 activations\ntask f gpu.compute 5ms role=forward reads=w writes=a\n"
                               "task u gpu.compute 3ms role=update reads=a,w writes=w\n",
                               rate);
    char *words = format_string("--list %s --clip 0 --snapshot x --snapshot-slots %d",
                                write_file("slow.txt", text, strlen(text)), slots);
    json_t *all = plan(words);
    const char *reason = json_string_value(json_object_get(report_of(all), "reason"));
    double period = number_of(json_object_get(all, "simulation"), "step_ms");
    if (!strstr(reason, expected) || fabs(period - 8) > 1e-9)
        test_failed("a disk of %s: a step of %.12g ms, expected 8; %s\nexpected %s\n", rate, period, reason, expected);
    json_decref(all);
    free(text), free(words);
}

TEST(slow_disks)
{
    expect_slow("999000", 2,
                "dropped; the disk keeps up with --snapshot-every 501"); /* 4004 ms for them, and a step takes 8 */
    expect_slow("33311e3", 4,
                "dropped; the disk keeps up with --snapshot-every 16"); /* 120.08 ms: 15 steps would fall behind */
    expect_slow("1e3", 2, "dropped; the disk keeps up with --snapshot-every 500000");
}

/* The times of this list never repeat, since slots are free at another moment of each step: no lane is busier than the
 * period all the same. */
TEST(no_lane_is_busier_than_the_period)
{
    json_t *p = plan("--layers 1 --heads 1 --channels 8 --seq-len 8 --batch 2 --micro-batch 1 --zero 2 --clip 0 "
                     "--mesh dp=2 --hardware data/hardware/server.txt --untied --overlap all-cpu --snapshot x "
                     "--snapshot-slots 3");
    json_t *simulation = json_object_get(p, "simulation"), *share;
    const char *lane;
    assert_true(json_is_false(json_object_get(simulation, "settled")));
    json_object_foreach(json_object_get(simulation, "busy"), lane, share) if (json_number_value(share) > 1 + 1e-9)
        test_failed("%s is busy %.9g of the period\n", lane, json_number_value(share));
    json_decref(p);
}

/* A list that does not settle is not simulated for ever: the larger it is, the fewer of its steps. */
TEST(large_lists_are_stopped_sooner)
{
    json_t *p = plan("--layers 4 --heads 12 --channels 384 --seq-len 8 --batch 8 --micro-batch 4 --zero 3 --clip 1 "
                     "--mesh dp=2,tp=4 --hardware data/hardware/server.txt --untied --snapshot x --snapshot-slots 4");
    json_t *simulation = json_object_get(p, "simulation");
    double pattern = number_of(simulation, "pattern"); /* the later half of the steps */
    assert_true(json_is_false(json_object_get(simulation, "settled")));
    assert_true(pattern > 32 && pattern < 512);
    json_decref(p);
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* Bytes that are stored of an iteration, in the first slot. */
static double stored_bytes(const char *words)
{
    char *all = format_string("--model tiny --hardware data/hardware/server.txt %s", words);
    json_t *p = plan(all);
    const char *reason = json_string_value(json_object_get(report_of(p), "reason"));
    double bytes = strtod(reason, NULL);
    json_decref(p);
    free(all);
    return bytes;
}

TEST(every_mesh_stores_once)
{
    static const char *const meshes[] = {"--mesh dp=2 --zero 0",
                                         "--mesh dp=2 --zero 1",
                                         "--mesh dp=4 --zero 2",
                                         "--mesh pp=2",
                                         "--mesh dp=2,pp=2 --zero 0 --micro-batch 1",
                                         "--mesh dp=2 --zero 0 --overlap all-cpu"};
    double one = stored_bytes("--snapshot x");
    assert_true(one > 0);
    for (size_t i = 0; i < COUNT(meshes); i++) {
        char *words = format_string("%s --snapshot x --broadcast-queues 3", meshes[i]);
        double bytes = stored_bytes(words);
        if (fabs(bytes / one - 1) > 0.05) /* parts are rounded up to pages */
            test_failed("%s: %g KiB, on one device %g\n", meshes[i], bytes, one);
        free(words);
    }
}

TEST(refused)
{
    struct ran ran = run_yard("train --snapshot ''");
    assert_int_equal(ran.code, EXIT_USAGE);
    assert_non_null(strstr(ran.err, "--snapshot takes a path"));
    ran = run_yard("train --snapshot x --save x");
    assert_int_equal(ran.code, EXIT_USAGE);
    ran = run_yard("plan --list data/steps/snapshot.txt --snapshot x --print-list");
    assert_int_equal(ran.code, EXIT_USAGE);
    ran = run_yard("plan --list data/steps/chain.txt --snapshot x --snapshot-slots 0");
    assert_int_equal(ran.code, EXIT_USAGE);
    ran = run_yard("plan --model tiny --hardware data/hardware/server.txt --snapshot x --host-mem 512K --simulate");
    assert_int_equal(ran.code, EXIT_USAGE);
    assert_non_null(strstr(ran.err, "host"));
}
