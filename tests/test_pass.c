/* test_pass.c - the techniques on real lists: whichever are on, the list proves to compute the same, and training gives
 * the bits of --serial without them.  A pass in the table of src/pass/pass.c is in these tests.
 */
#include "support_paper.h"

#include <math.h>
#include <string.h>

enum { STEPS = 3 };

/* On a single device there is nothing to send, and with ZeRO-3 others gather what they need. */
static bool may_decline(const struct trainer *t, const struct pass *p)
{
    return strcmp(p->name, "broadcast") == 0 && (t->machine->n_devices == 1 || t->mesh.zero == 3);
}

static struct state train(struct settings *s)
{
    struct trainer *t = new_trainer(s, LIST_TRAIN, true, false);
    init_random(t->model, 1337);
    char *wrong = verify(t->train, t->values);
    if (wrong)
        test_failed("%s\n", wrong);
    for (size_t i = 0; i < t->n_passes; i++)
        assert_true(!t->passes[i].declined || may_decline(t, t->passes[i].pass));
    for (uint32_t number = 1; number <= STEPS; number++)
        run_step(t, number);
    assert_true(isfinite(step_result(t, STEPS)->loss));
    drain(t->train);
    expect_equal_replicas(t, "replica");
    struct state all = read_whole_state(t);
    for (int i = 0; i <= t->machine->n_devices; i++)
        assert_int_equal(damaged_guards(&t->machine->device[i]), 0);
    free_trainer(t);
    return all;
}

/* ---- all combinations -------------------------------------------------------------------------------------------- */

static size_t count_ways(const struct pass *p)
{
    size_t n = 0;
    while (n < COUNT(p->turned_on) && p->turned_on[n])
        n++;
    return n;
}

static size_t count_combinations(void)
{
    size_t n = 1;
    for (size_t i = 0; i < n_passes; i++)
        n *= count_ways(&passes[i]) + 1;
    return n;
}

/* The nth combination: of each pass, off or one of its ways. */
static char *combination(size_t nth, const char *words)
{
    char *text = copy_string(words);
    for (size_t i = 0; i < n_passes; i++) {
        size_t ways = count_ways(&passes[i]) + 1, way = nth % ways;
        nth /= ways;
        if (!way)
            continue;
        char *more = format_string("%s %s", text, passes[i].turned_on[way - 1]);
        free(text);
        text = more;
    }
    return text;
}

/* Every combination with COMBINATIONS=all in the environment; else so many, spread over all. */
static size_t stride_of_combinations(size_t wanted)
{
    size_t n = count_combinations(), stride = n / wanted;
    const char *all = getenv("COMBINATIONS");
    if (stride < 2 || (all && strcmp(all, "all") == 0))
        return 1;
    while (n % stride == 0 || stride % 2 == 0 || stride % 3 == 0) /* else some way would never be tried */
        stride++;
    return stride;
}

static void expect_same_bits_whatever_is_on(const char *words, size_t wanted)
{
    struct settings *s = settings_of(words);
    s->serial = true;
    struct state expected = train(s);
    size_t n = count_combinations(), stride = stride_of_combinations(wanted);
    for (size_t nth = 1; nth < n; nth += stride) {
        char *text = combination(nth, words);
        s = settings_of(text);
        s->delay_seed = (int64_t)nth;
        struct state state = train(s);
        assert_int_equal(state.n, expected.n);
        expect_same_bits(text, state.values, expected.values, expected.n);
        free(state.values);
        free(text);
    }
    free(expected.values);
}

#define TINY "--model tiny --seq-len 16 "

TEST(combinations)
{
    need_own_products();
    expect_same_bits_whatever_is_on(TINY "-d 0:0 --gemm own", 12);
}

TEST(combinations_on_two_devices)
{
    need_own_products();
    char *words = format_string(TINY "-d %s --micro-batch 1 --gemm own", two_devices());
    expect_same_bits_whatever_is_on(words, 24);
    free(words);
}

TEST(combinations_with_clblast) { expect_same_bits_whatever_is_on(TINY "-d 0:0 --micro-batch 2 --gemm clblast", 6); }

/* ---- recompute --------------------------------------------------------------------------------------------------- */

static struct trainer *plan_recompute(const char *how)
{
    struct settings *s = parse_settings(CMD_TRAIN, 0, NULL);
    s->layers = 4, s->heads = 2, s->channels = 32, s->seq_len = 64;
    s->batch = 2, s->micro_batch = 1;
    s->hardware = write_hardware("recompute.txt", &plausible_speeds);
    s->recompute = how;
    s->verify = true;
    return new_trainer(s, LIST_TRAIN, false, true);
}

static size_t count_tasks(const struct step *s, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += strcmp(s->task[i]->name, name) == 0;
    return n;
}

/* 4 layers, 2 micro-batches: so often is each task of a layer's forward repeated, or not. */
static void expect_repeats(const char *how, const char *repeated, const char *kept)
{
    struct trainer *t = plan_recompute(how);
    char *wrong = verify(t->train, t->values);
    if (wrong)
        test_failed("%s: %s\n", how, wrong);
    assert_int_equal(count_tasks(t->train, repeated), 16);
    assert_int_equal(count_tasks(t->train, kept), 8);
    free_trainer(t);
}

TEST(what_is_repeated)
{
    expect_repeats("full", "attn.ln", "mlp.proj");   /* whose result nothing of the backward reads */
    expect_repeats("full", "attn.proj", "mlp.proj"); /* only the residual of the repeat reads it */
    expect_repeats("full", "mlp.gelu", "mlp.residual");
    expect_repeats("full", "attn.mix", "mlp.residual");
    expect_repeats("selective", "attn.scores", "attn.mix");
    expect_repeats("selective", "attn.softmax", "attn.qkv");
    expect_repeats("selective", "mlp.gelu", "mlp.fc");
}

/* Bytes at the peak: what is predicted for the schedule, for the arena, and what is then asked of OpenCL. */
TEST(less_is_kept)
{
    static const char *const how[] = {"off", "selective", "full"};
    size_t high[3], allocated[3];
    double period[3];
    for (int i = 0; i < 3; i++) {
        struct trainer *t = plan_recompute(how[i]);
        struct simulation *sim = must_simulate(t->train, t->costs);
        high[i] = t->train->high[0], period[i] = sim->period;
        free_simulation(sim);
        free_trainer(t);
        struct settings *s = settings_of(TINY "--layers 4 --seq-len 64 -d 0:0");
        s->recompute = how[i];
        t = new_trainer(s, LIST_TRAIN, true, false);
        allocated[i] = t->machine->allocated;
        assert_true(t->train->high[0] <= allocated[i]);
        free_trainer(t);
    }
    for (int i = 1; i < 3; i++)
        if (high[i] >= high[i - 1] || allocated[i] >= allocated[i - 1] || period[i] <= period[i - 1])
            test_failed("%s: high %zu, allocated %zu, period %g; %s: %zu, %zu, %g\n", how[i], high[i], allocated[i],
                        period[i], how[i - 1], high[i - 1], allocated[i - 1], period[i - 1]);
}

TEST(recompute_passes_the_audit)
{
    struct settings *s = settings_of(TINY "-d 0:0 --recompute full");
    s->serial = s->audit = true;
    free(train(s).values);
}

TEST(recompute_declines_a_list_without_layers)
{
    struct paper p = new_paper(1, &slow_speeds);
    struct tensor *x = new_bytes(&p, p.device, "x", 8, false);
    add_paper(&p, p.device->lane[LANE_COMPUTE], "f", x, NULL, NULL);
    add_paper(&p, p.device->lane[LANE_COMPUTE], "g", NULL, x, NULL);
    size_t n, tensors = p.pool->n;
    struct pass_report *reports =
        run_passes(p.step, p.costs, &(struct pass_options){.recompute = RECOMPUTE_FULL}, NULL, &n);
    assert_int_equal(n, 1);
    assert_true(reports[0].declined);
    assert_non_null(strstr(reports[0].reason, "keeps no activation"));
    assert_int_equal(p.step->n, 2);
    assert_int_equal(p.pool->n, tensors);
    free_reports(reports, n);
    end_paper(&p);
}

/* ---- yard plan --------------------------------------------------------------------------------------------------- */

TEST(plan_reports_passes)
{
    struct ran ran =
        run_yard("plan --model tiny --hardware data/hardware/server.txt --simulate --json --recompute full "
                 "--after recompute");
    assert_int_equal(ran.code, EXIT_OK);
    json_t *plan = json_load_file(ran.stdout_path, 0, NULL), *passes_on = json_object_get(plan, "passes");
    assert_int_equal(json_array_size(passes_on), 1);
    json_t *first = json_array_get(passes_on, 0);
    assert_string_equal(json_string_value(json_object_get(first, "pass")), "recompute");
    assert_true(json_is_false(json_object_get(first, "declined")));
    assert_non_null(strstr(json_string_value(json_object_get(first, "reason")), "full: "));
    json_decref(plan);
    ran = run_yard("plan --model tiny --hardware data/hardware/server.txt --verify --recompute selective");
    assert_int_equal(ran.code, EXIT_OK);
    ran = run_yard("plan --model tiny --hardware data/hardware/server.txt --after swop");
    assert_int_equal(ran.code, EXIT_USAGE);
    assert_non_null(strstr(ran.err, "--after swop: there is no such pass"));
    ran = run_yard("train --recompute some");
    assert_int_equal(ran.code, EXIT_USAGE);
    assert_non_null(strstr(ran.err, "off|full|selective|auto"));
}

static json_t *overlap_of(const char *options)
{
    struct ran ran = run_yard("plan --model nano --hardware data/hardware/workstation.txt --clip 0 --json "
                              "--overlap plan --swap auto %s",
                              options);
    assert_int_equal(ran.code, EXIT_OK);
    json_t *plan = json_load_file(ran.stdout_path, 0, NULL);
    json_t *overlap = json_incref(json_array_get(json_object_get(plan, "passes"), 0));
    json_decref(plan);
    return overlap;
}

/* Overlap chooses before swap has made room, in a budget in which no choice fits: as if it had the room. */
TEST(overlap_counts_on_swap)
{
    json_t *all = overlap_of(""), *tight = overlap_of("--device-mem 30M");
    const char *same[] = {"declined", "choice", "period_ms", "local_ms", "updates"};
    for (size_t i = 0; i < COUNT(same); i++)
        assert_true(json_equal(json_object_get(all, same[i]), json_object_get(tight, same[i])));
    assert_non_null(strchr(json_string_value(json_object_get(tight, "choice")), 'C'));
    json_decref(all), json_decref(tight);
}

/* The viewer colours them. */
TEST(tasks_of_passes_have_roles)
{
    struct trainer *t =
        new_trainer(settings_of("--model tiny --data LICENSE --overlap all-cpu --swap layer"), LIST_TRAIN, true, false);
    size_t n[ROLES] = {0};
    for (size_t i = 0; i < t->train->n; i++) {
        const struct task *task = t->train->task[i];
        n[task->role]++;
        assert_true((strncmp(task->name, "swap.", 5) == 0) == (task->role == ROLE_SWAP));
    }
    assert_true(n[ROLE_OFFLOAD] > 0 && n[ROLE_SWAP] > 0);
    free_trainer(t);
}

/* A list written by hand goes through the same passes: the numbers are those of its comment. */
TEST(passes_on_a_step_file)
{
    struct ran ran = run_yard("plan --list data/steps/recompute.txt --recompute full --simulate --verify --json");
    assert_int_equal(ran.code, EXIT_OK);
    json_t *plan = json_load_file(ran.stdout_path, 0, NULL), *sim = json_object_get(plan, "simulation");
    json_t *first = json_array_get(json_object_get(plan, "passes"), 0);
    assert_true(json_is_false(json_object_get(first, "declined")));
    assert_true(fabs(json_number_value(json_object_get(sim, "step_ms")) - 18) < 1e-9);
    const json_t *peak = json_object_get(json_array_get(json_object_get(plan, "memory"), 0), "peak");
    const json_t *together = json_object_get(json_object_get(peak, "train"), "together");
    assert_int_equal(json_integer_value(together), (16 + 16 + 1 + 64 + 1) << 20);
    json_decref(plan);
    ran = run_yard("plan --list data/steps/recompute.txt --recompute full --after recompute --print-list");
    assert_int_equal(ran.code, EXIT_OK);
    struct step *s = read_list(ran.stdout_path);
    assert_int_equal(s->n, 10);
    free_list(s);
}

/* What recompute makes of lists that no model has, of 100 bytes a tensor; repeated: how many tasks, 0 where it
 * declines.
 */
TEST(lists_that_no_model_has)
{
    static const struct {
        const char *tasks;
        size_t repeated;
    } lists[] = {
        {"task f gpu.compute 1 layer=0 role=forward reads=x writes=h\n"
         "task b gpu.compute 1 layer=0 role=backward reads=h writes=g\n",
         1},
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
        {"task f gpu.compute 1 layer=0 role=forward reads=x writes=w,h\n" /* what it leaves is kept */
         "task b gpu.compute 1 layer=0 role=backward reads=h writes=g\n",
         0},
    };
    for (size_t i = 0; i < COUNT(lists); i++) {
        char *text = format_string("device gpu memory=1000\ntensor w gpu 7 parameters\ntensor x gpu 7 work\n"
                                   "tensor y gpu 7 work\ntensor h gpu 7 activations\ntensor i gpu 7 activations\n"
                                   "tensor g gpu 7 gradients\ntask feed gpu.compute 1 writes=x\n%s",
                                   lists[i].tasks);
        struct step *s = read_list(write_file("list.txt", text, strlen(text)));
        struct values *values = number_values(s);
        size_t n, before = s->n;
        struct pass_report *r = run_passes(s, NULL, &(struct pass_options){.recompute = RECOMPUTE_FULL}, NULL, &n);
        must(place(s->pool, &s, 1, true));
        depend(s, true);
        char *wrong = verify(s, values);
        if (wrong || s->n != before + lists[i].repeated || r->declined != (lists[i].repeated == 0))
            test_failed("list %zu has %zu tasks instead of %zu: %s\n", i, s->n, before, wrong ? wrong : r->reason);
        free_reports(r, n);
        free_values(values);
        free_list(s);
        free(text);
    }
}
