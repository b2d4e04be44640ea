/* test_lists.c - step files: the words that they may have, the words that they may not have, and writing a list as a
 * file.
 *
 * It tests src/planning/lists.  It checks that every word of a file arrives in the list that is read, that a message
 * about a mistake names its line and its word, and that a list which is written and read again has the same times and
 * the same text.  It catches a word that is lost, a sentence about the wrong line, and a number that is cut when it is
 * written.
 *
 * To see it fail: in line.c, let whole numbers be outside of their limits.
 *
 * The files are texts in this program, and the expected lists follow from their words.  No OpenCL device is opened
 * here, so forked children make the mistakes.  test_simulate_times.c tests the times of such lists, test_order.c their
 * order, and test_place.c their memory.
 */
#include "planning/lists/lists.h"
#include "planning/predict/predict.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "trainer/train/train.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Every word that a step file may have. */
static const char all_words[] = "# a comment\n"
                                "device server.0 memory=2K align=512   # another\n"
                                "device host memory=1G align=64\n"
                                "lane server.0.download2\n"
                                "link server.0 up 1e3 2ms queues=4 queue=250\n"
                                "disk 5e8 1us\n"
                                "tensor w server.0 64 parameters\n"
                                "tensor x server.0 64 work keep\n"
                                "tensor h host 64 optimizer\n"
                                "task t server.0.compute 1500us layer=2 micro=1 role=backward cpu=3ms every=4 "
                                "reads=w[0:16],x writes=x[32:64],w\n"
                                "copy c h[1:3] x[5:7] lane=server.0.download2 role=send\n"
                                "task f host.feed 0 role=feed\n"
                                "copy b h[1:3] x[5:7] msg=7 role=broadcast\n";
enum { TASK_T, COPY_C, TASK_F, COPY_B }; /* its tasks, in the order of its lines */
enum { W, X, H };                        /* and its tensors */

TEST(words_of_devices_are_kept)
{
    struct list *list = read_text_list(all_words);
    const struct device *device = &list->pool->machine->devices[0], *host = list->pool->machine->host;
    assert_string_equal(device->id, "server.0");
    assert_int_equal(device->budget, 2048);
    assert_int_equal(device->alignment, 512);
    assert_int_equal(host->budget, 1 << 30);
    assert_int_equal(host->alignment, 64);
    free_list_and_machine(list);
}

TEST(words_of_links_and_of_the_disk_are_kept)
{
    struct list *list = read_text_list(all_words);
    const struct device *device = &list->pool->machine->devices[0], *host = list->pool->machine->host;
    const struct link *up = device->extra.described.links[LINK_UP];
    expect_number("rate of the link", up->rate, 1e3);
    expect_number("latency of the link", up->latency, 2e-3);
    assert_int_equal(up->max_lanes, 4);
    expect_number("rate of a queue", up->queue_rate, 250);
    assert_false(device->extra.described.links[LINK_DOWN]);
    expect_number("rate of the disk", host->extra.described.disk->rate, 5e8);
    free_list_and_machine(list);
}

TEST(words_of_tensors_are_kept)
{
    struct list *list = read_text_list(all_words);
    const struct tensor *const *tensors = (const struct tensor *const *)list->pool->tensors;
    assert_true(tensors[W]->persistent);
    assert_true(tensors[X]->persistent); /* since it is kept */
    assert_true(tensors[H]->persistent);
    assert_ptr_equal(tensors[H]->device, list->pool->machine->host);
    free_list_and_machine(list);
}

TEST(words_of_a_task_are_kept)
{
    struct list *list = read_text_list(all_words);
    const struct task *task = list->tasks[TASK_T];
    expect_number("seconds", task->extra.seconds, 1.5e-3);
    expect_number("seconds on the host", task->extra.on_host.seconds, 3e-3);
    assert_int_equal(task->extra.when.every, 4);
    assert_int_equal(task->layer, 2);
    assert_int_equal(task->micro, 1);
    assert_int_equal(task->role, ROLE_BACKWARD);
    assert_ptr_equal(list->tasks[TASK_F]->lane, list->pool->machine->host->lanes[LANE_FEED]);
    assert_int_equal(list->tasks[TASK_F]->role, ROLE_FEED);
    free_list_and_machine(list);
}

TEST(bytes_that_a_task_touches_are_kept)
{
    struct list *list = read_text_list(all_words);
    const struct task *task = list->tasks[TASK_T];
    assert_int_equal(task->n_accesses, 4);
    assert_int_equal(task->accesses[0].tensor->bytes, 16);
    assert_int_equal(task->accesses[2].tensor->offset, 32);
    assert_ptr_equal(task->accesses[0].tensor->storage, list->pool->tensors[W]);
    free_list_and_machine(list);
}

TEST(words_of_copies_are_kept)
{
    struct list *list = read_text_list(all_words);
    const struct task *copy = list->tasks[COPY_C];
    assert_true(is_copy(copy));
    assert_ptr_equal(copy->lane, lane_of(&list->pool->machine->devices[0], LANE_DOWNLOAD, 2));
    assert_int_equal(copy->role, ROLE_SEND);
    assert_int_equal(copy->accesses[0].tensor->offset, 1);
    assert_int_equal(copy->accesses[1].tensor->offset, 5);
    assert_int_equal(copy->extra.message, 0);
    assert_int_equal(list->tasks[COPY_B]->extra.message, 7);
    assert_int_equal(list->extra.last_message, 7);
    free_list_and_machine(list);
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

static void read_mistake(void *text) { free_list_and_machine(read_list(write_file("wrong.txt", text, strlen(text)))); }

#define START GPU "lane gpu.upload1\nlink gpu up 1e9\ntensor x gpu 64 work\ntensor h host 64 work\n" /* five lines */

static const struct {
    const char *line, *says; /* the line comes after START; lines are counted from 1 */
} mistakes[] = {
    {"tsak a gpu.compute 1", "line 6: \"tsak\": expected device, lane, link, disk, tensor, task or copy"},
    {"device", "line 6: \"device\" ends too early: expected device NAME"},
    {"device b", "line 6: \"b\": expected memory=BYTES"},
    {"device b memory=1x", "line 6: \"1x\": expected a number of bytes"},
    {"device gpu memory=1", "line 6: \"gpu\": expected a name that has not been used above"},
    {"device b memory=1 memory=2", "line 6: \"memory=2\": expected each option once"},
    {"device b memory=1 speed=2", "line 6: \"speed=2\": expected device NAME memory=BYTES"},
    {"device b,c memory=1", "line 6: \"b,c\": expected a name of at most 23 characters"},
    {"device b memory=1 \001", "line 6: \"?\": expected characters that can be shown"},
    {"lane gpu", "line 6: \"gpu\": expected DEVICE.KIND[N]"},
    {"lane b.upload1", "line 6: \"b.upload1\": expected DEVICE.KIND[N], with a device that is declared above"},
    {"lane gpu.upload0", "line 6: \"0\": expected a whole number from 1"},
    {"lane gpu.upload1", "line 6: \"gpu.upload1\": expected a lane that is not declared above"},
    {"lane gpu.upload2 gap=x", "line 6: \"x\": expected a time"},
    {"link gpu sideways 1", "line 6: \"sideways\": expected up or down"},
    {"link gpu down", "line 6: \"down\" ends too early: expected link DEVICE"},
    {"link gpu down 1G", "line 6: \"1G\": expected a rate in bytes per second"},
    {"link gpu down 0", "line 6: \"0\": expected a rate"},
    {"link gpu down 1 queues=1\nlane gpu.download1",
     "line 7: \"gpu.download1\": expected at most 1 download lane of gpu, as queues= of its link says, not 2"},
    {"lane gpu.download1\nlane gpu.download2\nlink gpu down 1 queues=2",
     "line 8: \"gpu\": expected at most 2 download lanes of gpu"},
    {"link gpu up 1", "line 6: \"gpu\": expected a device that has no link in this direction yet"},
    {"link host up 1", "line 6: \"host\": expected a device: a link joins it to the host"},
    {"link b up 1", "line 6: \"b\": expected a device that is declared above"},
    {"disk", "line 6: \"disk\" ends too early: expected disk RATE"},
    {"disk 1\ndisk 2", "line 7: \"disk\": expected one disk"},
    {"tensor", "line 6: \"tensor\" ends too early: expected tensor NAME"},
    {"tensor y gpu 4", "line 6: \"4\" ends too early: expected tensor NAME DEVICE BYTES CLASS"},
    {"tensor y gpu 4 junk", "line 6: \"junk\": expected parameters, gradients, optimizer, activations or work"},
    {"task", "line 6: \"task\" ends too early: expected task NAME"},
    {"task t", "line 6: \"t\" ends too early: expected task NAME LANE"},
    {"task t gpu.compute", "line 6: \"gpu.compute\" ends too early: expected task NAME LANE TIME"},
    {"task t gpu.compute 1 reads=y", "line 6: \"y\": expected a tensor that is declared above"},
    {"task t gpu.compute 1 reads=x[", "line 6: \"x[\": expected NAME or NAME[begin:end]"},
    {"task t gpu.compute 1 writes=x[2:2]", "line 6: \"x[2:2]\": expected bytes begin:end of x, which has 64"},
    {"task t gpu.compute 1 role=actor", "line 6: \"actor\": expected a role: forward"},
    {"task t gpu.compute 1 reads=x,,x", "line 6: \",\": expected a name before and after each comma"},
    {"task t gpu.compute 1 reads=x,", "line 6: \",\": expected a name before and after each comma"},
    {"task t gpu.compute 1 every=3 rest=3", "line 6: \"task\": expected rest= below every=, which is 3"},
    {"task t gpu.compute 1 after=u", "line 6: \"u\": expected NAME of a task, or NAME' for its run in the step before"},
    {"task t gpu.compute 1 after=u'", "line 6: \"u'\": expected NAME of a task"},
    {"task t gpu.compute 1 after=t''", "line 6: \"t''\": expected NAME of a task"},
    {"task t gpu.compute 1 after=t", "line 6: \"t\": expected a task above: t stands below, or is this task"},
    {"task t gpu.compute 1\ntask u gpu.compute 1 after=t,v\ntask v gpu.compute 1",
     "line 7: \"v\": expected a task above: v stands below, or is this task (v' is that of the step before)"},
    {"task t gpu.compute 1\ntask u gpu.compute 1 after=,t", "line 7: \",\": expected a name before and after"},
    {"copy c x h[0:64] after=x", "line 6: \"x\": expected NAME of a task"},
    {"task t' gpu.compute 1", "line 6: \"t'\": expected a task's name without '"},
    {"copy c x", "line 6: \"x\" ends too early: expected copy NAME TO[b:e] FROM[b:e]"},
    {"copy c x h[0:8]", "line 6: \"x\": expected as many bytes on both sides"},
    {"copy c x[0:8] x[4:12]", "line 6: \"x[0:8]\": expected other bytes than those it copies"},
    {"copy c h[0:8] h[8:16]", "line 6: \"c\": expected lane= where both tensors are on the host"},
    {"copy c x h role=broadcast msg=0", "line 6: \"0\": expected a whole number from 1"},
    {"copy c x h role=send msg=1", "line 6: \"c\": expected role=broadcast beside msg="},
    {"", "there is no task in it"},
    {"disk 1 2 a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G", "expected fewer words in a line"},
};

TEST(mistakes_name_line_and_word)
{
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        char *text = lasting(START "%s\n", mistakes[i].line);
        expect_refusal(read_mistake, text, EXIT_USAGE, mistakes[i].says);
        expect_refusal(read_mistake, text, EXIT_USAGE, "wrong.txt");
    }
}

/* A role that is refused is not offered, and each that is offered is taken. */
TEST(each_role_that_a_refusal_offers_is_taken)
{
    char offer[256] = "expected a role: forward";
    for (int k = ROLE_FORWARD; k < ROLES; k++) {
        char *text = lasting(START "task t gpu.compute 1 role=%s\n", role_name[k]);
        if (k < ROLES_BY_HAND) {
            struct list *list = read_text_list(text);
            assert_int_equal(list->tasks[0]->role, k);
            free_list_and_machine(list);
            if (k > ROLE_FORWARD)
                snprintf(offer + strlen(offer), sizeof offer - strlen(offer), "%s%s",
                         k + 1 < ROLES_BY_HAND ? ", " : " or ", role_name[k]);
        } else {
            char *says = lasting("line 6: \"%s\": %s", role_name[k], offer);
            expect_refusal(read_mistake, text, EXIT_USAGE, says);
        }
    }
}

static void place_list(void *text)
{
    struct list *list = read_list_text("%s", (char *)text);
    must(place(list->pool, &list, 1, PLACE_TO_CHECK));
}

/* The memory of a list on paper is counted to the byte, since it has no guards. */
TEST(memory_is_what_is_written)
{
    free_list_and_machine(read_text_list("device gpu memory=100\ntensor x gpu 60 work\ntensor y gpu 40 parameters\n"
                                         "task t gpu.compute 1 reads=y writes=x\n"));
    expect_refusal(place_list,
                   "device gpu memory=99\ntensor x gpu 60 work\ntensor y gpu 40 parameters\n"
                   "task t gpu.compute 1 reads=y writes=x\n",
                   EXIT_USAGE, "budget of 99 B; use smaller tensors, or a larger memory= or --device-mem");
}

/* A tensor has the longest name that a line may give it, and a slice of it has a longer one, which is cut. */
TEST(a_slice_of_a_tensor_with_a_long_name_is_named)
{
    struct list *list = read_text_list(GPU "tensor transformer.h.11.mlp.c_fc.weight.of.the.last.la gpu 100 work\n"
                                           "task t gpu.compute 1 "
                                           "writes=transformer.h.11.mlp.c_fc.weight.of.the.last.la[64:96]\n");
    const struct tensor *slice = list->tasks[0]->accesses[0].tensor;
    assert_int_equal(slice->bytes, 32);
    assert_int_equal(strlen(slice->name), sizeof slice->name - 1);
    free_list_and_machine(list);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

TEST(a_models_list_comes_back_from_its_step_file)
{
    for (int ranks = 1; ranks <= 4; ranks += 3) {
        struct trainer *trainer = plan_tiny(write_hardware("paper.txt", &plausible_speeds), ranks);
        struct simulation *simulation = must_simulate(trainer->train_list, costs_of(trainer));
        expect_round_trip(trainer->train_list, simulation);
        free_simulation(simulation);
        free_trainer(trainer);
    }
}

/* The profile has gaps between tasks, a host that takes its time, and copies whose times were measured. */
TEST(a_list_with_a_profile_comes_back_from_its_step_file)
{
    struct trainer *trainer = plan_tiny(write_hardware("paper.txt", &plausible_speeds), 2);
    const char *profile = "device = d\ndriver = 1\nengine = own\nunits = 2\nvector = 8\nshape = s\n"
                          "link upload = 1e9 1e-6\nlink download = 2e9 2e-6\n"
                          "gap compute = 3e-6\ngap cpu = 1.1e-5\nissue = 2.3e-6\n"
                          "task batch.upload upload = 3000 0 800\ntask attn.qkv compute = 5000 900 4000\n";
    struct costs *costs = read_costs(write_file("profile.txt", profile, strlen(profile)));
    struct simulation *simulation = must_simulate(trainer->train_list, costs);
    expect_round_trip(trainer->train_list, simulation);
    free_simulation(simulation);
    free_costs(costs);
    free_trainer(trainer);
}

/* Memory that is kept counts, though no task touches it. */
TEST(what_nobody_touches_is_written)
{
    struct list *list =
        read_text_list(GPU "tensor w gpu 100 parameters\ntensor x gpu 10 work\ntensor k gpu 1 work keep\n"
                           "task t gpu.compute 1\n");
    char *text = list_as_text(list, (double[]){1});
    assert_contains(text, "tensor w gpu 100 parameters\ntensor k gpu 1 work keep\ntask t");
    free(text);
    free_list_and_machine(list);
}

TEST(names_are_made_their_own)
{
    struct paper paper = new_paper(1, &slow_speeds);
    for (int i = 0; i < 3; i++)
        add_paper(&paper, paper.host->lanes[LANE_CPU], "a task", new_words(&paper, paper.host, "x", 1, TRANSIENT), NULL,
                  NULL);
    add_paper(&paper, paper.host->lanes[LANE_CPU], "#2", new_words(&paper, paper.host, "x~2", 1, TRANSIENT), NULL,
              NULL);
    finish_paper(&paper);
    char *text = list_as_text(paper.list, (double[]){1, 2, 3, 4});
    assert_contains(text, "tensor x host 4");
    assert_contains(text, "tensor x~2 host 4");
    assert_contains(text, "tensor x~3 host 4");
    assert_contains(text, "tensor x~2~2 host 4");
    assert_contains(text, "task a_task host.cpu 3 writes=x~3\ntask _2 host.cpu 4 writes=x~2~2\n");
    free_list_and_machine(read_text_list(text));
    free(text);
    end_paper(&paper);
}

/* ---- what if ----------------------------------------------------------------------------------------------------- */

struct factors { /* of speeds */
    double link, device, cpu;
};

/* A stage of a chain, device d and its index, with a time of its own for each of the numbers drawn. */
static void append_stage(char **text, int i, const double draw[6], const struct factors *by, int memory)
{
    double up = 9000 * draw[0] * by->link;
    double down = 5000 * draw[0] * by->link;
    double queue = 8000 * draw[1] * by->link;
    double update = draw[5] / by->cpu;
    append_text(text, "device d%d memory=%d\n", i, memory);
    append_text(text, "link d%d up %.17g 1e-3 queue=%.17g\n", i, up, queue);
    append_text(text, "link d%d down %.17g\n", i, down);
    append_text(text, "tensor x%d d%d 4000 activations\n", i, i);
    append_text(text, "tensor h%d host 4000 work keep\n", i);
    append_text(text, "tensor w%d d%d 4000 parameters\n", i, i);
    append_text(text, "tensor g%d d%d 4000 gradients\n", i, i);
    append_text(text, "task back d%d.compute %.17g role=backward reads=w%d writes=x%d,g%d\n", i, draw[2] / by->device,
                i, i, i);
    append_text(text, "copy down h%d x%d\n", i, i);
    append_text(text, "task move d%d.upload %.17g reads=g%d\n", i, draw[3] / by->link, i);
    append_text(text, "task adam d%d.compute %.17g role=update cpu=%.17g reads=g%d,w%d writes=w%d\n", i,
                draw[4] / by->device, update, i, i, i);
    append_text(text, "task note host.cpu %.17g reads=h%d\n", update, i);
    append_text(text, "task keep host.disk 0.5 reads=h%d\n", i);
}

/* A chain of stages with copies between, which are updated on the host or on the device. */
static char *random_chain(uint64_t seed, const struct factors *by, int memory)
{
    uint64_t n = 0;
    char *text = copy_string("device host memory=1G\ndisk 1e9 1e-3\n");
    for (int i = 0; i < 3; i++) {
        double draw[6];
        for (size_t k = 0; k < COUNT(draw); k++) {
            draw[k] = 0.01 + random_uniform(seed, STREAM_TEST, 0, n);
            n++;
        }
        append_stage(&text, i, draw, by, memory);
    }
    return text;
}

/* --what-if gives what the list gives whose numbers are edited by hand, to the digit. */
LONG_TEST(what_if_gives_what_an_edited_list_gives)
{
    static const struct factors as_drawn = {.link = 1, .device = 1, .cpu = 1};
    static const struct factors factors[] = {{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {1.5, 0.7, 3}};
    char *list = lasting("%s", temp_path("chain.txt"));
    char *edited = lasting("%s", temp_path("edited.txt"));
    for (uint64_t seed = 1; seed <= 8; seed++) {
        const struct factors *by = &factors[seed % COUNT(factors)];
        char *text = random_chain(seed, &as_drawn, 90000);
        write_text("chain.txt", "%s", text);
        free(text);
        text = random_chain(seed, by, 20000);
        write_text("edited.txt", "%s", text);
        free(text);
        const char *with = seed % 2 ? "--overlap all-cpu" : "--clip 0";
        char *words = lasting("plan --list %s %s --what-if link=%gx,device=%gx,cpu=%gx", list, with, by->link,
                              by->device, by->cpu);
        struct ran ours = run_yard("%s,mem=20000 --print-list", words);
        struct ran theirs = run_yard("plan --list %s %s --print-list", edited, with);
        assert_int_equal(ours.code, 0);
        assert_string_equal(ours.out, theirs.out);
        double period = number_at(yard_json("%s --device-mem 20000 --simulate --json", words), "simulation.step_ms");
        json_t *by_hand = yard_json("plan --list %s %s --simulate --json", edited, with);
        assert_close(period, number_at(by_hand, "simulation.step_ms"), 0);
    }
    expect_yard(EXIT_USAGE, "memory= or --device-mem", "plan --list %s --device-mem 11000", list);
    expect_yard(EXIT_USAGE, "memory= or --host-mem", "plan --list %s --host-mem 11000", list);
    expect_yard(EXIT_USAGE, "for the host: raise --host-mem, or use a smaller --micro-batch",
                "plan --model nano --hardware data/hardware/server.txt --swap auto --host-mem 1K");
    expect_yard(EXIT_USAGE, "--what-if takes words such as", "plan --list %s --simulate --what-if gpu=2x", list);
    expect_yard(EXIT_USAGE, "add --simulate", "plan --list %s --what-if link=2x", list);
}
