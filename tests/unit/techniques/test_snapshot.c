/* test_snapshot.c - the plan of snapshots: which iterations are stored, and when each copy goes.
 *
 * It tests src/techniques/snapshot on lists that never run.  It checks that each layer is stored once, whatever the
 * mesh; that a slot is not overwritten while it has the newest whole iteration; and that no snapshot is on the critical
 * path.  It catches a layer that is stored twice or not at all, a copy that delays training, and a promise that the
 * disk cannot keep.
 *
 * To see it fail: in snapshot_stored.c, let writes_state() leave out what the optimizer keeps.
 *
 * The expected plans come from a calculation in this file that looks at every slot, and for shipped lists from paper.
 * test_snaprun.c tests snapshots in a run, and test_kills.c in one that is killed.
 *
 *     YARD_CASES=N build/tests/test_snapshot      N random lists
 */
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "tests/support/support.h"
#include "tests/support/support_training.h"
#include "trainer/file/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static json_t *report_of(json_t *plan)
{
    json_t *passes_on = json_object_get(plan, "passes");
    return json_array_get(passes_on, json_array_size(passes_on) - 1);
}

/* The sentences of the report, as JSON writes them. */
static const char *report_text(json_t *json)
{
    char *text = json_dumps(report_of(json), 0);
    const char *copy = lasting("%s", text);
    free(text);
    return copy;
}

/* The outcome is a text such as "1: 27 27, 2: 47 47 but not 3 4": when each iteration was written and durable, in ms,
 * and which ones were dropped. */
static void expect_outcome(const char *words, const char *expected)
{
    json_t *json = report_of(verified_plan("%s", words)), *commit, *number;
    size_t i;
    const char *found = "";
    assert_string_equal(text_at(json, "pass"), "snapshot");
    json_array_foreach(json_object_get(json, "commits"), i, commit)
    {
        found = lasting("%s%s%g: %.9g %.9g", found, i ? ", " : "", number_at(commit, "iteration"),
                        number_at(commit, "written_ms"), number_at(commit, "durable_ms"));
    }
    json_array_foreach(json_object_get(json, "dropped"), i, number)
    {
        found = lasting("%s%s %g", found, i ? "" : " but not", json_number_value(number));
    }
    if (strcmp(found, expected) != 0)
        test_failed("%s: %s\nexpected %s\n", words, found, expected);
}

#define LIST "--list data/steps/snapshot.txt --clip 0 --snapshot build/never.snap "

TEST(the_shipped_list_stores_the_iterations_that_have_a_slot)
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
    json_t *task;
    size_t i;
    double sum = 0;
    json_array_foreach(json_at(verified_plan(LIST), "simulation.critical_path"), i, task)
    {
        assert_string_equal(text_at(task, "lane"), "gpu compute");
        sum += number_at(task, "ms");
    }
    assert_close(sum, 8, 1e-6);
}

/* laptop.txt without its disk: no time is claimed for it. */
TEST(without_a_disk_in_the_hardware_no_time_is_claimed)
{
    char *text = read_text("data/hardware/laptop.txt");
    *strstr(text, "link disk") = '#';
    json_t *json = verified_plan("--model tiny --hardware %s --snapshot x", write_text("diskless.txt", "%s", text));
    assert_contains(report_text(json), "no link disk says how fast the disk is");
    free(text);
}

/* w0 is updated in every third step, before w3 and on the same lane; both take 1 ms to write.  In step 2 no task
 * updates w0 first, so its copy chooses the slot, at 2 ms, when step 1's commit still holds the other one up to
 * 3 ms.  Step 3 updates w0 from 4 ms to 5 ms, when step 2's commit has come; it is written at 8 ms.  At 7 ms
 * step 4 finds no slot. */
TEST(an_update_that_skips_steps_holds_no_other)
{
    const char *list = write_text("skips.txt", "device gpu memory=1G\ndisk 1e6\ntensor w0 gpu 1000 parameters\n"
                                               "tensor w3 gpu 1000 parameters\n"
                                               "task U3 gpu.compute 1ms role=update cpu=2ms writes=w3\n"
                                               "task U0 gpu.compute 1ms role=update cpu=1ms every=3 writes=w0\n");
    const char *words = lasting("--list %s --clip 0 --overlap all-cpu --snapshot x --iterations 7", list);
    expect_outcome(words, "1: 3 3, 2: 5 5, 3: 8 8, 5: 12 12, 6: 15 15 but not 4 7");
    assert_close(number_at(verified_plan("%s", words), "simulation.step_ms"), 7.0 / 3, 1e-9);
    assert_close(number_at(report_of(verified_plan("%s", words)), "held_ms"), 0,
                 0); /* copies on the host take no time */
}

/* ---- at random --------------------------------------------------------------------------------------------------- */

enum { UNITS = 3, ITERATIONS = 40 };
struct scene { /* milliseconds; units are updated last one first, each with a byte count */
    int forward, update, slots, every, latency;
    int backward[UNITS], bytes[UNITS]; /* by unit */
    int rate, link; /* bytes per ms, of the disk and of the way down to the host; link 0: it takes no time */
    bool on_device;
};

static struct scene random_scene(uint32_t seed)
{
    struct scene scene;
    struct draws draws = {.seed = 77, .row = seed};
    scene.forward = draw_between(&draws, 1, 9);
    scene.update = draw_between(&draws, 1, 3);
    for (int u = 0; u < UNITS; u++) {
        scene.backward[u] = draw_between(&draws, 1, 9);
        scene.bytes[u] = 1000 * draw_between(&draws, 1, 20);
    }
    scene.slots = draw_between(&draws, 1, 4);
    scene.every = draw_between(&draws, 1, 3);
    scene.latency = draw_between(&draws, 0, 3);
    scene.rate = 100 * draw_between(&draws, 1, 40);
    scene.link = 100 * draw_between(&draws, 0, 59);
    scene.on_device = seed % 2 == 1;
    return scene;
}

static char *scene_text(const struct scene *scene)
{
    char *text = NULL;
    append_text(&text, "device gpu memory=1G\ndisk %d %dms\ntensor a gpu 4 activations\n", 1000 * scene->rate,
                scene->latency); /* a list has bytes per second */
    if (scene->link)
        append_text(&text, "link gpu down %d\n", 1000 * scene->link);
    for (int u = 0; u < UNITS; u++)
        append_text(&text, "tensor w%d gpu %d parameters\ntensor g%d gpu 4 gradients\n", u, scene->bytes[u], u);
    append_text(&text, "task f gpu.compute %dms role=forward reads=w0,w1,w2 writes=a\n", scene->forward);
    for (int u = UNITS - 1; u >= 0; u--)
        append_text(&text,
                    "task b gpu.compute %dms role=backward reads=a writes=g%d\n"
                    "task u gpu.compute %dms role=update reads=g%d,w%d writes=w%d\n",
                    scene->backward[u], u, scene->update, u, u, u);
    return text;
}

/* Is a slot neither that of the newest iteration that is safe nor that of an iteration under way? */
static bool has_free_slot(const struct slots *slots)
{
    for (int k = 1; k <= slots->n; k++)
        if (slots->iteration[k] == 0 && k != slots->durable)
            return true;
    return false;
}

/* Iteration 7 takes a slot.  When it returns the slot, that one has the newest iteration that is safe, if 7 `counts`:
 * if all of it was stored. */
static void expect_rule_of_slots(const struct slots *before)
{
    struct slots slots = *before;
    int taken = take_slot(&slots, 7);
    assert_int_equal(taken > 0, has_free_slot(before));
    assert_int_equal(slot_of(&slots, 7), taken);
    for (int k = 1; k <= before->n; k++)
        assert_int_equal(slots.iteration[k], k == taken ? 7 : before->iteration[k]);
    assert_int_equal(slots.durable, before->durable);
    if (!taken)
        return;
    assert_int_not_equal(taken, before->durable);
    assert_int_equal(before->iteration[taken], 0);
    for (int counts = 0; counts < 2; counts++) {
        struct slots after = slots;
        return_slot(&after, 7, counts);
        assert_int_equal(after.durable, counts ? taken : before->durable);
        for (int k = 1; k <= before->n; k++)
            assert_int_equal(after.iteration[k], before->iteration[k]);
    }
}

/* All states of up to five slots: any of them with an iteration under way, and the newest iteration that is safe in any
 * of the others or in none. */
TEST(a_slot_is_free_unless_it_is_the_newest_or_an_iteration_has_it)
{
    for (int n = 1; n <= 5; n++)
        for (int durable = 0; durable <= n; durable++)                 /* 0: none is safe yet */
            for (int under_way = 0; under_way < 1 << n; under_way++) { /* bit k - 1: slot k has an iteration */
                struct slots slots = {.n = n, .durable = durable};
                for (int k = 1; k <= n; k++)
                    slots.iteration[k] = under_way >> (k - 1) & 1 ? (uint32_t)(100 + k) : 0;
                bool can_occur = durable == 0 || slots.iteration[durable] == 0; /* what is safe is not under way */
                if (can_occur)
                    expect_rule_of_slots(&slots);
            }
}

/* The slots one by one: which iteration each has, and from when on that one is in the file and safe. */
struct slot_now {
    int iteration; /* 0: none */
    double written, durable;
};

/* Is `which`, one of the n slots, taken?  It is while its iteration is on the way to the file, and then as long as that
 * one is the newest in the file or the newest that is safe. */
static bool is_taken(const struct slot_now *slot, int n, const struct slot_now *which, double now)
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

/* The first of the n slots that is not taken; -1: all are. */
static int free_slot(const struct slot_now *slot, int n, double now)
{
    int k = 0;
    while (k < n && is_taken(slot, n, &slot[k], now))
        k++;
    return k < n ? k : -1;
}

/* When training, the link and the disk have done what they were given so far, in milliseconds. */
struct done {
    double training, link, disk;
    double down[UNITS]; /* when the unit's newest copy is down */
};

/* A unit's backward and update.  On the host's side the update waits until what the one before it wrote is down. */
static void reckon_update(const struct scene *scene, int unit, struct done *done)
{
    double begin = done->training + scene->backward[unit];
    if (!scene->on_device)
        begin = fmax(begin, done->down[unit]);
    done->training = begin + scene->update;
}

/* What the update wrote goes down, and then to the disk, each behind what is there already. */
static void reckon_copy(const struct scene *scene, int unit, struct done *done)
{
    double bytes = scene->bytes[unit];
    double way = scene->link ? bytes / scene->link : 0;
    done->link = fmax(done->link, done->training) + way;
    done->down[unit] = done->link;
    done->disk = fmax(done->disk, done->link) + scene->latency + bytes / scene->rate;
}

/* The outcome of a scene, as expect_outcome() has it.  One iteration with a slot, where f is the forward, b and u
 * are a unit's backward and update, and 2 1 0 are the copies and writes of the units:
 *
 *     training   f  b u  b u  b u  f  ...         the slot is chosen at the end of the first u
 *     link              2    1    0
 *     disk               2222 1111 0000 c         written at the end of 0000, durable at that of c, the commit
 */
static char *reckon(const struct scene *scene)
{
    const char *stored = "", *dropped = "";
    struct slot_now slot[8] = {{0}};
    struct done done = {0};
    for (int i = 1; i <= ITERATIONS; i++) {
        bool is_wanted = i % scene->every == 0;
        int taken = -1;
        done.training += scene->forward;
        for (int unit = UNITS - 1; unit >= 0; unit--) {
            reckon_update(scene, unit, &done);
            if (is_wanted && unit == UNITS - 1)
                taken = free_slot(slot, scene->slots, done.training);
            if (taken >= 0)
                reckon_copy(scene, unit, &done);
        }
        if (is_wanted && taken < 0)
            dropped = lasting("%s %d", dropped, i);
        if (taken < 0)
            continue;
        double written = done.disk;
        done.disk += scene->latency;
        slot[taken] = (struct slot_now){.iteration = i, .written = written, .durable = done.disk};
        stored = lasting("%s%s%d: %.9g %.9g", stored, *stored ? ", " : "", i, written, done.disk);
    }
    return lasting("%s%s%s", stored, *dropped ? " but not" : "", dropped);
}

/* Where iterations are dropped, with what the sentence advises none are. */
static void expect_advice(const char *words, int every)
{
    char *line = lasting("%s %d", words, every);
    const char *advice = strstr(report_text(verified_plan("%s", line)), "up with --snapshot-every ");
    if (!advice)
        return;
    line = lasting("%s %d", words, atoi(advice + strlen("up with --snapshot-every ")));
    if (json_array_size(json_object_get(report_of(verified_plan("%s", line)), "dropped")))
        test_failed("%s drops some\n", line);
}

LAW(snapshots_of_random_lists_are_as_reckoned)
{
    const struct cases some = cases_of(12, number_from("YARD_CASES", 60));
    for (uint32_t seed = (uint32_t)some.begin; seed < (uint32_t)some.end; seed++) {
        struct scene scene = random_scene(seed);
        char *text = scene_text(&scene);
        char *words =
            lasting("--list %s --clip 0 --snapshot x --snapshot-slots %d --iterations %d --snapshot-in %s "
                    "--snapshot-every",
                    write_text("scene.txt", "%s", text), scene.slots, ITERATIONS, scene.on_device ? "device" : "host");
        expect_outcome(lasting("%s %d", words, scene.every), reckon(&scene));
        expect_advice(words, scene.every);
        free(text);
    }
}

static char *list_that_skips_steps(struct draws *draws)
{
    char *text = NULL;
    int units = draw_between(draws, 2, 5);
    append_text(&text, "device gpu memory=1G\ndisk 1e7 %dus\n", draw_between(draws, 0, 199));
    for (int u = 0; u < units; u++)
        append_text(&text, "tensor w%d gpu %d parameters\ntensor g%d gpu 100 gradients\n", u,
                    draw_between(draws, 100, 8099), u);
    for (int u = 0; u < units; u++) {
        int backward = draw_between(draws, 1, 500), update = draw_between(draws, 1, 100);
        int update_on_cpu = draw_between(draws, 1, 500), every = draw_between(draws, 1, 6);
        append_text(&text, "task b%d gpu.compute %dus role=backward layer=%d reads=w%d writes=g%d\n", u, backward, u, u,
                    u);
        append_text(&text, "task u%d gpu.compute %dus role=update layer=%d cpu=%dus every=%d", u, update, u,
                    update_on_cpu, every);
        append_text(&text, " reads=g%d,w%d writes=w%d\n", u, u, u);
    }
    return text;
}

/* Lists whose updates skip steps, some of them on the CPU, all come to an end in simulation; every step of which a
 * snapshot is wanted is stored or dropped. */
LAW(updates_that_skip_steps_are_stored_or_dropped)
{
    static const char *const sides[] = {"all-cpu", "plan", "off"};
    struct cases cases = cases_of(8, 60);
    for (int seed = cases.begin; seed < cases.end; seed++) {
        struct draws draws = {.seed = 78, .row = (uint32_t)seed};
        char *text = list_that_skips_steps(&draws);
        int slots = draw_between(&draws, 1, 4), every = draw_between(&draws, 1, 3), clip = draw_between(&draws, 0, 1);
        const char *side = sides[draw_below(&draws, COUNT(sides))];
        char *words = lasting("--list %s --clip %d --overlap %s --snapshot x --snapshot-slots %d --snapshot-every %d "
                              "--iterations 60",
                              write_text("skips.txt", "%s", text), clip, side, slots, every);
        json_t *json = report_of(verified_plan("%s", words));
        size_t all =
            json_array_size(json_object_get(json, "commits")) + json_array_size(json_object_get(json, "dropped"));
        if (all != 60 / (size_t)every)
            test_failed("seed %d: %zu of 60 iterations, every %d\n%s", seed, all, every, text);
        free(text);
    }
}

/* ---- slow links and disks ---------------------------------------------------------------------------------------- */

static void expect_ms(const json_t *of, const char *key, double ms)
{
    if (!(fabs(number_at(of, key) - ms) <= 1e-9 * ms))
        test_failed("%s is %.12g, expected %.12g\n", key, number_at(of, key), ms);
}

/* One unit, which takes `down` to the host.  Its next update waits for that in the host's case alone; both plans say
 * how long either step takes. */
TEST(a_slow_link_holds_no_update_on_the_device)
{
    for (uint32_t seed = 0; seed < 12; seed++) {
        struct scene scene = random_scene(seed);
        double all = scene.forward + scene.backward[0] + scene.update,
               down = 1e-3 * scene.bytes[0] * (1 + scene.latency);
        double host = fmax(all, down + scene.update);
        const char *list =
            write_text("slow.txt",
                       "device gpu memory=1G\nlink gpu down %.17g queues=1\ntensor w gpu %d parameters\n"
                       "task f gpu.compute %dms role=forward reads=w\n"
                       "task b gpu.compute %dms role=backward reads=w\n"
                       "task u gpu.compute %dms role=update reads=w writes=w\n",
                       1e3 * scene.bytes[0] / down, scene.bytes[0], scene.forward, scene.backward[0], scene.update);
        for (int on_device = 0; on_device < 2; on_device++) {
            json_t *json =
                verified_plan("--list %s --clip 0 --snapshot x --snapshot-in %s", list, on_device ? "device" : "host");
            expect_ms(json, "simulation.step_ms", on_device ? all : host);
            expect_ms(report_of(json), "host_ms", host);
            expect_ms(report_of(json), "device_ms", all);
            expect_ms(report_of(json), "held_ms", on_device ? 0 : down);
            expect_ms(report_of(json), "device_bytes", on_device ? 2 * scene.bytes[0] : 0);
        }
    }
}

/* A disk so slow that no pattern shows: what would spare all drops, and a step that takes no less than its tasks. */
static void expect_slow(const char *rate, int slots, const char *expected)
{
    char *path = write_text("slow.txt",
                            "device gpu memory=1G\ndisk %s\ntensor w gpu 4000000 parameters\n"
                            "tensor a gpu 4 activations\ntask f gpu.compute 5ms role=forward reads=w writes=a\n"
                            "task u gpu.compute 3ms role=update reads=a,w writes=w\n",
                            rate);
    json_t *all = verified_plan("--list %s --clip 0 --snapshot x --snapshot-slots %d", path, slots);
    const char *text = report_text(all);
    double period = number_at(all, "simulation.step_ms");
    if (!strstr(text, expected) || fabs(period - 8) > 1e-9)
        test_failed("a disk of %s: a step of %.12g ms, expected 8; %s\nexpected %s\n", rate, period, text, expected);
}

TEST(a_slow_disk_is_told_which_interval_it_keeps_up_with)
{
    expect_slow("999000", 2,
                "dropped; the disk keeps up with --snapshot-every 501"); /* 4004 ms for them, and a step takes 8 */
    expect_slow("33311e3", 4,
                "dropped; the disk keeps up with --snapshot-every 16"); /* 120.08 ms: 15 steps would fall behind */
    expect_slow("1e3", 2, "the disk keeps up with one step in 500000, and --snapshot-every takes at most 1000");
}

/* The times of this list never repeat, since slots are free at another moment of each step: no lane is busier than the
 * period all the same. */
TEST(no_lane_is_busier_than_the_period)
{
    json_t *json =
        verified_plan("--layers 1 --heads 1 --channels 8 --seq-len 8 --batch 2 --micro-batch 1 --zero 2 --clip 0 "
                      "--mesh dp=2 --hardware data/hardware/server.txt --untied --overlap all-cpu --snapshot x "
                      "--snapshot-slots 3");
    json_t *simulation = json_object_get(json, "simulation"), *share;
    const char *lane;
    assert_true(json_is_false(json_object_get(simulation, "settled")));
    json_object_foreach(json_object_get(simulation, "busy"), lane, share)
    {
        if (json_number_value(share) > 1 + 1e-9)
            test_failed("%s is busy %.9g of the period\n", lane, json_number_value(share));
    }
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* Bytes that are stored of an iteration, in the first slot. */
static double stored_bytes(const char *words)
{
    json_t *json = verified_plan("--model tiny --hardware data/hardware/server.txt %s", words);
    return strtod(text_at(report_of(json), "reason"), NULL);
}

TEST(every_mesh_stores_each_value_once)
{
    static const char *const meshes[] = {"--mesh dp=2 --zero 0",
                                         "--mesh dp=2 --zero 1",
                                         "--mesh dp=4 --zero 2",
                                         "--mesh pp=2",
                                         "--mesh dp=2,pp=2 --zero 0 --micro-batch 1",
                                         "--mesh dp=2 --zero 0 --overlap all-cpu",
                                         "--mesh dp=2 --zero 0 --swap layer --swap-what gradients",
                                         "--mesh dp=2 --zero 0 --micro-batch 1 --swap layer --swap-what gradients"};
    double one = stored_bytes("--snapshot x");
    assert_above(one, 0);
    for (size_t i = 0; i < COUNT(meshes); i++) {
        double bytes = stored_bytes(lasting("%s --snapshot x --broadcast-queues 3", meshes[i]));
        if (fabs(bytes / one - 1) > 0.05) /* parts are rounded up to pages */
            test_failed("%s: %g KiB, on one device %g\n", meshes[i], bytes, one);
    }
}

/* The report says what --snapshot-in device cannot copy on the device, also where that is all. */
TEST(what_cannot_be_copied_on_the_device_is_named)
{
    static const struct {
        const char *words, *in, *said;
    } cases[] = {
        {"", "device", NULL},
        {"--overlap local", "host", "has no effect here"},
        {"--overlap all-cpu", "host", "has no effect here"},
        {"--overlap plan", "device", "are on the host when they are updated"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *json = verified_plan(
            "--model tiny --hardware data/hardware/server.txt --snapshot x --snapshot-in device %s", cases[i].words);
        const char *text = report_text(json);
        if (strcmp(text_at(report_of(json), "in"), cases[i].in) != 0 ||
            (cases[i].said ? !strstr(text, cases[i].said) : strstr(text, "host when") != NULL))
            test_failed("%s: in %s: %s\n", cases[i].words, text_at(report_of(json), "in"), text);
    }
}

/* With --overlap local an update is in the list on both sides, and so are its copies.  Here the CPU is expected to do
 * all updates ("CC"), so that the device's copies do nothing: their lanes are idle. */
TEST(copies_of_the_side_that_is_not_expected_take_no_time)
{
    json_t *json =
        verified_plan("--model tiny --hardware data/hardware/workstation.txt --clip 0 --overlap local --snapshot x");
    assert_string_equal(text_at(json, "passes.0.choice"), "CC");
    json_t *busy = json_at(json, "simulation.busy"), *task;
    int n_idle = 0;
    size_t i;
    json_array_foreach(json_at(json, "lists.0.tasks"), i, task)
    {
        const char *lane = text_at(task, "lane");
        if (strcmp(text_at(task, "task"), "snapshot") != 0 || strncmp(lane, "workstation.0", 13) != 0)
            continue;
        n_idle++;
        double share = json_number_value(json_object_get(busy, lane));
        if (share > 0)
            test_failed("%s is busy %g of the period\n", lane, share);
    }
    assert_above(n_idle, 0);
}

/* The list of a training on described hardware. */
static struct trainer *plan_on(const char *hardware, const char *words)
{
    struct settings *settings = parse_words(words);
    asked_predict.hardware = hardware;
    asked_predict.simulate = true;
    return plan_training(settings, LIST_TRAIN);
}

/* With --overlap local: some updates are expected on the CPU and some on the device. */
static struct trainer *plan_both_sides(void)
{
    return plan_on("data/hardware/laptop.txt",
                   "--model nano --micro-batch 1 --overlap local --clip 0 --snapshot build/never.snap");
}

/* The update that writes what the copy stores: either side has parameters and state of its own. */
static const struct task *update_that_is_stored(const struct list *list, const struct task *copy)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (task->role == ROLE_UPDATE && touches_bytes(task, copy_source(copy), ACCESS_WRITE))
            return task;
    }
    test_failed("copy %zu %s stores what no update writes\n", copy->index, copy->name);
    return NULL;
}

/* A snapshot's copy does nothing where its update does nothing, and is expected where its update is. */
TEST(a_copy_is_expected_when_its_update_is)
{
    struct trainer *trainer = plan_both_sides();
    const struct list *list = trainer->train_list;
    int found[2][2] = {{0}}; /* by side, the host's first, and by whether it is expected */
    for (size_t i = 0; i < list->n; i++) {
        const struct task *copy = list->tasks[i];
        if (copy->role != ROLE_SNAPSHOT || !is_copy(copy))
            continue;
        const struct task *update = update_that_is_stored(list, copy);
        assert_int_equal(copy->extra.condition.unexpected, update->extra.condition.unexpected);
        assert_int_equal(copy->extra.seconds == 0, update->extra.condition.unexpected);
        found[!update->lane->device->is_host][!update->extra.condition.unexpected]++;
    }
    for (int side = 0; side < 2; side++)
        for (int expected = 0; expected < 2; expected++)
            assert_above(found[side][expected], 0);
    free_trainer(trainer);
}

/* The new parameters go up first: the device waits for them, and nothing waits for a snapshot. */
TEST(an_update_of_either_side_is_stored_after_its_copies_back)
{
    struct trainer *trainer = plan_both_sides();
    const struct list *list = trainer->train_list;
    const struct task *snapshot = NULL;
    int ups = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (task->role == ROLE_SNAPSHOT)
            snapshot = task;
        if (strcmp(task->name, "overlap.up") != 0)
            continue;
        ups++;
        if (snapshot && snapshot->layer == task->layer)
            test_failed("layer %d: task %zu %s comes before %zu %s\n", task->layer, snapshot->index, snapshot->name,
                        task->index, task->name);
    }
    assert_above(ups, 0);
    free_trainer(trainer);
}

/* Whether an iteration has a slot is known late, and lane order holds only between tasks that are known alike: so the
 * copies of snapshots from a device have lanes of their own.  Here most updates move to the CPU, and their gradients go
 * down on another lane. */
TEST(no_lane_has_snapshots_and_other_copies)
{
    json_t *tasks =
        json_at(verified_plan("--model tiny --layers 4 --hardware data/hardware/server.txt --clip 0 --overlap plan "
                              "--snapshot x"),
                "lists.0.tasks");
    json_t *one, *other;
    size_t i, k, snapshots = 0, downs = 0;
    json_array_foreach(tasks, i, one)
    {
        const char *lane = text_at(one, "lane");
        if (strcmp(text_at(one, "task"), "overlap.down") == 0)
            downs++;
        if (strcmp(text_at(one, "task"), "snapshot") != 0 || !strstr(lane, "download"))
            continue;
        snapshots++;
        json_array_foreach(tasks, k, other)
        {
            if (strcmp(text_at(other, "lane"), lane) == 0 && strcmp(text_at(other, "task"), "snapshot") != 0)
                test_failed("%s is on %s, beside snapshots\n", text_at(other, "task"), lane);
        }
    }
    assert_above(snapshots, 0);
    assert_above(downs, 0);
}

static bool is_copy_for_snapshot(const struct task *task) { return task->role == ROLE_SNAPSHOT && is_copy(task); }

/* What a list writes into buffers of snapshots, piece by piece: no two pieces of a buffer have a byte in common.
 * Returns the number of pairs that are in one buffer. */
static size_t expect_places_apart(const struct list *list)
{
    size_t pairs = 0;
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct task *later = list->tasks[i], *earlier = list->tasks[k];
            if (!is_copy_for_snapshot(later) || !is_copy_for_snapshot(earlier))
                continue;
            const struct tensor *a = copy_target(earlier), *b = copy_target(later);
            bool other_side = earlier->lane->device != later->lane->device; /* one of the two does nothing */
            if (a->storage != b->storage || other_side)
                continue;
            pairs++;
            if (a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes)
                test_failed("tasks %zu and %zu %s write the same bytes of %s\n", k, i, later->name, a->storage->name);
        }
    return pairs;
}

/* Updates on the host, in slices, and on either side: each slice goes to its own bytes of the unit's buffer. */
TEST(slices_of_an_update_have_places_of_their_own)
{
    static const char *const sides[] = {"all-cpu", "local"};
    for (size_t i = 0; i < COUNT(sides); i++) {
        struct trainer *trainer = plan_on(
            "data/hardware/server.txt",
            lasting("--model gpt2 --micro-batch 1 --clip 0 --snapshot build/never.snap --overlap %s", sides[i]));
        assert_above(expect_places_apart(trainer->train_list), 0);
        free_trainer(trainer);
    }
}

/* The way of a gradient that leaves and comes back for every micro-batch is followed once, not once for each way
 * through its copies, of which there are 2^39 here. */
TEST(gradients_that_are_swapped_for_many_micro_batches_are_followed_once)
{
    double plain = stored_bytes("--snapshot x --batch 40 --micro-batch 1");
    alarm(60); /* else it would go on for ever */
    double swapped = stored_bytes("--snapshot x --batch 40 --micro-batch 1 --swap layer --swap-what gradients");
    alarm(0);
    assert_above(plain, 0);
    assert_close(swapped, plain, 0);
}

TEST(options_that_store_nothing_more_are_named)
{
    const char *one = "--snapshot-slots 1: the first snapshot keeps the only slot";
    expect_yard(EXIT_OK, one, "plan --model tiny --snapshot x --snapshot-slots 1");
    expect_yard(EXIT_OK, one, "plan --list data/steps/snapshot.txt --snapshot x --snapshot-slots 1");
    struct ran two = expect_yard(EXIT_OK, "", "plan --model tiny --snapshot x --snapshot-slots 2");
    assert_string_equal(two.err, "");
    expect_yard(EXIT_OK, "--snapshot-every 3: the last step is 2, so no snapshot is stored",
                "train --model tiny --steps 2 --sample-tokens 0 --val-share 0 --snapshot %s --snapshot-every 3",
                temp_path("never"));
}

TEST(the_budget_that_is_named_is_the_least_that_works)
{
    const char *words = "plan --model tiny --hardware data/hardware/server.txt --snapshot x --snapshot-in device "
                        "--simulate --device-mem";
    struct ran ran = expect_yard(EXIT_USAGE, "--snapshot-in device: device server.0", "%s 600K", words);
    const char *needed = strstr(ran.err, " bytes (");
    assert_non_null(needed);
    while (needed[-1] != ' ')
        needed--;
    expect_yard(EXIT_OK, "", "%s %lld", words, atoll(needed));
    expect_yard(EXIT_USAGE, "", "%s %lld", words, atoll(needed) - 1);
}
