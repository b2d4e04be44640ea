/* test_resume.c - a run that is broken off and goes on has the bits of a run without a break.
 *
 * It tests resume.c and save_and_load.c of src/techniques/checkpoint, and `yard train --resume`.  It catches state that
 * is not saved (Adam's moments, the place in the data, the strategy), because the bits are others then.  It also checks
 * that a folder which two runs write is refused, and one to which another model is saved.
 *
 * To see it fail: in resume.c, go on with other data: leave out the comparison with hash_data().
 *
 * The expected state is that of the same run without a break.  The broken run makes two steps, a checkpoint, and two
 * more steps, on meshes of every kind.
 */
#include "planning/predict/plan.h"
#include "techniques/checkpoint/files.h"
#include "techniques/checkpoint/resume.h"
#include "tests/support/support_state.h"
#include "tests/support/support_training.h"
#include "tools/ckpt/model_forms.h"
#include "trainer/model_files/model_files.h"

/* ---- runs that go on --------------------------------------------------------------------------------------------- */

enum { HALF = 2 };
#define TRAIN "--model tiny --layers 4 --batch 12 --val-share 0 --steps 4 "

/* Parameters of a unit begin on multiples of UNIT_ALIGN.  What lies between them stays 0, where a device has whole
 * units. */
static void expect_zeros_between(const struct model *model)
{
    if (model->mesh->tp > 1 || model->mesh->zero > 0)
        return;
    for (int u = 0; u < model->params->n_units; u++) {
        struct tensor *moment = model->replicas[0].m[u];
        float *values = allocate(model->params->units[u].elements, sizeof *values);
        if (moment)
            read_tensor(moment, values);
        for (int i = model->params->units[u].first_param;
             i < model->params->units[u].first_param + model->params->units[u].n_params; i++) {
            const struct param *param = &model->params->items[i];
            size_t n = (size_t)(param->shape[0] * param->shape[1]);
            for (size_t k = n; k < round_up(n, UNIT_ALIGN); k++)
                assert_close(values[param->offset + k], 0, 0);
        }
        free(values);
    }
}

/* Makes the parameters of a new run, or loads those of one that is resumed. */
static struct trainer *start_run(const char *words)
{
    struct settings *settings = parse_words(words);
    struct trainer *trainer = new_trainer(settings, LIST_TRAIN | OPEN_DATA);
    if (settings->resumed) {
        load_checkpoint(trainer->model, settings->source.checkpoint, LOAD_ALL_STATE);
        expect_zeros_between(trainer->model);
    } else
        init_random(trainer->model, (uint64_t)settings->seed);
    return trainer;
}

/* Ends a run or a plan, and closes the checkpoint that it was resumed from. */
static void end_run(struct trainer *trainer)
{
    struct source source = trainer->settings->source;
    free_trainer(trainer);
    close_source(&source);
}

static struct state end_run_and_read(struct trainer *trainer)
{
    struct state state = read_whole_state(trainer);
    end_run(trainer);
    return state;
}

static void save_half(struct trainer *trainer, const char *folder)
{
    struct checkpoint *checkpoint = new_checkpoint(trainer, HALF);
    make_folder(folder);
    save_checkpoint(trainer->model, folder, checkpoint);
    free_checkpoint(checkpoint);
}

static const char *resume_words(const char *folder, const char *more)
{
    return lasting("--resume %s %s", folder, more);
}

static const char *const meshes[] = {
    "-d 0:0",
    "-d 0:0x2 --zero 0",
    "-d 0:0x3 --zero 1 --recompute full",
    "-d 0:0x2 --zero 2",
    "-d 0:0x2 --mesh pp=2 --micro-batch 3",
    "-d 0:0x4 --mesh pp=4 --micro-batch 2 --pipeline gpipe",
    "-d 0:0x2 --mesh pp=2 --micro-batch 3 --pipeline interleaved --recompute selective",
    "-d 0:0x2 --mesh tp=2",
    "-d 0:0x2 --mesh tp=2 --clip 0",
    "-d 0:0x4 --mesh dp=2,tp=2 --zero 0",
    "-d 0:0x4 --mesh dp=2,tp=2 --zero 1",
    "-d 0:0x4 --mesh dp=2,pp=2 --zero 2 --micro-batch 2",
    "-d 0:0x4 --mesh pp=2,tp=2 --stages 1,3 --untied",
    "-d 0:0x8 --mesh dp=2,pp=2,tp=2 --micro-batch 3",
    "-d 0:0 --grad-groups 2 --micro-batch 3",
    "-d 0:0x3 --zero 3",
    "-d 0:0x4 --mesh dp=2,tp=2 --zero 3 --micro-batch 3",
    "-d 0:0x2 --swap layer --swap-what activations,optimizer --recompute selective",
};

/* Two steps, a break, and two more give the bits of four, with the options and the strategy of the checkpoint alone. */
TEST(a_resumed_run_is_the_unbroken_one)
{
    need_own_products();
    for (size_t i = 0; i < COUNT(meshes); i++) {
        const char *folder = temp_path("resumed");
        struct trainer *trainer = start_run(lasting(TRAIN "%s", meshes[i]));
        run_steps(trainer, 1, HALF);
        save_half(trainer, folder);
        run_steps(trainer, HALF + 1, 2 * HALF);
        struct state whole = end_run_and_read(trainer);
        trainer = start_run(resume_words(folder, ""));
        run_steps(trainer, HALF + 1, 2 * HALF);
        struct state resumed = end_run_and_read(trainer);
        assert_int_equal(whole.n, resumed.n);
        expect_same_bits(meshes[i], resumed.values, whole.values, whole.n);
        free(whole.values);
        free(resumed.values);
    }
}

/* A model that is written from the devices has the bytes of one that is exported from their checkpoint. */
TEST(a_saved_model_is_its_checkpoint_exported)
{
    need_own_products();
    const char *folder = temp_path("saved");
    const char *ours = temp_path("ours.safetensors");
    const char *its = temp_path("its.safetensors");
    for (size_t i = 0; i < COUNT(meshes); i++) {
        struct trainer *trainer = start_run(lasting(TRAIN "%s", meshes[i]));
        run_steps(trainer, 1, HALF);
        save_half(trainer, folder);
        struct checkpoint *checkpoint = open_checkpoint(folder);
        save_model(trainer->model, ours, HALF, checkpoint->tokenizer);
        export_safetensors(checkpoint, its, PLAIN_NAMES);
        expect_same_file(ours, its);
        free_checkpoint(checkpoint);
        free_trainer(trainer);
    }
}

/* Trains HALF steps on this mesh, and saves a checkpoint.  Returns the state; the caller frees its values. */
static struct state save_from(const char *mesh, const char *folder)
{
    struct trainer *trainer = start_run(lasting(TRAIN "%s", mesh));
    run_steps(trainer, 1, HALF);
    save_half(trainer, folder);
    return end_run_and_read(trainer);
}

/* The meshes whose checkpoints others load: each third one, and none with a model of another form. */
static bool is_loaded_elsewhere(size_t i) { return i % 3 == 1 && !strstr(meshes[i], "--untied"); }

/* A state that one mesh has saved is the same bits once another mesh has loaded it. */
TEST(any_mesh_loads_any_other)
{
    need_own_products();
    static const char *const other[] = {"-d 0:0 --mesh dp=1", "-d 0:0x3 --mesh dp=3 --zero 3",
                                        "-d 0:0x4 --mesh pp=2,tp=2 --zero 0", "-d 0:0x2 --mesh tp=2"};
    const char *folder = temp_path("loaded");
    for (size_t i = 0; i < COUNT(meshes); i++) {
        if (!is_loaded_elsewhere(i))
            continue;
        struct state saved = save_from(meshes[i], folder);
        for (size_t k = 0; k < COUNT(other); k++) {
            const char *words = resume_words(folder, lasting("%s --micro-batch 0", other[k]));
            struct state loaded = end_run_and_read(start_run(words));
            expect_same_bits(other[k], loaded.values, saved.values, saved.n);
            free(loaded.values);
        }
        free(saved.values);
    }
}

/* --init takes the parameters of a checkpoint; Adam's moments begin at 0. */
TEST(init_loads_the_parameters_of_any_mesh_alone)
{
    need_own_products();
    const char *folder = temp_path("initial");
    for (size_t i = 0; i < COUNT(meshes); i++) {
        if (!is_loaded_elsewhere(i))
            continue;
        struct state saved = save_from(meshes[i], folder);
        struct source source = open_source(folder, 0);
        struct trainer *trainer = new_trainer(parse_words("--model tiny --layers 4 -d 0:0x2 --mesh tp=2 --val-share 0"),
                                              LIST_TRAIN | OPEN_DATA);
        init_from_source(trainer->model, &source);
        close_source(&source);
        struct state loaded = end_run_and_read(trainer);
        expect_same_bits(meshes[i], loaded.values, saved.values, saved.n_parameters);
        for (size_t k = loaded.n_parameters; k < loaded.n; k++)
            assert_close(loaded.values[k], 0, 0);
        free(loaded.values);
        free(saved.values);
    }
}

/* A checkpoint after half of a training on dp=2,tp=2. */
static const char *save_strategy(void)
{
    const char *folder = temp_path("strategy");
    struct trainer *trainer = start_run(TRAIN "-d 0:0x4 --mesh dp=2,tp=2");
    save_half(trainer, folder);
    free(end_run_and_read(trainer).values);
    return folder;
}

static struct trainer *plan_resumed(const char *folder, const char *words)
{
    return plan_training(parse_words(resume_words(folder, words)), LIST_TRAIN | OPEN_DATA);
}

/* The strategy goes on with another dp, and one device runs plainly and keeps the record.  It does not matter whether
 * pieces have been merged meanwhile: the first devices are those of the run, not of the pieces. */
TEST(the_strategy_is_rescaled)
{
    static const struct {
        const char *words;
        int dp, pp, tp;
        const char *record;
    } cases[] = {
        {.words = "", .dp = 2, .pp = 1, .tp = 2, .record = "dp=2,pp=1,tp=2"},
        {.words = "-d 0:0x2", .dp = 1, .pp = 1, .tp = 2, .record = "dp=1,pp=1,tp=2"},
        {.words = "-d 0:0x8", .dp = 4, .pp = 1, .tp = 2, .record = "dp=4,pp=1,tp=2"},
        {.words = "-d 0:0", .dp = 1, .pp = 1, .tp = 1, .record = "dp=2,pp=1,tp=2"},
        {.words = "-d 0:0x2 --mesh pp=2", .dp = 1, .pp = 2, .tp = 1, .record = "dp=1,pp=2,tp=1"},
        {.words = "-d 0:0x4", .dp = 2, .pp = 1, .tp = 2, .record = "dp=2,pp=1,tp=2"},
        {.words = "-d 0:0 --mesh dp=1", .dp = 1, .pp = 1, .tp = 1, .record = "dp=1,pp=1,tp=1"},
    };
    const char *folder = save_strategy(), *merged = lasting("%s-merged", folder);
    expect_yard(EXIT_OK, "dp=1,pp=1,tp=1, zero 1, of strategy dp=2,pp=1,tp=2;", "ckpt reshard '%s' '%s'", folder,
                merged);
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        size_t k = i / 2;
        bool is_merged = i % 2 == 1;
        struct trainer *trainer = plan_resumed(is_merged ? merged : folder, cases[k].words);
        assert_int_equal(trainer->mesh.dp, cases[k].dp);
        assert_int_equal(trainer->mesh.pp, cases[k].pp);
        assert_int_equal(trainer->mesh.tp, cases[k].tp);
        assert_string_equal(text_at(recorded_options(trainer), "mesh"), cases[k].record);
        end_run(trainer);
    }
}

/* HALF steps of 12 sequences are 24.  A run with another batch counts the steps that these would have been: it is ahead
 * by the difference. */
TEST(another_batch_goes_on_at_the_same_sequence)
{
    static const struct {
        const char *words;
        int ahead;
    } batches[] = {{"--batch 24", 1 - HALF}, {"--batch 6", 4 - HALF}, {"--batch 10", 3 - HALF}, {"", 0}};
    const char *folder = save_strategy();
    for (size_t i = 0; i < COUNT(batches); i++) {
        struct trainer *trainer = plan_resumed(folder, batches[i].words);
        assert_int_equal(trainer->extra.batches_ahead, batches[i].ahead);
        struct checkpoint *checkpoint = new_checkpoint(trainer, HALF + 1); /* whole batches, and one more */
        assert_int_equal(checkpoint->samples, (int64_t)round_up(24, (size_t)trainer->batch) + trainer->batch);
        free_checkpoint(checkpoint);
        end_run(trainer);
    }
}

/* A strategy with tp=2 cannot take 3 devices; nor 16, with which dp=8 would not divide the batch of 12. */
TEST(numbers_of_devices_that_do_not_fit_are_refused)
{
    const char *folder = save_strategy();
    expect_yard(EXIT_USAGE, "the nearest that can is --mesh dp=1,pp=1,tp=2, which takes 2",
                "train --resume '%s' -d 0:0x3", folder);
    expect_yard(EXIT_USAGE, "the nearest that can is --mesh dp=6,pp=1,tp=2, which takes 12",
                "train --resume '%s' -d 0:0x16", folder);
}

static int count_lines(const char *path, const char *with)
{
    size_t size;
    char *text = read_whole(path, &size);
    int n = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (strstr(line, with))
            n++;
    free(text);
    return n;
}

#define STOPPED "train --model nano --layers 2 --steps 5 --val-batches 1 --sample-tokens 0"

struct stopped { /* a run of 5 steps that was stopped after step 3 */
    const char *folder;
    const char *log;
    const char *resumes; /* the words that it prints, with which it goes on */
};

static struct stopped stop_run(void)
{
    struct stopped stopped = {.folder = temp_path("cli-broken"), .log = temp_path("cli.jsonl")};
    remove_folder(stopped.folder);
    unlink(stopped.log);
    struct ran ran = expect_yard(EXIT_OK, "", STOPPED " --save '%s' --stop-after 3 --save-every 1 --keep 2 --log '%s'",
                                 stopped.folder, stopped.log);
    stopped.resumes = lasting("train --resume %s --save %s --save-every 1 --keep 2 --log %s", stopped.folder,
                              stopped.folder, stopped.log);
    assert_contains(ran.err, lasting(" %s", stopped.resumes)); /* behind the program's name */
    assert_int_equal(count_files(stopped.folder), 2 + 2 + 1);  /* ., .., two checkpoints and the model */
    return stopped;
}

/* A run that is stopped and resumed leaves the files and the log of one that was not. */
TEST(a_stopped_run_that_resumes_leaves_the_files_of_an_unbroken_one)
{
    const char *whole = temp_path("cli-whole");
    expect_yard(EXIT_OK, "", STOPPED " --save '%s'", whole);
    struct stopped stopped = stop_run();
    FILE *file = fopen(stopped.log, "a"); /* as a run that was killed within a line leaves it */
    assert_non_null(file);
    assert_at_least(fputs("{\"step\":4,\"lo", file), 0);
    assert_int_equal(fclose(file), 0);
    expect_yard(EXIT_OK, "", "%s --val-batches 1 --sample-tokens 0", stopped.resumes);
    char *sound = lasting("%s/step-5", whole), *resumed = lasting("%s/step-5", stopped.folder);
    expect_same_file(lasting("%s/rank-0.safetensors", sound), lasting("%s/rank-0.safetensors", resumed));
    assert_int_equal(count_lines(stopped.log, "{\"run\""), 1);
    assert_int_equal(count_lines(stopped.log, "\"norm\""), 5);
    expect_yard(EXIT_OK, "", "ckpt diff '%s' '%s'", sound, resumed);
    struct ran ran = expect_yard(EXIT_OK, "nothing is left to train", "%s", stopped.resumes);
    assert_null(strstr(ran.err, "warning"));
}

/* A run that is resumed on a device with other vectors, or with other data, says so. */
TEST(a_resumed_run_says_what_is_other)
{
    struct stopped stopped = stop_run();
    size_t n;
    char *step = lasting("%s/step-3", stopped.folder), *text = read_whole(lasting("%s/" MANIFEST, step), &n);
    char *vector = strndup(strstr(text, "\"vector\":"), strcspn(strstr(text, "\"vector\":"), ","));
    change_manifest(step, text, vector, "\"vector\":3");
    expect_yard(EXIT_OK, "was trained with vectors of 3 floats", "%s", stopped.resumes);
    expect_yard(EXIT_OK, "the data are not those that",
                "train --resume '%s' --data LICENSE --val-batches 1 --sample-tokens 0", stopped.folder);
    free(text);
    free(vector);
}

static uint64_t read_run_id(const char *path)
{
    struct checkpoint *checkpoint = open_checkpoint(path);
    uint64_t run = checkpoint->run_id;
    assert_string_equal(checkpoint->program, YARD_VERSION);
    free_checkpoint(checkpoint);
    return run;
}

static void expect_other_models_refused(const char *words, const char *folder)
{
    static const char *const others[] = {"--seq-len 16", "--untied", "--heads 4", "--channels 64", "--tokens chars"};
    for (size_t i = 0; i < COUNT(others); i++) {
        struct ran ran = run_yard("%s --save \"%s\" %s", words, folder, others[i]);
        assert_int_equal(ran.code, EXIT_USAGE);
        assert_contains(ran.err, "has another model");
    }
}

#define SHORT "train --model tiny --steps 2 --val-share 0 --sample-tokens 0"

TEST(a_second_run_is_refused_while_the_first_one_has_the_folder)
{
    const char *folder = temp_path("locked");
    make_folder(folder);
    int lock = lock_folder("a test", folder);
    expect_yard(EXIT_USAGE, "another run is writing there", SHORT " --save \"%s\"", folder);
    assert_int_equal(count_files(folder), 2); /* . and .. */
    close(lock);
}

/* A file that a killed run has left half-written is removed, and the command that is printed is one for a shell,
 * whatever the folder's name. */
TEST(the_command_that_is_printed_goes_on)
{
    const char *folder = temp_path("it's mine");
    make_folder(folder);
    char *stray = lasting("%s/step-7.tmp-2147483647", folder);
    make_folder(stray);
    struct ran ran = expect_yard(EXIT_OK, "", SHORT " --save \"%s\" --stop-after 1", folder);
    assert_int_not_equal(access(stray, F_OK), 0);
    const char *resumes = strstr(ran.err, "train --resume '");
    assert_non_null(resumes);
    expect_yard(EXIT_OK, "", "%.*s --val-share 0 --sample-tokens 0", (int)strcspn(resumes, "\n"), resumes);
    expect_newest_checkpoint(folder, "step-2");
}

/* Each session of a run, in whatever folder or snapshot file, has the run's id and a number of its own. */
TEST(sessions_of_one_run_have_its_id)
{
    const char *folder = temp_path("sessions");
    expect_yard(EXIT_OK, "", SHORT " --save \"%s\" --stop-after 1", folder);
    expect_yard(EXIT_OK, "", "train --resume \"%s\" --save \"%s\" --val-share 0 --sample-tokens 0", folder, folder);
    char *first = lasting("%s/step-1", folder), *other = lasting("%s-other", folder);
    assert_int_equal(access(first, F_OK), 0); /* it is the same run that goes on */
    const char *snapshot = lasting("%s.snap", other);
    expect_yard(EXIT_OK, "",
                "train --resume \"%s\" --save \"%s\" --snapshot \"%s\" --steps 3 --val-share 0 --sample-tokens 0",
                folder, other, snapshot);
    assert_int_equal(last_session(folder), 2);
    assert_int_equal(last_session(other), 3);
    uint64_t run = read_run_id(folder);
    assert_int_not_equal(run, 0);
    assert_int_equal(run, read_run_id(first));
    assert_int_equal(run, read_run_id(other));
    assert_int_equal(run, read_run_id(snapshot));
    struct ran ran =
        expect_yard(EXIT_FAILED, "of one run, and the later is ", "ckpt diff \"%s\" \"%s\"", other, folder);
    assert_contains(ran.out, lasting("later is %s/step-3\n", other));
    expect_yard(EXIT_OK, "and of the same moment", "ckpt diff \"%s\" \"%s\"", other, snapshot);
}

/* Another run may begin in the folder of one that has ended, if it has the same model: it replaces the checkpoints. */
TEST(another_run_takes_the_folder_over)
{
    const char *folder = temp_path("taken"), *kept = lasting("%s-kept", folder);
    char *first = lasting("%s/step-1", folder);
    expect_yard(EXIT_OK, "", SHORT " --save \"%s\" --stop-after 1", folder);
    expect_yard(EXIT_OK, "", "ckpt reshard \"%s\" \"%s\"", folder, kept);
    uint64_t run = read_run_id(folder);
    assert_int_equal(last_session(folder), 1);
    expect_yard(EXIT_OK, "", SHORT " --save \"%s\"", folder);
    assert_int_not_equal(access(first, F_OK), 0);
    assert_int_equal(last_session(folder), 2);
    assert_int_not_equal(read_run_id(folder), run);
    expect_yard(EXIT_FAILED, "they are of two runs", "ckpt diff \"%s\" \"%s\"", kept, folder);
    expect_other_models_refused(SHORT, folder);
}
