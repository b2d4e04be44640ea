/* test_broadcast.c - new parameters cut into slices that travel over many queues.
 *
 * It tests src/techniques/broadcast.  It checks that training keeps its bits on every mesh, however slices are dealt,
 * with updates on the CPU too; that each slice goes once, over the queue that was asked for; and that lists of any
 * shape prove to send the same values.  It catches a slice that is sent before its update, one that is left out, and a
 * reader that waits for only a part of its tensor.
 *
 * To see it fail: in broadcast.c, exchange the two values of first_sending_queue().
 *
 * The expected bits and values are those of the run or the list without slices.
 *
 *     YARD_CASES=N build/tests/test_broadcast      N ways and delays for each mesh, instead of one
 */
#include "planning/predict/predict.h"
#include "techniques/broadcast/broadcast.h"
#include "tests/support/support.h"
#include "tests/support/support_training.h"
#include "trainer/file/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 2 };

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Counts the copies between devices that send what was updated, or gather it. */
static size_t count_copies(const struct list *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (!is_copy(task) || copy_target(task)->device == copy_source(task)->device)
            continue;
        if (task->role == ROLE_BROADCAST || strcmp(task->name, "gather") == 0)
            n++;
    }
    return n;
}

static bool is_of_queue(const struct lane *lane) { return strncmp(lane->purpose, "queue ", 6) == 0; }

/* Each slice that comes directly is received before a task reads it, on the receiver's queue of the same number. */
static void expect_received(const struct list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i], *receive = NULL;
        const struct tensor *tensor = is_copy(task) ? copy_target(task) : NULL;
        if (!tensor || task->role != ROLE_BROADCAST)
            continue;
        const struct device *to = tensor->device, *from = copy_source(task)->device;
        if (to->is_host || from->is_host || to == from)
            continue;
        for (size_t turn = 1; turn < list->n && !receive; turn++) {
            const struct task *next = list->tasks[(i + turn) % list->n];
            if (copies_nothing(next) && touches_bytes(next, tensor, ACCESS_WRITE))
                receive = next;
            else if (!is_copy(next) && touches_bytes(next, tensor, ACCESS_READ))
                test_failed("task %zu %s: %s is read before it is received\n", i, task->name, tensor->name);
        }
        if (!receive) /* no task reads it */
            continue;
        assert_int_equal(receive->accesses[0].tensor->bytes, tensor->bytes);
        assert_ptr_equal(receive->lane->device, tensor->device);
        assert_int_equal(receive->lane->kind, task->lane->kind == LANE_COMPUTE ? LANE_COMPUTE : LANE_UPLOAD);
        if (is_of_queue(task->lane) || is_of_queue(receive->lane))
            assert_string_equal(receive->lane->purpose, task->lane->purpose);
    }
}

/* A plan that any rule could make: some letter for each unit. */
static const char *draw_plan(size_t seed)
{
    static const char *const unit[] = {"other param.0", "layer 0", "layer 1", "layer 2", "other param.4"};
    static const char letters[] = {'C', 'L', 'D', 'D'}; /* half of the units are updated on the device */
    char *text = copy_string("");
    for (uint32_t i = 0; i < COUNT(unit); i++) {
        int drawn = (int)(COUNT(letters) * random_uniform(seed, STREAM_TEST, i, 0));
        append_text(&text, "%s %c\n", unit[i], letters[drawn]);
    }
    const char *path = write_text("drawn.txt", "%s", text);
    free(text);
    return path;
}

/* The state that these options train; *copies becomes how many copies a step has.  `timed`: plans take times from a
 * description. */
static struct state train_on(const char *mesh, const char *how, bool timed, size_t *copies)
{
    struct settings *settings =
        parse_words(lasting("--model tiny --layers 3 --seq-len 16 --gemm own %s %s", mesh, how));
    asked_predict.hardware = timed ? "data/hardware/workstation.txt" : NULL;
    struct trainer *trainer = open_training(settings, LIST_TRAIN);
    run_steps(trainer, 1, STEPS);
    struct state state = read_whole_state(trainer);
    *copies = count_copies(trainer->train_list);
    if (asked_broadcast.queues)
        expect_received(trainer->train_list);
    free_trainer(trainer);
    return state;
}

enum { FEW = 5 }; /* the first meshes, which `make test` takes, differ most */
static const char *const meshes[] = {
    "--batch 4 -d 0:0x2",
    "--batch 8 -d 0:0x4 --zero 2",
    "--batch 4 -d 0:0x4 --mesh dp=2,tp=2 --zero 2 --untied",
    "--batch 8 -d 0:0x4 --mesh dp=2,pp=2 --zero 0 --pipeline gpipe",
    "--batch 4 -d 0:0x2 --zero 3 --micro-batch 1",
    "--batch 4 -d 0:0x2 --zero 0",
    "--batch 4 -d 0:0x2 --zero 2 --untied",
    "--batch 4 -d 0:0x2 --micro-batch 1 --recompute full",
    "--batch 6 -d 0:0x3",
    "--batch 6 -d 0:0x3 --zero 0",
    "--batch 8 -d 0:0x4",
    "--batch 8 -d 0:0x4 --zero 0 --micro-batch 1",
    "--batch 5 -d 0:0x5",
    "--batch 4 -d 0:0x2 --mesh pp=2",
    "--batch 8 -d 0:0x4 --mesh dp=2,pp=2 --micro-batch 2",
    "--batch 8 -d 0:0x4 --mesh dp=2,pp=2 --zero 2 --recompute selective",
    "--batch 6 -d 0:0x6 --mesh dp=3,pp=2 --untied --micro-batch 1",
    "--batch 4 -d 0:0x4 --mesh dp=2,tp=2",
    "--batch 4 -d 0:0x4 --mesh dp=2,tp=2 --zero 0",
    "--batch 8 -d 0:0x8 --mesh dp=2,pp=2,tp=2 --micro-batch 1",
    "--batch 8 -d 0:0x8 --mesh dp=4,pp=2 --micro-batch 1 --zero 2",
    "--batch 8 -d 0:0x8 --mesh dp=4,tp=2 --zero 0",
    "--batch 5 -d 0:0x5 --zero 3",
    "--batch 8 -d 0:0x4 --zero 3 --recompute full",
    "--batch 6 -d 0:0x6 --mesh dp=3,pp=2 --zero 3 --untied --micro-batch 1",
    "--batch 8 -d 0:0x8 --mesh dp=4,tp=2 --zero 3",
};
static const struct {
    const char *how;
    bool slices; /* broadcasts are cut: there are three times as many copies as without techniques, or more */
    bool drawn;  /* draw_plan() says what is updated where */
    bool timed;  /* the plan needs times: those of a description of hardware */
} ways[] = {
    {"--broadcast-queues 3 --broadcast-main compute --broadcast-slices 6", .slices = true},
    {"--broadcast-queues 2 --broadcast-deal random --broadcast-slices 5", .slices = true},
    {"--overlap all-cpu --broadcast-queues 5 --broadcast-slices 9", .slices = true},
    {.how = "--overlap all-cpu"},
    {"--overlap plan --broadcast-queues 4 --broadcast-deal random --broadcast-main compute", .slices = true,
     .drawn = true, .timed = true},
    {"--overlap local", .timed = true},
    {"--overlap plan", .drawn = true},
    {"--broadcast-queues 5 --broadcast-slices 9", .slices = true},
    {"--overlap local --broadcast-queues 2", .slices = true, .timed = true},
    {"--overlap plan", .timed = true},
};

/* The bits and copies of a mesh without techniques; state.values is NULL until they are asked for. */
struct bare {
    struct state state;
    size_t copies;
};

static void expect_same_mesh_by(size_t n, const char *options, const struct bare *bare)
{
    size_t way = n % COUNT(ways);
    const char *updates = ways[way].drawn ? lasting(" --overlap-plan %s", draw_plan(n)) : "";
    char *how = lasting("%s%s --delay-seed %zu", ways[way].how, updates, n);
    size_t copies;
    struct state found = train_on(options, how, ways[way].timed, &copies);
    assert_int_equal(found.n, bare->state.n);
    expect_same_bits(how, found.values, bare->state.values, found.n);
    if (ways[way].slices && (copies < 3 * bare->copies || bare->copies == 0))
        test_failed("%s %s: %zu copies became %zu slices\n", options, how, bare->copies, copies);
    free(found.values);
}

/* Overlap, broadcast and both, with clipping and without, each with delays of its own. */
static void expect_same_mesh(const char *mesh, size_t first, size_t rounds)
{
    struct bare bare[2] = {{.copies = 0}}; /* without clipping, and with it */
    for (size_t n = first; n < first + rounds; n++) {
        /* A way comes again after an even number of meshes: so each way is clipped in every other of its turns. */
        bool odd_mesh = n % 2 == 1, odd_turn = n / COUNT(ways) % 2 == 1;
        bool clip = odd_mesh != odd_turn;
        char *options = lasting("%s --clip %d", mesh, clip);
        if (!bare[clip].state.values)
            bare[clip].state = train_on(options, "--serial", false, &bare[clip].copies);
        expect_same_mesh_by(n, options, &bare[clip]);
    }
    free(bare[0].state.values);
    free(bare[1].state.values);
}

/* Every mesh with another way and other delays; with contexts of their own, as GPUs have, each fifth of them. */
LAW(meshes_keep_their_bits)
{
    need_own_products();
    size_t rounds = (size_t)number_from("YARD_CASES", 1); /* other ways and delays, for each mesh */
    const struct cases some = cases_of(FEW, COUNT(meshes));
    for (int apart = 0; apart < 2; apart++) {
        contexts_apart(apart);
        for (int i = some.begin; i < some.end; i += apart ? 5 : 1)
            expect_same_mesh(meshes[i], (size_t)(i + apart), rounds);
    }
    restore_contexts();
}

/* ---- ZeRO-3 ------------------------------------------------------------------------------------------------------ */

/* A gather in slices holds its bytes no longer than a whole one; and the fullest link needs as long twice. */
LONG_TEST(gathers_in_slices_hold_their_bytes_no_longer)
{
    for (size_t i = 0; i < COUNT(meshes); i++) {
        if (!strstr(meshes[i], "--zero 3"))
            continue;
        for (int apart = 0; apart < 2; apart++) {
            contexts_apart(apart);
            char *words = lasting("plan --model tiny --layers 3 --json %s", meshes[i]);
            json_t *whole = yard_json("%s", words);
            json_t *sliced = yard_json("%s --broadcast-queues 3 --broadcast-main compute", words);
            for (size_t d = 0; d < json_array_size(json_object_get(whole, "memory")) - 1; d++) {
                char *peak = lasting("memory.%zu.peak.train.together", d);
                if (number_at(sliced, peak) != number_at(whole, peak))
                    test_failed("%s: %s is %g in slices, %g whole\n", meshes[i], peak, number_at(sliced, peak),
                                number_at(whole, peak));
            }
        }
    }
    restore_contexts();
    static const char *const plan = "plan --model char --hardware data/hardware/server.txt --mesh dp=4 --json "
                                    "--simulate --broadcast-queues 5 --broadcast-main compute --zero";
    json_t *sent = yard_json("%s 2", plan), *gathered = yard_json("%s 3", plan);
    double bound = number_at(gathered, "passes.1.bound_ms");
    assert_close(bound / number_at(sent, "passes.0.bound_ms"), 2, 0.01);
    assert_below(number_at(gathered, "passes.1.period_ms"), number_at(gathered, "passes.1.one_queue_ms"));
}

/* ---- step files -------------------------------------------------------------------------------------------------- */

static json_t *report_of(json_t *plan) { return json_at(plan, "passes.0"); }

/* Comments of the lists say how these periods were worked out by hand. */
static const struct {
    const char *words;
    double period, one_queue, bound; /* ms */
    const char *kind;                /* of the bound */
} shipped[] = {
    {"broadcast.txt --broadcast-queues 1", .period = 6, .one_queue = 6, .bound = 3, .kind = "direct"},
    {"broadcast.txt --broadcast-queues 4", .period = 6, .one_queue = 6, .bound = 3, .kind = "direct"},
    {"broadcast-queues.txt --broadcast-queues 2 --broadcast-main compute", .period = 11, .one_queue = 11, .bound = 1.5,
     .kind = "direct"},
    {"broadcast-queues.txt --broadcast-queues 5 --broadcast-main compute", .period = 6.75, .one_queue = 11,
     .bound = 1.5, .kind = "direct"},
    {"broadcast-queues.txt --broadcast-queues 4", .period = 7.5, .one_queue = 12, .bound = 1.5, .kind = "direct"},
    {"broadcast-one-link.txt --broadcast-queues 2 --broadcast-main compute --broadcast-slices 1", .period = 7.08,
     .one_queue = 7.08, .bound = 3, .kind = "staged"},
    {"broadcast-one-link.txt --broadcast-queues 5 --broadcast-main compute", .period = 6.49189262,
     .one_queue = 7.02578441, .bound = 3, .kind = "staged"},
};

TEST(shipped_lists_have_their_periods)
{
    for (size_t i = 0; i < COUNT(shipped); i++) {
        json_t *all = verified_plan("--list data/steps/%s", shipped[i].words), *report = report_of(all);
        double period = number_at(all, "simulation.step_ms");
        assert_true(json_is_false(json_object_get(report, "declined")));
        assert_string_equal(text_at(report, "bound"), shipped[i].kind);
        double reported = number_at(report, "period_ms");
        double one_queue = number_at(report, "one_queue_ms");
        double bound = number_at(report, "bound_ms");
        bool has_period = fabs(period - shipped[i].period) <= 1e-6 && fabs(reported - period) <= 1e-9;
        bool has_others = fabs(one_queue - shipped[i].one_queue) <= 1e-6 && fabs(bound - shipped[i].bound) <= 1e-6;
        if (!has_period || !has_others)
            test_failed("%s: period %.9g, reported %.9g, one queue %.9g, bound %g\n", shipped[i].words, period,
                        reported, one_queue, bound);
    }
}

struct dealing { /* of the slices of each shard, over its queues */
    const char *words;
    int queues;
    int first;  /* the queues from this one on send */
    int slices; /* of each shard */
    bool even;  /* the numbers of slices of any two sending queues differ by one at most */
};

/* Checks the queues of one shard: rows `row` and up of the report. */
static void expect_deal_of_shard(const struct dealing *dealing, const json_t *rows, size_t row)
{
    json_int_t shard_bytes = 1000000; /* of broadcast.txt */
    bool enough_for_all = dealing->slices >= dealing->queues - dealing->first;
    json_int_t slices = 0;
    json_int_t bytes = 0;
    json_int_t least = INT32_MAX;
    json_int_t most = 0;
    for (int queue = 0; queue < dealing->queues; queue++) {
        const json_t *of_queue = json_array_get(rows, row + (size_t)queue);
        json_int_t n = (json_int_t)number_at(of_queue, "slices");
        assert_int_equal(number_at(of_queue, "queue"), queue);
        if (n > 0)
            assert_at_least(queue, dealing->first);
        slices += n;
        bytes += (json_int_t)number_at(of_queue, "bytes");
        if (queue >= dealing->first)
            least = MIN(least, n);
        most = MAX(most, n);
    }
    if (slices != dealing->slices || bytes != shard_bytes)
        test_failed("%s, row %zu: %lld slices of %lld bytes, expected %d of %lld\n", dealing->words, row,
                    (long long)slices, (long long)bytes, dealing->slices, (long long)shard_bytes);
    if (enough_for_all && least == 0)
        test_failed("%s, row %zu: a queue has nothing to send\n", dealing->words, row);
    if (dealing->even && most - least > 1)
        test_failed("%s, row %zu: %lld to %lld slices on a queue\n", dealing->words, row, (long long)least,
                    (long long)most);
}

static void expect_deal(const struct dealing *dealing)
{
    json_t *all = verified_plan("--list data/steps/broadcast.txt --broadcast-queues %s", dealing->words);
    json_t *rows = json_object_get(report_of(all), "queues");
    assert_int_equal(json_array_size(rows) % (size_t)dealing->queues, 0);
    assert_above(json_array_size(rows), 0);
    for (size_t row = 0; row < json_array_size(rows); row += (size_t)dealing->queues)
        expect_deal_of_shard(dealing, rows, row);
}

TEST(slices_are_dealt_as_options_say)
{
    static const struct dealing deals[] = {
        {"4", .queues = 4, .slices = 16, .even = true},
        {"4 --broadcast-slices 4", .queues = 4, .slices = 4, .even = true},
        {"3 --broadcast-slices 7 --broadcast-main compute", .queues = 3, .first = 1, .slices = 7, .even = true},
        {"4 --broadcast-slices 2", .queues = 4, .slices = 2, .even = true},
        {"4 --broadcast-deal random --seed 5", .queues = 4, .slices = 16, .even = false},
        {"5 --broadcast-deal random --broadcast-main compute --broadcast-slices 4", .queues = 5, .first = 1,
         .slices = 4, .even = true},
    };
    for (size_t i = 0; i < COUNT(deals); i++)
        expect_deal(&deals[i]);
    expect_yard(EXIT_OK, "some queues send nothing",
                "plan --list data/steps/broadcast.txt --broadcast-queues 4 --broadcast-slices 2");
}

TEST(a_link_is_used_in_the_steps_that_send)
{
    const char *list =
        write_text("seldom.txt", "device a memory=1G\ndevice b memory=1G\nlink a down 1e9\nlink b up 1e9\n"
                                 "tensor w.a a 4000000 parameters\ntensor w.b b 4000000 parameters\n"
                                 "task update a.compute 1ms layer=0 role=update writes=w.a\n"
                                 "copy send w.b w.a layer=0 role=broadcast every=2\n"
                                 "task forward b.compute 1ms layer=0 role=forward reads=w.b\n");
    json_t *json =
        json_at(yard_json("plan --list %s --clip 0 --broadcast-queues 2 --simulate --json", list), "passes.0");
    double bound = number_at(json, "bound_ms"); /* 4 ms, every other step */
    if (fabs(bound - 2) > 1e-9)
        test_failed("the fullest link takes %g ms a step, expected 2\n", bound);
}

/* ---- lists of any shape ------------------------------------------------------------------------------------------ */

#define THREE                                                                                                          \
    "device a memory=1M\ndevice b memory=1M\ndevice c memory=1M\nlink a,b up 1e6 1us\nlink a down 1e6 queues=5\n"      \
    "tensor wa a 4K parameters\ntensor wb b 4K parameters\ntensor wc c 4K parameters\ntensor h host 4K work\n"         \
    "tensor g a 4K gradients keep\ntask f a.compute 1us layer=0 role=forward reads=wa\n"                               \
    "task f b.compute 1us layer=0 role=forward reads=wb\ntask f c.compute 1us layer=0 role=forward reads=wc\n"

static const struct {
    const char *text;
    size_t copies;        /* with 4 slices */
    double slices, bytes; /* what the first row's shard has over all queues */
} shapes[] = {
    /* a chain: b sends on what it gets */
    {THREE "task u a.compute 1us role=update writes=wa\ncopy x wb wa role=broadcast msg=1\n"
           "copy x wc wb role=broadcast msg=1\n",
     .copies = 8, .slices = 4, .bytes = 4096},
    /* what waits for more than its source is not cut */
    {THREE "task u a.compute 1us role=update writes=wa\ncopy x wb wa role=broadcast msg=1\n"
           "copy x wc wa role=broadcast msg=1 reads=g\n",
     .copies = 5, .slices = 4, .bytes = 4096},
    /* staged, the uploads far from each other */
    {THREE "task u a.compute 1us role=update writes=wa\ncopy x h wa role=broadcast msg=1\n"
           "copy x wb h role=broadcast msg=1\ntask s a.compute 1us reads=wa\ncopy x wc h role=broadcast msg=1\n",
     .copies = 12, .slices = 4, .bytes = 4096},
    /* updated on the host */
    {THREE "task u host.cpu 1us layer=2 role=update writes=h\ncopy x wa h layer=2 role=broadcast msg=1\n"
           "copy x wb h layer=2 role=broadcast msg=1\n",
     .copies = 8, .slices = 4, .bytes = 4096},
    /* c's old value is read between the copies: they cannot come together */
    {THREE "task u a.compute 1us role=update writes=wa\ncopy x wb wa role=broadcast msg=1 layer=1\n"
           "task r c.compute 1us reads=wc\ncopy x wc wa role=broadcast msg=1 layer=1\n",
     .copies = 8, .slices = 4, .bytes = 4096},
    /* two tensors of a layer are one shard of 4000 bytes: 4 slices, of which one lies in both */
    {THREE "tensor va a 500 parameters\ntensor vb b 500 parameters\ntask u a.compute 1us role=update writes=wa,va\n"
           "copy x wb[0:3500] wa[0:3500] role=broadcast layer=0\ncopy x vb va role=broadcast layer=0\n",
     .copies = 5, .slices = 4, .bytes = 4000},
    /* too small to be cut, and in every second step only */
    {THREE "task u a.compute 1us role=update writes=wa every=2\ncopy x wb[8:1030] wa[8:1030] role=broadcast every=2\n",
     .copies = 1, .slices = 1, .bytes = 1022},
    /* with times of their own, in the order in which backward ends */
    {THREE "task u a.compute 1us layer=1 role=update writes=wa[2048:4096]\n"
           "copy x wb[2048:4096] wa[2048:4096] role=broadcast layer=1 time=4ms\n"
           "task u a.compute 1us layer=0 role=update writes=wa[0:2048]\n"
           "copy x wb[0:2048] wa[0:2048] role=broadcast layer=0 time=4ms lane=a.compute\n",
     .copies = 8, .slices = 4, .bytes = 2048},
    /* cut at multiples of 512, and an end that is none */
    {"device a memory=1M align=512\ndevice b memory=1M align=512\ntensor wa a 4100 parameters\n"
     "tensor wb b 4100 parameters\ntask f b.compute 1us role=forward reads=wb\n"
     "task u a.compute 1us role=update writes=wa\ncopy x wb wa role=broadcast\n",
     .copies = 4, .slices = 4, .bytes = 4100},
};

static void expect_shape(size_t i, const char *options)
{
    char *words = lasting("--list %s --broadcast-slices 4 %s", write_text("shape.txt", "%s", shapes[i].text), options);
    json_t *all = verified_plan("%s", words), *report = report_of(all);
    assert_true(json_is_false(json_object_get(report, "declined")));
    double sum = 0, bytes = 0;
    const json_t *rows = json_object_get(report, "queues"), *first = json_array_get(rows, 0);
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        if (json_equal(json_object_get(row, "layer"), json_object_get(first, "layer")) &&
            json_equal(json_object_get(row, "device"), json_object_get(first, "device"))) {
            sum += number_at(row, "slices");
            bytes += number_at(row, "bytes");
        }
    }
    if (sum != shapes[i].slices || bytes != shapes[i].bytes)
        test_failed("shape %zu, %s: %g slices of %g bytes\n", i, options, sum, bytes);
    struct ran ran = expect_yard(EXIT_OK, "", "plan %s --print-list", words);
    size_t n = 0;
    for (const char *at = ran.out; (at = strstr(at, "\ncopy ")); at++)
        if (strncmp(at, "\ncopy receive ", 14) != 0)
            n++;
    if (n != shapes[i].copies)
        test_failed("shape %zu, %s: %zu copies\n", i, options, n);
}

TEST(lists_of_any_shape_are_sent)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        expect_shape(i, "--broadcast-queues 1");
        expect_shape(i, "--broadcast-queues 3 --broadcast-main compute --clip 0");
        expect_shape(i, "--broadcast-queues 3 --broadcast-deal random");
    }
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* How many shards there are with one queue, which has a row for each: a and b own one each, unless all is a's. */
static size_t count_shards(const char *copies)
{
    const char *path = write_text("messages.txt", THREE "task u a.compute 1us role=update writes=wa\n%s", copies);
    json_t *json = report_of(verified_plan("--list %s --broadcast-queues 1 --broadcast-slices 4", path));
    return json_array_size(json_object_get(json, "queues"));
}

/* A message that b sends on is a's if the copies have one number, else it is b's own. */
TEST(copies_of_one_number_are_one_message)
{
    assert_int_equal(count_shards("copy x wb wa role=broadcast msg=7\ncopy x wc wb role=broadcast msg=7\n"), 1);
    assert_int_equal(count_shards("copy x wb wa role=broadcast msg=7\ncopy x wc wb role=broadcast msg=8\n"), 2);
    assert_int_equal(count_shards("copy x wb wa role=broadcast msg=7\ncopy x wc wb role=broadcast\n"), 2);
    assert_int_equal(count_shards("copy x wb wa role=broadcast\ncopy x wc wb role=broadcast\n"), 2);
    /* a copy that waits for a whole one cannot be sliced with it */
    assert_int_equal(count_shards("copy x wb wa role=broadcast msg=7\ncopy y wc wb role=broadcast msg=7 after=x\n"), 2);
    assert_int_equal(count_shards("copy x wb wa role=broadcast msg=7\ncopy y wc wb role=broadcast msg=7 after=u\n"), 1);
    /* one number, but other bytes, or other steps: as correct, and proved so */
    assert_int_equal(count_shards("copy x wb[0:2048] wa[0:2048] role=broadcast msg=7\n"
                                  "copy x wc[2048:4096] wb[2048:4096] role=broadcast msg=7\n"),
                     2);
    assert_int_equal(count_shards("copy x wb wa role=broadcast msg=7\n"
                                  "copy x wc wb role=broadcast msg=7 every=2\n"),
                     2);
}

TEST(who_waits_for_a_copy_waits_for_its_slices)
{
    const char *path = write_text("slices.txt", THREE "task u a.compute 1us role=update writes=wa\n"
                                                      "copy x wb wa role=broadcast after=f,x'\n"
                                                      "task r c.compute 1us after=x\n");
    struct ran ran = expect_yard(
        EXIT_OK, "", "plan --list %s --broadcast-queues 1 --broadcast-slices 2 --verify --print-list", path);
    assert_contains(ran.out, "copy x~2 ");
    assert_contains(ran.out, " after=f,x~2',x'\n");
    assert_contains(ran.out, " after=x~2,x\n");
}

/* Between devices, of role broadcast: all copies of a number bring what the first sends, and no other has it. */
static size_t expect_numbers(const struct list *list)
{
    const struct tensor **source = allocate((size_t)list->extra.last_message + 1, sizeof *source);
    const struct tensor **on_host = allocate((size_t)list->extra.last_message + 1, sizeof *on_host);
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        bool is_for_host = task->role == ROLE_FEED || task->role == ROLE_REPORT || task->role == ROLE_OFFLOAD;
        if (!is_copy(task) || is_for_host)
            assert_int_equal(task->extra.message, 0);
        if (!is_copy(task) || task->role != ROLE_BROADCAST || copies_nothing(task))
            continue;
        assert_above(task->extra.message, 0);
        assert_at_most(task->extra.message, list->extra.last_message);
        const struct tensor *from = copy_source(task), *to = copy_target(task);
        if (!source[task->extra.message]) {
            source[task->extra.message] = from;
            n++;
        }
        assert_true(from == source[task->extra.message] || from == on_host[task->extra.message]);
        if (to->device->is_host)
            on_host[task->extra.message] = to;
    }
    free(source);
    free(on_host);
    return n;
}

/* It does so with ZeRO 0 to 3, through the host and directly; a slice's copies are a message of their own again. */
TEST(the_builder_numbers_messages)
{
    static const char *const options[] = {"--zero 0", "--zero 1", "--zero 2 --overlap all-cpu",
                                          "--zero 3 --broadcast-queues 2",
                                          "--zero 1 --broadcast-queues 3 --broadcast-main compute"};
    for (int apart = 0; apart < 2; apart++)
        for (size_t i = 0; i < COUNT(options); i++) {
            contexts_apart(apart);
            if (!apart)
                contexts_joined();
            struct settings *settings = parse_words(lasting("--model tiny --batch 4 -d 0:0x4 %s", options[i]));
            struct trainer *trainer = open_training(settings, LIST_TRAIN);
            assert_at_least(expect_numbers(trainer->train_list), 4);
            free_trainer(trainer);
        }
    restore_contexts();
}

/* A list that is printed and read is sliced as what it was printed for. */
TEST(a_printed_list_has_the_same_messages)
{
    static const char *const model = "--model tiny --layers 3 --hardware data/hardware/server.txt --mesh dp=4";
    static const char *const zero[] = {"--zero 0", "--zero 1", "--zero 2"};
    for (size_t i = 0; i < COUNT(zero); i++) {
        char *list = read_text(expect_yard(EXIT_OK, "", "plan %s %s --print-list", model, zero[i]).stdout_path);
        assert_contains(list, " role=broadcast msg=");
        const char *path = write_text("printed.txt", "%s", list);
        char *again = read_text(expect_yard(EXIT_OK, "", "plan --list %s --print-list", path).stdout_path);
        assert_string_equal(again, list);
        free(list);
        free(again);
        json_t *theirs = report_of(verified_plan("%s %s --broadcast-queues 3", model, zero[i]));
        json_t *ours = report_of(verified_plan("--list %s --broadcast-queues 3", path));
        assert_true(json_equal(json_object_get(ours, "queues"), json_object_get(theirs, "queues")));
        assert_close(number_at(ours, "period_ms") / number_at(theirs, "period_ms"), 1, 1e-9);
    }
}

/* ---- when and where ---------------------------------------------------------------------------------------------- */

/* Slices go in the iterations in which the whole would. */
TEST(slices_go_when_the_whole_does)
{
    char *text = read_text("data/steps/broadcast.txt");
    char *rest = text;
    char *seldom = copy_string("");
    for (char *line; (line = strsep(&rest, "\n"));)
        append_text(&seldom, "%s%s\n", line, strncmp(line, "copy ", 5) == 0 ? " every=2" : "");
    struct ran ran = expect_yard(EXIT_OK, "", "plan --list %s --print-list --broadcast-queues 3 --broadcast-slices 4",
                                 write_text("seldom.txt", "%s", seldom));
    size_t copies = 0, every = 0;
    for (char *line = strtok(ran.out, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, "copy send", 9) == 0) {
            copies++;
            if (strstr(line, " every=2"))
                every++;
        }
    assert_above(copies, 12);
    assert_int_equal(every, copies);
    free(text);
    free(seldom);
}

/* A message's copies become neighbours where they lead to what persists.  What a layer gathers stays where it is
 * gathered: sooner, its bytes would be held for longer. */
TEST(what_is_gathered_is_not_sent_sooner)
{
    for (int keep = 0; keep < 2; keep++) {
        const char *path =
            write_text("later.txt",
                       "device a memory=1M\ndevice b memory=1M\ndevice c memory=1M\n"
                       "link a down 2e6 queues=2\nlink b up 1e6\nlink c up 1e6\ntensor wa a 8K parameters\n"
                       "tensor wb b 8K work%s\ntensor wc c 8K work%s\ntask u a.compute 0 role=update writes=wa\n"
                       "copy x wb wa role=broadcast msg=1\ntask between c.compute 1ms\n"
                       "copy x wc wa role=broadcast msg=1\ntask f b.compute 1ms role=forward reads=wb\n"
                       "task f c.compute 1ms role=forward reads=wc\n",
                       keep ? " keep" : "", keep ? " keep" : "");
        json_t *task;
        size_t i, before = 0, after = 0;
        bool passed = false;
        json_array_foreach(json_at(verified_plan("--list %s --broadcast-queues 2", path), "lists.0.tasks"), i, task)
        {
            bool sends = strncmp(text_at(task, "task"), "x", 1) == 0;
            passed = passed || strcmp(text_at(task, "task"), "between") == 0;
            if (sends && !passed)
                before++;
            if (sends && passed)
                after++;
        }
        assert_true(passed);
        assert_above(before, 0);
        if ((after > 0) != !keep)
            test_failed("%s: %zu copies before the task between, %zu after it\n", keep ? "kept" : "gathered", before,
                        after);
    }
}

/* Each slice begins with another device: what two queues send fills the links of both. */
TEST(slices_begin_in_turn)
{
    const char *path = write_text(
        "star.txt", "device a memory=1M\ndevice b memory=1M\ndevice c memory=1M\n"
                    "link a down 2e6 queues=2\nlink b up 1e6\nlink c up 1e6\ntensor wa a 8K parameters\n"
                    "tensor wb b 8K parameters\ntensor wc c 8K parameters\ntask u a.compute 0 role=update writes=wa\n"
                    "copy x wb wa role=broadcast msg=1\ncopy x wc wa role=broadcast msg=1\n");
    json_t *json = report_of(verified_plan("--list %s --broadcast-queues 2", path));
    assert_close(number_at(json, "period_ms") / number_at(json, "bound_ms"), 1, 1e-6);
}

TEST(what_cannot_be_broadcast_is_said)
{
    json_t *json = report_of(verified_plan("--list %s --broadcast-queues 2", write_text("three.txt", THREE)));
    assert_true(json_is_true(json_object_get(json, "declined")));
    assert_int_equal(json_array_size(json_object_get(json, "queues")), 0);
    if (!json_is_null(json_object_get(json, "period_ms")))
        assert_above(number_at(json, "period_ms"), 0);
    expect_yard(EXIT_OK, "pass broadcast declines: the list has no copy of role broadcast",
                "plan --model tiny -d 0:0 --zero 3 --broadcast-queues 2");
    expect_yard(EXIT_USAGE, "no queue is left",
                "plan --list data/steps/broadcast.txt --broadcast-queues 1 --broadcast-main compute");
    const char *path = write_text("shape.txt", "%s", shapes[0].text); /* five download lanes, and the main queue */
    expect_yard(EXIT_OK, "", "plan --list %s --broadcast-queues 6", path);
    expect_yard(EXIT_USAGE, "takes no more download lanes: use 6", "plan --list %s --broadcast-queues 7", path);
}
