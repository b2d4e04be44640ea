/* test_mesh.c - training over meshes of devices: who has what, in which order, and with which bits.
 *
 * It tests src/trainer/mesh and the lists that are built for it.  Each device has one place, each element of a
 * parameter is in one shard, and sums are in the order of the ranks; so the bits are those of one device, as far as a
 * mesh promises that.  A shard that overlaps another, a stage that is visited in the wrong order, a sum that depends on
 * who comes first, and memory beyond the formula are found.
 *
 * To see it fail: in mesh.c, fold the chunks of even numbers: chunk % 2 == 0.
 *
 * Orders and memory come from formulas beside the tests.  (All meshes of a grid, and their bits: test_grid.c.)
 */
#include "tests/support/support_paper.h"
#include "tests/support/support_training.h"
#include "tools/lists/lists.h"
#include "tools/predict/predict.h"

#include <math.h>

enum { STEPS = 3 };

/* ---- coordinates, stages, shards -------------------------------------------------------------------------------- */

TEST(every_device_has_one_place)
{
    struct mesh mesh = {.dp = 3, .pp = 4, .tp = 2, .chunks = 2};
    bool taken[24] = {false};
    for (int k = 0; k < mesh.dp; k++)
        for (int i = 0; i < n_stages(&mesh) * mesh.tp; i++) {
            int stage = i / mesh.tp, rank = rank_at(&mesh, k, stage) + i % mesh.tp;
            assert_int_equal(dp_of(&mesh, rank), k);
            assert_int_equal(tp_of(&mesh, rank), i % mesh.tp);
            assert_true(has_stage(&mesh, rank, stage));
            assert_true(!has_stage(&mesh, rank, stage + 1));
            taken[rank] = true;
        }
    for (int rank = 0; rank < n_ranks(&mesh); rank++)
        assert_true(taken[rank]);
}

TEST(shards_cover_a_unit_once)
{
    for (int n = 1; n <= 9; n++)
        for (size_t elements = 1; elements < 12 * NORM_BLOCK; elements += 1237) {
            size_t at = 0;
            for (int k = 0; k < n; k++) {
                struct range shard = shard_of(elements, k, n);
                assert_int_equal(shard.begin, at);
                assert_true(shard.begin % NORM_BLOCK == 0 || shard.begin == elements);
                at = shard.end;
            }
            assert_int_equal(at, elements);
        }
}

/* Every element of the whole is in one part, at the place that its row and column there say. */
static void expect_parts(const struct cut *cut, const int64_t shape[2], int n)
{
    size_t elements = (size_t)(shape[0] * shape[1]), covered = 0;
    bool *taken = allocate(elements, sizeof *taken);
    for (int k = 0; k < n; k++) {
        struct part part = part_of(cut, shape, k, n);
        for (size_t i = 0; i < part.runs; i++)
            for (size_t at = part.begin; at < part.end; at++, covered++) {
                assert_false(taken[i * part.length + at]);
                taken[i * part.length + at] = true;
            }
    }
    assert_int_equal(covered, cut->split == SPLIT_NONE ? elements * (size_t)n : elements);
    free(taken);
}

TEST(parts_cover_a_parameter_once)
{
    for (int n = 1; n <= 5; n++) {
        expect_parts(&(struct cut){SPLIT_ROWS, 1, 1}, (int64_t[]){7, 4}, n);
        expect_parts(&(struct cut){SPLIT_ROWS, 3, 2}, (int64_t[]){30, 5}, n);
        expect_parts(&(struct cut){SPLIT_COLUMNS, 1, 3}, (int64_t[]){4, 15}, n);
        expect_parts(&(struct cut){SPLIT_COLUMNS, 2, 3}, (int64_t[]){4, 30}, n);
    }
    struct part v_of_the_second = part_of(&(struct cut){SPLIT_ROWS, 3, 2}, (int64_t[]){18, 5}, 1, 2);
    assert_int_equal(v_of_the_second.runs, 3);
    assert_int_equal(v_of_the_second.length, 30); /* 3 heads of 2 rows */
    assert_int_equal(v_of_the_second.begin, 10);  /* the first has one head */
    assert_int_equal(v_of_the_second.end, 30);
}

/* ---- orders ----------------------------------------------------------------------------------------------------- */

/* Forwards whose last gradients are still to come: so many tapes are kept. */
static int most_in_flight(const struct turn *turn, int n)
{
    int now = 0, most = 0;
    for (int i = 0; i < n; i++) {
        if (turn[i].computation == FORWARD)
            now++;
        else if (turn[i].computation != INPUT_GRADIENT)
            now--;
        most = MAX(most, now);
    }
    return most;
}

/* The turn has the micro-batch that is due, and after it the following one is. */
static void expect_next(const struct turn *turn, int *due)
{
    assert_int_equal(turn->micro, *due);
    ++*due;
}

/* Each stage of device p computes each micro-batch once, in ascending order; both halves of a backward come after its
 * forward, and the gradients of weights after those of inputs. */
static void expect_sound_order(const struct mesh *mesh, int p, int micros, const struct turn *a, int n)
{
    int next[COMPUTATIONS][16] = {{0}};
    for (int i = 0; i < n; i++) {
        int *of[COMPUTATIONS];
        for (enum computation k = FORWARD; k < COMPUTATIONS; k++)
            of[k] = &next[k][a[i].stage];
        assert_int_equal(pp_of(mesh, a[i].stage), p);
        if (a[i].computation == FORWARD)
            expect_next(&a[i], of[FORWARD]);
        if (a[i].computation == BACKWARD || a[i].computation == INPUT_GRADIENT)
            expect_next(&a[i], of[INPUT_GRADIENT]);
        if (a[i].computation == BACKWARD || a[i].computation == WEIGHT_GRADIENT)
            expect_next(&a[i], of[WEIGHT_GRADIENT]);
        assert_true(*of[FORWARD] >= *of[INPUT_GRADIENT]);
        assert_true(*of[INPUT_GRADIENT] >= *of[WEIGHT_GRADIENT]);
    }
    for (int stage = 0; stage < n_stages(mesh); stage++)
        if (pp_of(mesh, stage) == p) {
            assert_int_equal(next[FORWARD][stage], micros);
            assert_int_equal(next[WEIGHT_GRADIENT][stage], micros);
        }
}

TEST(orders_are_sound)
{
    for (int pp = 1; pp <= 4; pp++)
        for (int micros = pp; micros <= 12; micros += pp)
            for (enum pipeline kind = PIPELINE_1F1B; kind < PIPELINES; kind++) {
                const struct turn_order *order = &pipeline_orders[kind];
                struct mesh mesh = {
                    .dp = 1, .pp = pp, .tp = 1, .chunks = pp > 1 ? order->chunks : 1, .folded = order->folded};
                size_t n, each = 0;
                int turns;
                if (mesh.folded && micros < 2 * pp)
                    continue;
                if (kind == PIPELINE_INTERLEAVED && pp > 1)
                    mesh.chunks = 3;
                for (int p = 0; p < pp; p++) {
                    struct turn *turn = pipeline_order(order, &mesh, p, micros, &turns);
                    expect_sound_order(&mesh, p, micros, turn, turns);
                    if (kind == PIPELINE_1F1B)
                        assert_int_equal(most_in_flight(turn, turns), MIN(pp - p, micros));
                    if (kind == PIPELINE_INTERLEAVED && pp > 1)
                        assert_int_equal(most_in_flight(turn, turns), MIN(2 * (pp - p) + 2 * pp - 1, 3 * micros));
                    if (kind == PIPELINE_ZBH1 || kind == PIPELINE_ZBH2)
                        assert_int_equal(most_in_flight(turn, turns),
                                         MIN((kind == PIPELINE_ZBH2 ? 2 : 1) * (pp - 1) + 1, micros));
                    each += (size_t)turns;
                    free(turn);
                }
                free(merge_orders(order, &mesh, micros, &n)); /* ends: none waits for ever */
                assert_int_equal(n, each);
            }
}

/* ---- bubble ------------------------------------------------------------------------------------------------------ */

/* The counter for a task of a layer: it counts those of the same kind (forward, gradient of an input or of a weight),
 * device and micro-batch.  NULL: the task is none of these. */
static int *counter_of(int *counters, const struct task *task, int pp, int micros)
{
    if (task->layer < 0 || (task->role != ROLE_FORWARD && task->role != ROLE_BACKWARD))
        return NULL;
    int kind = 0;
    if (task->role == ROLE_BACKWARD)
        kind = task->access[0].tensor->class == MEM_GRADIENTS ? 2 : 1;
    return &counters[(kind * pp + task->lane->device->index) * micros + MAX(task->micro, 0)];
}

/* How long a step of a model's list takes, in which stages wait for bytes too.  A device needs a second for a
 * micro-batch's forward, one for the gradients of inputs and one for those of weights, in equal parts per task of its
 * layers; all else takes no time. */
static double step_of_list(const char *pipeline, int pp, int layers, int micros, int clip)
{
    char *words = lasting("--model tiny --layers %d --seq-len 16 --batch %d --micro-batch 1 -d 0:0x%d --mesh "
                          "pp=%d --pipeline %s --clip %d --untied",
                          layers, micros, pp, pp, pipeline, clip);
    struct trainer *trainer = new_trainer(settings_of(words), LIST_TRAIN | PLAN_ONLY);
    double *seconds = allocate(trainer->train->n, sizeof *seconds);
    int *counters = allocate((size_t)(3 * pp * micros), sizeof *counters);
    for (size_t i = 0; i < trainer->train->n; i++) {
        int *n = counter_of(counters, trainer->train->task[i], pp, micros);
        if (n)
            ++*n;
    }
    for (size_t i = 0; i < trainer->train->n; i++) {
        const int *n = counter_of(counters, trainer->train->task[i], pp, micros);
        if (n)
            seconds[i] = 1.0 / *n;
    }
    struct simulation *sim = simulate_durations(trainer->train, seconds);
    double period = sim->period;
    free_simulation(sim);
    free_trainer(trainer);
    free(seconds);
    free(counters);
    return period;
}

/* The papers' formulas, with F = B = W = 1 s (of two stages per device half of it each).  With clipping all wait for
 * the last gradient; without, zbh2 never waits, unless a tied head's last gradient has to come to the first stage. */
TEST(no_list_waits_longer)
{
    for (int pp = 2; pp <= 4; pp++) {
        const int micros = 2 * pp;
        expect_number("gpipe", step_of_list("gpipe", pp, pp, micros, 1), 3 * micros + 3 * (pp - 1));
        expect_number("1f1b", step_of_list("1f1b", pp, pp, micros, 1), 3 * micros + 3 * (pp - 1));
        expect_number("interleaved", step_of_list("interleaved", pp, 2 * pp, micros, 1), 3 * micros + 1.5 * (pp - 1));
        expect_number("zbh1", step_of_list("zbh1", pp, pp, micros, 1), 3 * micros + pp - 1);
        expect_number("zbh2", step_of_list("zbh2", pp, pp, micros, 1), 3 * micros + pp - 1);
        expect_number("zbh2, no clipping", step_of_list("zbh2", pp, pp, micros, 0), 3 * micros);
        expect_number("dualpipev", step_of_list("dualpipev", pp, 2 * pp, micros, 1), 3 * micros + 0.5 * (pp - 1));
    }
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* n tensors that persist, of which each becomes the sum of all. */
static float *reduced(int n, size_t elements)
{
    char devices[16];
    snprintf(devices, sizeof devices, "0:0x%d", n);
    struct machine *machine = open_machine(&(struct machine_options){.devices = devices});
    struct pool *pool = new_pool(machine);
    struct list *list = new_list(pool, "reduce");
    struct tensor **tensor = allocate((size_t)n, sizeof *tensor);
    float *all = allocate((size_t)n * elements, sizeof *all);
    for (int k = 0; k < n; k++) {
        tensor[k] = new_work_tensor(pool, &machine->device[k], "x", SHAPE((int64_t)elements));
        tensor[k]->persistent = true;
    }
    add_all_reduce(list, "sum", tensor, n);
    must(finish_lists(pool, &list, 1));
    for (int k = 0; k < n; k++) {
        float *values = random_floats(elements, (uint64_t)k + 1);
        write_tensor(tensor[k], values);
        free(values);
    }
    execute(list, 1);
    drain(list);
    for (int k = 0; k < n; k++)
        read_tensor(tensor[k], all + (size_t)k * elements);
    for (int i = 0; i < machine->n_lanes; i++) {
        stop_thread(&machine->lane[i]->thread);
        stop_thread(&machine->lane[i]->forwarder);
    }
    free(tensor);
    free_list_and_machine(list);
    return all;
}

TEST(sums_are_in_rank_order)
{
    static const size_t sizes[] = {1, 128, 300, 128 * 5, 4999};
    for (int apart = 0; apart < 2; apart++)
        for (int n = 1; n <= 5; n++)
            for (size_t i = 0; i < COUNT(sizes); i++) {
                contexts_apart(apart);
                float *good = reduced(n, sizes[i]), *sum = NULL;
                for (int k = 0; k < n; k++) {
                    float *x = random_floats(sizes[i], (uint64_t)k + 1);
                    if (!sum) {
                        sum = x;
                        continue;
                    }
                    for (size_t e = 0; e < sizes[i]; e++)
                        sum[e] += x[e];
                    free(x);
                }
                for (size_t k = 0; k < (size_t)n; k++)
                    expect_same_bits("all-reduce", good + k * sizes[i], sum, sizes[i]);
                free(good);
                free(sum);
            }
    contexts_apart(false);
}

/* The device of the nth task on lanes of that kind. */
static int device_of_nth(const struct list *list, enum lane_kind kind, size_t nth)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->task[i]->lane->kind != kind)
            continue;
        if (nth == 0)
            return list->task[i]->lane->device->index;
        nth--;
    }
    return -1;
}

/* The n tasks on lanes of that kind from the first one on are of n devices. */
static void expect_spread(const struct list *list, enum lane_kind kind, size_t first, size_t n)
{
    unsigned seen = 0;
    for (size_t i = 0; i < n; i++)
        seen |= 1u << device_of_nth(list, kind, first + i);
    assert_int_equal(seen, (1u << n) - 1);
}

/* With n parts on n devices all send and all receive in each turn, so none is waited for by all others. */
TEST(no_device_gets_everything_at_once)
{
    enum { N = 4 };
    struct paper paper = new_paper(N, &slow_speeds);
    struct tensor *tensor[N];
    for (int k = 0; k < N; k++)
        tensor[k] = new_bytes(&paper, &paper.machine->device[k], "x", N * 128, true);
    add_all_reduce(paper.list, "sum", tensor, N);
    for (size_t turn = 0; turn < N - 1; turn++) { /* through the host */
        expect_spread(paper.list, LANE_DOWNLOAD, turn * N, N);
        expect_spread(paper.list, LANE_UPLOAD, turn * N, N);
    }
    expect_spread(paper.list, LANE_DOWNLOAD, (N - 1) * N, N); /* sums come down once each, and go up to all others */
    for (size_t k = 0, first = (N - 1) * N; k < N; k++, first += N - 1)
        assert_int_equal(device_of_nth(paper.list, LANE_UPLOAD, first), (k + 1) % N);
    end_paper(&paper);
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static struct state train_on(const char *words)
{
    return train(settings_of(lasting("--model tiny --gemm own --data LICENSE --layers 4 --seq-len 16 %s", words)),
                 STEPS);
}

/* Each line's meshes give the bits of its first.  (Other sizes, and passes: test_grid.c.) */
static const char *const alike[][10] = {
    {"--batch 4", "--batch 4 --micro-batch 1 --serial",
     "--batch 4 -d 0:0x3 --mesh pp=3 --micro-batch 1 --pipeline gpipe",
     "--batch 4 -d 0:0x4 --mesh pp=4 --micro-batch 2 --serial",
     "--batch 4 -d 0:0x2 --mesh pp=2 --micro-batch 2 --pipeline interleaved",
     "--batch 4 -d 0:0x2 --mesh pp=2 --stages 3,1 --micro-batch 1 --recompute full",
     "--batch 4 -d 0:0x3 --mesh pp=3 --stages 1,2,1 --zero 0 --delay-seed 5 --micro-batch 2"},
    {"--batch 4 --untied", "--batch 4 --untied -d 0:0x4 --mesh pp=4 --micro-batch 2 --pipeline gpipe --zero 2"},
    {"--batch 8 --grad-groups 2 --micro-batch 4", "--batch 8 -d 0:0x2 --zero 0",
     "--batch 8 --grad-groups 2 -d 0:0x2 --mesh pp=2 --micro-batch 2", "--batch 8 -d 0:0x2 --zero 2 --serial --audit",
     "--batch 8 -d 0:0x2 --zero 3 --serial --audit",
     "--batch 8 -d 0:0x4 --mesh dp=2,pp=2 --zero 3 --micro-batch 2 --recompute full",
     "--batch 8 -d 0:0x4 --mesh pp=2,dp=2 --micro-batch 1 --zero 0 --pipeline gpipe",
     "--batch 8 -d 0:0x4 --mesh dp=2,pp=2 --micro-batch 2 --pipeline interleaved --delay-seed 7"},
    {"--batch 6 --untied --grad-groups 3 --micro-batch 1", "--batch 6 -d 0:0x3 --untied --zero 2",
     "--batch 6 -d 0:0x3 --untied --zero 3 --delay-seed 4",
     "--batch 6 -d 0:0x6 --mesh dp=3,pp=2 --untied --micro-batch 1"},
    {"--batch 4 -d 0:0x2 --mesh tp=2", "--batch 4 -d 0:0x2 --mesh tp=2 --serial --audit --micro-batch 1",
     "--batch 4 -d 0:0x4 --mesh pp=2,tp=2 --micro-batch 2 --recompute selective --delay-seed 4",
     "--batch 4 -d 0:0x4 --mesh pp=2,tp=2 --micro-batch 2 --pipeline interleaved"},
    {"--batch 6 --heads 3 --channels 48 --untied -d 0:0x2 --mesh tp=2 --grad-groups 2 --micro-batch 1",
     "--batch 6 --heads 3 --channels 48 --untied -d 0:0x4 --mesh dp=2,tp=2 --zero 0 --serial",
     "--batch 6 --heads 3 --channels 48 --untied -d 0:0x8 --mesh dp=2,pp=2,tp=2 --zero 3"},
    {"--batch 4 --heads 4 -d 0:0x3 --mesh tp=3",
     "--batch 4 --heads 4 -d 0:0x6 --mesh tp=3,pp=2 --micro-batch 2 --zero 0"},
    {"--batch 8 --grad-groups 4 --micro-batch 2", "--batch 8 -d 0:0x4 --zero 0 --micro-batch 1",
     "--batch 8 -d 0:0x4 --zero 3", "--batch 8 -d 0:0x8 --mesh dp=4,pp=2 --zero 2 --micro-batch 1"},
};

/* `make test` takes the first two of each line. */
LAW(meshes_give_the_same_bits)
{
    need_own_products();
    const struct cases some = cases_of(2, COUNT(alike[0]) - 1);
    for (size_t i = 0; i < COUNT(alike); i++) {
        if (some.begin > 0 && !alike[i][some.begin + 1])
            continue;
        struct state first = train_on(alike[i][0]);
        for (size_t k = (size_t)some.begin + 1; k <= (size_t)some.end && alike[i][k]; k++) {
            contexts_apart((i + k) % 2); /* copies are direct, or through the host */
            struct state other = train_on(alike[i][k]);
            assert_int_equal(first.n, other.n);
            expect_same_bits(alike[i][k], other.values, first.values, first.n);
            free(other.values);
        }
        free(first.values);
    }
    contexts_apart(false);
}

/* ---- evaluation and sampling ------------------------------------------------------------------------------------- */

/* Biases begin at zero, which would hide one that is added twice. */
static void init_with_biases(struct model *model)
{
    init_random(model, 1337);
    for (int i = 0; i < model->params->n; i++) {
        const struct param *param = &model->params->param[i];
        float *values = random_floats((size_t)(param->shape[0] * param->shape[1]), (uint64_t)i);
        if (param->init == INIT_ZERO)
            write_param(model, i, KEPT_VALUE, values);
        free(values);
    }
}

/* The validation loss, and the logits of a sampled token. */
static double look(const char *words, float *logits, int vocab)
{
    struct trainer *trainer = new_trainer(settings_of(words), LIST_EVAL | LIST_SAMPLE | OPEN_DATA);
    assert_int_equal(trainer->config.vocab, vocab);
    init_with_biases(trainer->model);
    double loss = evaluate(trainer, 2, NULL, NULL);
    for (int i = 0; i < trainer->seq; i++)
        trainer->sample_tokens[i] = i;
    trainer->sample_position = 5;
    execute(trainer->sample, 1);
    drain(trainer->sample);
    memcpy(logits, tensor_memory(trainer->sample_logits), (size_t)vocab * sizeof *logits);
    free_trainer(trainer);
    return loss;
}

TEST(evaluation_and_sampling_are_close)
{
    enum { VOCAB = 256 };
    float one[VOCAB], many[VOCAB];
    double loss = look("--model tiny --heads 4 --untied", one, VOCAB);
    static const char *const meshes[] = {"-d 0:0x2 --zero 3", "-d 0:0x3 --mesh tp=3", "-d 0:0x8 --mesh dp=2,pp=2,tp=2",
                                         "-d 0:0x8 --mesh dp=2,pp=2,tp=2 --zero 3"};
    for (size_t i = 0; i < COUNT(meshes); i++) {
        char *words = lasting("--model tiny --heads 4 --untied %s", meshes[i]);
        assert_true(fabs(look(words, many, VOCAB) - loss) < 1e-5);
        expect_close(meshes[i], many, one, VOCAB, 1e-5);
    }
}

/* Block sums are added up by unit, tensor-parallel rank and shard: in the same order for every dp.  (Another one shows
 * in the bits, but with few data.) */
TEST(the_norm_has_one_order)
{
    struct trainer *trainer =
        new_trainer(settings_of("--model tiny -d 0:0x8 --mesh dp=2,pp=2,tp=2"), LIST_TRAIN | OPEN_DATA | PLAN_ONLY);
    int layer = -2;
    int last = 0;
    int seen = 0;
    for (size_t i = 0; i < trainer->train->n; i++) {
        const struct task *task = trainer->train->task[i];
        int rank = task->lane->device->index,
            at = tp_of(&trainer->mesh, rank) * trainer->mesh.dp + dp_of(&trainer->mesh, rank);
        if (strcmp(task->name, "norm.blocks") != 0)
            continue;
        assert_true(task->layer != layer || at > last);
        layer = task->layer;
        last = at;
        seen++;
    }
    assert_int_equal(seen, 2 * 4 + 3 + 1); /* two layers; the embedding, whose positions count once; the final norm */
    free_trainer(trainer);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Bytes of a class on a device, all tensors that persist. */
static size_t persistent_bytes(const struct trainer *trainer, int device, enum memory_class class)
{
    size_t bytes = 0;
    for (size_t i = 0; i < trainer->pool->n; i++) {
        const struct tensor *tensor = trainer->pool->tensors[i];
        if (tensor->storage == tensor && tensor->persistent && tensor->class == class &&
            tensor->device->index == device)
            bytes += tensor->bytes;
    }
    return bytes;
}

/* Bytes of the parameters of so many units that are used one after another, at most. */
static double bytes_of_units(const struct trainer *trainer, int together)
{
    double most = 0;
    int n = trainer->model->params->n_units;
    for (int u = 0; u < n; u++) {
        double sum = 0;
        for (int i = u; i < MIN(u + together, n); i++)
            sum += (double)trainer->model->params->unit[i].elements * ELEMENT_BYTES;
        most = fmax(most, sum);
    }
    return most;
}

/* State per device in bytes per parameter: 4 of values, 4 of gradients, 8 of Adam's.  ZeRO-1 shares out the
 * last, 2 the gradients too, 3 all.  The padding of units, and shards in whole norm blocks, make a little more.
 * What is received of two layers' gradients is counted as buffers; with ZeRO-2 their whole gradients too, with 3
 * the parameters of two. */
TEST(zero_shares_the_state_out)
{
    static const struct {
        double values, gradients, adams; /* whole, or shared out: 1 or 1 / N of 4, 4 and 8 bytes */
    } expected[] = {{1, 1, 1}, {1, 1, 0}, {1, 0, 0}, {0, 0, 0}};
    for (int devices = 2; devices <= 4; devices += 2)
        for (int zero = 0; zero <= 3; zero++) {
            char words[128];
            snprintf(words, sizeof words, "--model nano --layers 16 --untied --batch 4 -d 0:0x%d --zero %d", devices,
                     zero);
            struct trainer *trainer = new_trainer(settings_of(words), LIST_TRAIN | PLAN_ONLY);
            double n = (double)count_parameters(trainer->model->params), share = 1.0 / devices;
            double adams = 8 * fmax(expected[zero].adams, share), values = 4 * fmax(expected[zero].values, share);
            for (int d = 0; d < devices; d++) {
                double held = (double)persistent_bytes(trainer, d, MEM_OPTIMIZER) / n;
                assert_true(fabs(held - adams) < 0.08 * adams);
                held = (double)persistent_bytes(trainer, d, MEM_PARAMETERS) / n;
                assert_true(fabs(held - values) < 0.08 * values);
                assert_int_equal(persistent_bytes(trainer, d, MEM_GRADIENTS) > 0, expected[zero].gradients > 0);
                const size_t *peak = trainer->train->peak[d];
                assert_int_equal(peak[MEM_PARAMETERS], persistent_bytes(trainer, d, MEM_PARAMETERS));
                double gradients = 4 * fmax(expected[zero].gradients, share), buffers = (double)peak[MEM_BUFFERS];
                assert_true(fabs((double)peak[MEM_GRADIENTS] / n - gradients) < 0.08 * gradients);
                assert_true(buffers > 0 && buffers <= bytes_of_units(trainer, zero < 2 ? 2 : 2 * zero));
            }
            free_trainer(trainer);
        }
}

/* plan --memory beside the formula: of gpt2 padding and shards of whole blocks are less than 0.3 %.  `bytes` are those
 * per parameter of its classes; whole, ZeRO shares them out one after another, the last one first. */
static void expect_formula(const json_t *rows, int ranks, int dp, const double bytes[3])
{
    static const char *const key[] = {"parameters_mib", "gradients_mib", "optimizer_mib"};
    const double n = 124439808.0 / (1 << 20);
    double all[4] = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        double formula = number_at(row, "formula_mib"), ours = 0;
        int zero = atoi(text_at(row, "zero"));
        for (int k = 0; k < 3; k++) {
            double share = zero >= 3 - k ? 1.0 / dp : 1, mib = number_at(row, key[k]);
            if (ranks == dp && formula > 0)
                assert_true(fabs(mib - n * bytes[k] * share) < 0.003 * n * bytes[k] * share);
            ours += mib;
        }
        if (strcmp(text_at(row, "recompute"), "off") == 0)
            all[zero] += formula;
        assert_true(fabs(ours - formula) <= 0.01 * formula);
    }
    for (int zero = 0; zero < 4; zero++) {
        double per = 0; /* bytes per parameter, of all ranks */
        for (int k = 0; k < 3; k++)
            per += bytes[k] * (zero >= 3 - k ? 1 : dp);
        assert_true(fabs(all[zero] - n * per) < 1e-6 * n * per);
    }
}

TEST(memory_beside_its_formula)
{
    static const char *const words = "plan --model gpt2 --batch 8 --hardware data/hardware/server.txt --memory --json";
    static const char *const key[] = {"parameters_mib", "gradients_mib",   "optimizer_mib",
                                      "buffers_mib",    "activations_mib", "work_mib"};
    json_t *run = yard_json("%s --mesh dp=4", words), *mixed = yard_json("%s --mesh dp=4 --what-if mixed", words);
    expect_formula(json_at(run, "strategies"), 4, 4, (double[]){4, 4, 8});
    expect_formula(json_at(mixed, "strategies"), 4, 4, (double[]){2, 2, 12});
    expect_formula(json_at(yard_json("%s --mesh dp=2,pp=2", words), "strategies"), 4, 2, (double[]){4, 4, 8});
    for (size_t i = 0; i < json_array_size(json_at(run, "strategies")); i++) {
        const json_t *a = json_array_get(json_at(run, "strategies"), i);
        const json_t *b = json_array_get(json_at(mixed, "strategies"), i);
        assert_true(fabs(number_at(b, "activations_mib") - number_at(a, "activations_mib") / 2) < 1e-6);
        assert_true(fabs(number_at(b, "buffers_mib") - number_at(a, "buffers_mib") / 2) < 1e-6);
        assert_true(number_at(b, "work_mib") == number_at(a, "work_mib"));
        double sum = 0;
        for (size_t k = 0; k < COUNT(key); k++)
            sum += number_at(b, key[k]);
        assert_true(number_at(b, "together_mib") <= sum + 1e-6);
    }
    expect_yard(EXIT_OK, "counted, it cannot be run here", "plan --model tiny -d 0:0 --memory --what-if mixed");
    expect_yard(EXIT_USAGE, "expected the word mixed", "plan --model tiny -d 0:0 --memory --what-if link=2x");
    expect_yard(EXIT_USAGE, "add --simulate", "plan --model tiny -d 0:0 --what-if mixed");
}

/* The words are those of the data, and all lists are placed: also one that samples keeps something on the host. */
TEST(memory_needed_is_enough)
{
    static const char *const words =
        "plan --model tiny --data LICENSE --tokens chars --hardware data/hardware/server.txt";
    for (int dp = 1; dp <= 2; dp++) {
        char *run = lasting("%s --mesh dp=%d,pp=2 --micro-batch 1 --recompute full", words, dp);
        const json_t *rows = json_at(yard_json("%s --memory --json", run), "strategies");
        double device = 0, host = 0;
        for (size_t i = 0; i < json_array_size(rows); i++) {
            const json_t *row = json_array_get(rows, i);
            double *most = strcmp(text_at(row, "device"), "host") == 0 ? &host : &device;
            if (strcmp(text_at(row, "recompute"), "full") == 0 && strchr("-1", *text_at(row, "zero")))
                *most = fmax(*most, number_at(row, "needs_bytes"));
        }
        expect_yard(EXIT_OK, "", "%s --device-mem %.0f --host-mem %.0f", run, device, host);
        expect_yard(EXIT_USAGE, "1 B more", "%s --device-mem %.0f --host-mem %.0f", run, device - 1, host);
        expect_yard(EXIT_USAGE, "1 B more", "%s --device-mem %.0f --host-mem %.0f", run, device, host - 1);
        rows = json_at(yard_json("%s --memory --json --device-mem %.0f --host-mem %.0f", run, device, host - 1),
                       "strategies");
        for (size_t i = 0; i < json_array_size(rows); i++) {
            const json_t *row = json_array_get(rows, i);
            double budget = strcmp(text_at(row, "device"), "host") == 0 ? host - 1 : device;
            assert_string_equal(text_at(row, "fits"), number_at(row, "needs_bytes") <= budget ? "yes" : "no");
        }
    }
}

/* They have gradients of their own, and the parameters of their rank: also a tied head's after the first stage. */
TEST(groups_share_their_parameters)
{
    size_t bytes[2];
    for (int groups = 1; groups <= 2; groups++) {
        char words[96];
        snprintf(words, sizeof words, "--model tiny --micro-batch 1 -d 0:0x2 --mesh pp=2 --grad-groups %d", groups);
        struct trainer *trainer = new_trainer(settings_of(words), LIST_TRAIN | PLAN_ONLY);
        bytes[groups - 1] = persistent_bytes(trainer, 0, MEM_PARAMETERS) + persistent_bytes(trainer, 1, MEM_PARAMETERS);
        free_trainer(trainer);
    }
    assert_int_equal(bytes[0], bytes[1]);
}

/* ---- ZeRO-3 ------------------------------------------------------------------------------------------------------ */

/* Gathers come one window ahead: between the copies that fill a tensor and its first reader, another gathered one is
 * read first. */
TEST(layers_are_gathered_ahead)
{
    struct trainer *trainer =
        new_trainer(settings_of("--model nano --layers 8 --batch 4 -d 0:0x2 --zero 3"), LIST_TRAIN | PLAN_ONLY);
    size_t most = 0;
    for (size_t at = 0; at < trainer->train->n; at++) {
        size_t n = 0;
        for (size_t i = 0; i < trainer->pool->n; i++) {
            const struct tensor *tensor = trainer->pool->tensors[i];
            n += tensor->storage == tensor && !tensor->persistent && tensor->class == MEM_PARAMETERS && tensor->list &&
                 tensor->device->index == 0 && tensor->held_from <= (int)at && (int)at <= tensor->held_until;
        }
        most = MAX(most, n);
    }
    free_trainer(trainer);
    assert_int_equal(most, 2);
}

/* Each micro-batch has windows of its own, of the same parameters, and gets no more than it reads. */
TEST(what_is_gathered_is_read)
{
    struct trainer *trainer =
        new_trainer(settings_of("--model tiny --batch 8 -d 0:0x2 --zero 3 --micro-batch 1"), LIST_TRAIN | PLAN_ONLY);
    size_t gathers = 0;
    for (size_t i = 0; i < trainer->train->n; i++) {
        const struct task *gather = trainer->train->task[i];
        bool read = false;
        if (strcmp(gather->name, "gather") != 0)
            continue;
        for (size_t k = i + 1; k < trainer->train->n && !read; k++)
            read = touches_bytes(trainer->train->task[k], gather->access[0].tensor, ACCESS_READ);
        if (!read)
            test_failed("task %zu gathers %s, and nobody reads it\n", i, gather->access[0].tensor->storage->name);
        gathers++;
    }
    assert_true(gathers > 0);
    free_trainer(trainer);
}

/* Two gathers of as many bytes change their sources: the proof must find it. */
TEST(a_wrong_shard_is_found)
{
    contexts_joined(); /* so that a gather copies from a shard itself */
    struct trainer *trainer =
        new_trainer(settings_of("--model tiny --batch 4 -d 0:0x2 --zero 3"), LIST_TRAIN | PLAN_ONLY);
    expect_sound("the list", trainer->train, values_of(trainer, trainer->train));
    size_t found = 0;
    for (size_t i = 0; i < trainer->train->n; i++)
        for (size_t k = i + 1; k < trainer->train->n && k < i + 12; k++) {
            struct task *a = trainer->train->task[i], *b = trainer->train->task[k];
            if (strcmp(a->name, "gather") != 0 || strcmp(b->name, "gather") != 0)
                continue;
            struct tensor *own = a->access[1].tensor, *other = b->access[1].tensor;
            if (own->bytes != other->bytes || own->storage == other->storage)
                continue;
            a->access[1].tensor = other;
            b->access[1].tensor = own;
            expect_wrong("another shard", compare_values(values_of(trainer, trainer->train), trainer->train),
                         "reads other values");
            a->access[1].tensor = own;
            b->access[1].tensor = other;
            found++;
        }
    assert_true(found > 3);
    free_trainer(trainer);
    contexts_apart(false);
}

/* No broadcast is left, no replica persists, and what the update writes are shards. */
TEST(only_shards_are_kept)
{
    for (int apart = 0; apart < 2; apart++) {
        contexts_apart(apart);
        struct trainer *trainer = new_trainer(settings_of("--model tiny --batch 4 -d 0:0x4 --mesh dp=2,pp=2 --zero 3"),
                                              ALL_LISTS | OPEN_DATA | PLAN_ONLY);
        size_t updates = 0;
        for (size_t i = 0; i < trainer->train->n; i++) {
            const struct task *task = trainer->train->task[i];
            assert_true(task->role != ROLE_BROADCAST);
            updates += task->role == ROLE_UPDATE;
            assert_true(task->role != ROLE_UPDATE || task->access[0].tensor->storage->replica.is_shard);
        }
        assert_true(updates >= 7); /* 4 units in 2 shards, of which a small one is empty */
        for (size_t i = 0; i < trainer->pool->n; i++) {
            const struct tensor *tensor = trainer->pool->tensors[i];
            assert_true(tensor->storage->replica.is_shard || !tensor->persistent || tensor->class != MEM_PARAMETERS);
        }
        char *wrong = verify(trainer->eval, values_of(trainer, trainer->eval));
        assert_null(wrong);
        wrong = verify(trainer->sample, values_of(trainer, trainer->sample));
        assert_null(wrong);
        free_trainer(trainer);
    }
    contexts_apart(false);
}

/* Work space of CLBlast at gpt2's sizes, as it says of the device here (tutorials/reference-numbers.md), and as it is
 * taken to be of a GPU that does not exist: the sizes are whole tiles of any usual size, so it is the same. */
static size_t work_of(const struct task *task)
{
    const struct tensor *last = task->access[task->n_access - 1].tensor;
    return strcmp(last->name, "clblast.work") == 0 ? last->bytes : 0;
}

TEST(work_space)
{
    static const struct {
        const char *product;
        double mebibytes;
    } known[] = {{"attn.qkv", 18.75}, {"attn.proj", 14.25}, {"mlp.fc", 21},    {"mlp.proj", 57},
                 {"attn.qkv.dx", 36}, {"attn.proj.dx", 12}, {"mlp.fc.dx", 48}, {"mlp.proj.dx", 12},
                 {"attn.qkv.dw", 0},  {"attn.proj.dw", 0},  {"mlp.fc.dw", 0},  {"mlp.proj.dw", 0},
                 {"head", 159.375},   {"head.dx", 786},     {"head.dw", 0},    {"attn.scores", 0},
                 {"attn.mix", 0},     {"attn.datt", 0},     {"attn.dv", 0},    {"attn.dk", 0}};
    struct settings *settings = settings_of("--gemm clblast --model gpt2 --layers 1 --batch 4 --seq-len 1024");
    settings->data.path = NULL;
    settings->vocab = 50257;
    struct trainer *here = new_trainer(settings, LIST_TRAIN | PLAN_ONLY);
    predict_options.hardware = "data/hardware/server.txt";
    struct trainer *paper = new_trainer(settings, LIST_TRAIN | PLAN_ONLY);
    size_t seen = 0;
    assert_int_equal(here->train->n, paper->train->n);
    for (size_t i = 0; i < here->train->n; i++) {
        const struct task *task = here->train->task[i], *same = paper->train->task[i];
        assert_string_equal(task->name, same->name);
        for (size_t k = 0; k < COUNT(known); k++)
            if (strcmp(task->name, known[k].product) == 0) {
                seen++;
                if (work_of(task) != known[k].mebibytes * 1048576 || work_of(same) != work_of(task))
                    test_failed("%s: CLBlast takes %zu bytes, estimated %zu\n", task->name, work_of(task),
                                work_of(same));
            }
    }
    assert_int_equal(seen, COUNT(known));
    free_trainer(here);
    free_trainer(paper);
}
