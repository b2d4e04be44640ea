/* test_recompute.c - activations that are made again: which ones, and how many bytes this spares.
 *
 * It tests src/techniques/recompute.  It checks which tasks are repeated in a model and in lists that no model has,
 * that the values stay the same, and that memory and time are as predicted.  It catches a task that is repeated after
 * its input has changed, and an activation that is kept although it is made again.
 *
 * To see it fail: in recompute.c, let `selective` make again all that `full` does: is_meant() is true.
 *
 * Expected numbers are counted by hand: tasks of a layer, times layers and micro-batches.  test_pass.c trains with it.
 */
#include "planning/lists/lists.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "techniques/recompute/recompute.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_training.h"

/* ---- models ------------------------------------------------------------------------------------------------------ */

static struct trainer *plan_recompute(enum recompute how)
{
    struct settings *settings =
        parse_words("--layers 4 --heads 2 --channels 32 --seq-len 64 --batch 2 --micro-batch 1");
    asked_predict.hardware = write_hardware("recompute.txt", &plausible_speeds);
    asked_recompute.mode = how;
    return plan_training(settings, LIST_TRAIN);
}

static size_t count_tasks(const struct list *list, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->tasks[i]->name, name) == 0)
            n++;
    return n;
}

/* 4 layers, 2 micro-batches: so often is each task of a layer's forward repeated, or not. */
TEST(what_is_repeated_is_counted)
{
    static const struct {
        enum recompute how;
        const char *repeated[4], *kept[2];
    } cases[] = {
        {RECOMPUTE_FULL, {"attn.ln", "attn.proj", "mlp.gelu", "attn.mix"}, {"mlp.proj", "mlp.residual"}},
        {RECOMPUTE_SELECTIVE, {"attn.scores", "attn.softmax", "mlp.gelu", "mlp.gelu"}, {"attn.mix", "attn.qkv"}}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct trainer *trainer = plan_recompute(cases[i].how);
        expect_sound(word_of("recompute", (int)cases[i].how), trainer->train_list,
                     values_of(trainer, trainer->train_list));
        for (size_t k = 0; k < COUNT(cases[i].repeated); k++)
            assert_int_equal(count_tasks(trainer->train_list, cases[i].repeated[k]), 2 * 4 * 2);
        for (size_t k = 0; k < COUNT(cases[i].kept); k++)
            assert_int_equal(count_tasks(trainer->train_list, cases[i].kept[k]), 4 * 2);
        free_trainer(trainer);
    }
}

/* Bytes at the peak: what is predicted for the schedule, for the arena, and what is then asked of OpenCL. */
TEST(recompute_keeps_less_as_predicted)
{
    static const enum recompute how[] = {RECOMPUTE_OFF, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL};
    size_t high[3], allocated[3];
    double period[3];
    for (int i = 0; i < 3; i++) {
        struct trainer *trainer = plan_recompute(how[i]);
        struct simulation *simulation = must_simulate(trainer->train_list, costs_of(trainer));
        high[i] = trainer->train_list->extra.peak_total[0];
        period[i] = simulation->period;
        free_simulation(simulation);
        free_trainer(trainer);
        struct settings *settings = parse_words("--model tiny --layers 4 --seq-len 64 -d 0:0");
        asked_recompute.mode = how[i];
        trainer = new_trainer(settings, LIST_TRAIN | OPEN_DATA);
        allocated[i] = trainer->machine->allocated;
        assert_at_most(trainer->train_list->extra.peak_total[0], allocated[i]);
        free_trainer(trainer);
    }
    for (int i = 1; i < 3; i++)
        if (high[i] >= high[i - 1] || allocated[i] >= allocated[i - 1] || period[i] <= period[i - 1])
            test_failed("%d: high %zu, allocated %zu, period %g; before: %zu, %zu, %g\n", i, high[i], allocated[i],
                        period[i], high[i - 1], allocated[i - 1], period[i - 1]);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* A list written by hand goes through the same passes: the numbers are those of its comment. */
TEST(passes_do_to_a_step_file_what_its_comment_says)
{
    json_t *plan = verified_plan("--list data/steps/recompute.txt --recompute full");
    assert_true(json_is_false(json_at(plan, "passes.0.declined")));
    assert_close(number_at(plan, "simulation.step_ms"), 18, 1e-9);
    /* w, g, x, one of h0 and h1, y0, in MiB */
    assert_int_equal(number_at(plan, "memory.0.peak.train.together"), (16 + 16 + 1 + 64 + 1) << 20);
    struct ran ran = expect_yard(
        EXIT_OK, "", "plan --list data/steps/recompute.txt --recompute full --after recompute --print-list");
    struct list *list = read_list(ran.stdout_path);
    assert_int_equal(list->n, 8 + 2); /* `expand` of both layers is repeated */
    free_list_and_machine(list);
}

struct unusual_list {
    const char *tasks; /* the last lines of its step file */
    size_t repeated;   /* how many of its tasks recompute repeats; 0: it declines */
};

/* Rewrites the list by recompute.  It must have `repeated` more tasks then, and compute the values that it computed
 * before. */
static void expect_repeated(const struct unusual_list *unusual)
{
    struct list *list = read_list_text("device gpu memory=1000\ntensor w gpu 7 parameters\ntensor x gpu 7 work\n"
                                       "tensor y gpu 7 work\ntensor h gpu 7 activations\ntensor i gpu 7 activations\n"
                                       "tensor g gpu 7 gradients\ntask feed gpu.compute 1 writes=x\n%s",
                                       unusual->tasks);
    struct values *values = hash_values(list);
    size_t n, before = list->n;
    asked_recompute.mode = RECOMPUTE_FULL;
    struct pass_report *report = run_passes(list, NULL, &(struct run_facts){0}, NULL, &n);
    asked_recompute.mode = RECOMPUTE_OFF;
    finish_list(list);
    struct problem *problem = verify_list(list, values);
    if (problem)
        test_failed("other values: %s:\n%s\n", problem->sentence, unusual->tasks);
    if (list->n != before + unusual->repeated)
        test_failed("%zu tasks instead of %zu and %zu more (%s):\n%s\n", list->n, before, unusual->repeated,
                    report->reason, unusual->tasks);
    if (report->declined != (unusual->repeated == 0))
        test_failed("recompute %s:\n%s\n", report->declined ? "declined" : "did not decline", unusual->tasks);
    free_reports(report, n);
    free_values(values);
    free_list_and_machine(list);
}

TEST(recompute_takes_lists_that_no_model_has)
{
    static const struct unusual_list lists[] = {
        {"task f gpu.compute 1 writes=h\ntask b gpu.compute 1 reads=h\n", 0}, /* neither task belongs to a layer */
        {"task f gpu.compute 1 layer=0 role=forward reads=x writes=h[1:4]\n"
         "task b gpu.compute 1 layer=0 role=backward reads=h[1:3] writes=g\n",
         1},
        {"task f gpu.compute 1 layer=1000000 micro=1000000 role=forward reads=x writes=h\n"
         "task b gpu.compute 1 layer=1000000 micro=1000000 role=backward reads=h writes=g\n",
         1},
        {"task f gpu.compute 1 layer=0 role=forward reads=x writes=h\n" /* y is made again too, and read by none */
         "task f gpu.compute 1 layer=0 role=forward reads=h writes=i,y\n"
         "task f gpu.compute 1 layer=1 role=forward reads=y writes=g\n"
         "task b gpu.compute 1 layer=0 role=backward reads=i writes=g\n",
         2},
        {"task f gpu.compute 1 layer=0 role=forward reads=x writes=h\n" /* x has changed */
         "task f gpu.compute 1 layer=1 role=forward reads=x writes=x\n"
         "task b gpu.compute 1 layer=0 role=backward reads=h writes=g\n",
         0},
        {"task f gpu.compute 1 layer=0 role=forward reads=x writes=x,h\n" /* in place */
         "task b gpu.compute 1 layer=0 role=backward reads=h writes=g\n",
         0},
        {"task f gpu.compute 1 layer=0 role=forward reads=w writes=h\n" /* updated meanwhile */
         "task u gpu.compute 1 layer=0 role=update reads=w writes=w\n"
         "task b gpu.compute 1 layer=0 role=backward reads=h writes=g\n",
         0},
        {"task f gpu.compute 1 layer=0 role=forward reads=x writes=h\n" /* it is not needed in each step */
         "task b gpu.compute 1 layer=0 role=backward every=2 reads=h writes=g\n",
         0},
        {"task f gpu.compute 1 layer=0 role=forward reads=x writes=w,h\n" /* what it leaves is kept */
         "task b gpu.compute 1 layer=0 role=backward reads=h writes=g\n",
         0},
    };
    for (size_t i = 0; i < COUNT(lists); i++)
        expect_repeated(&lists[i]);
}
