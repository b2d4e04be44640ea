/* test_grid.c - training on meshes of all sizes, against one device.
 *
 * A grid of dp, pp and tp from 1 to 4, with ZeRO 0 to 3, orders of the pipeline, micro-batches, passes and ways that
 * bytes travel dealt over it, for a model whose heads and layers divide evenly and, with flash attention, for one where
 * they do not.  Of each mesh: the list proves right; replicas are equal to the bit after every step; what was painted
 * over before is overwritten up to the last predicted byte on every device, and no further; and the state is, to the
 * bit, that of tp devices which sum the gradient in dp groups.  That is one device where tp is 1.  For the others,
 * gradients of step 1 are within 1e-5 of one device's and losses within 1e-4.
 *
 * `make test` takes a small part of the grid and few steps.  All of it, with a line for each mesh:
 *
 *     YARD_GRID=16 build/tests/test_grid      up to so many devices in a mesh
 */
#include "tests/support/support.h"

#include <math.h>

enum { BATCH = 12, MANY_STEPS = 20, SIZES = 4 };

static const char *const models[] = {"--layers 4 --heads 4 --channels 32",
                                     "--layers 5 --heads 5 --channels 40 --untied --attention flash"};

struct cell { /* one cell of the grid: a mesh, and the options that it trains with */
    int model, dp, pp, tp, zero, micro;
    bool apart;
    char words[400];
};
struct course { /* what a training gave */
    double loss[MANY_STEPS];
    float *moments; /* Adam's m after step 1: the gradient, times a constant */
    struct state state;
    size_t n;
};

static int most_devices, steps;

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* On each device, of its topmost slab: bytes in use from the start, those that persist, and where the tensor begins
 * that ends highest. */
struct heights {
    size_t used, kept, top;
};

static struct heights find_heights(const struct trainer *t, int device, int slab)
{
    struct heights h = {0};
    for (size_t i = 0; i < t->pool->n; i++) {
        const struct tensor *x = t->pool->tensors[i];
        size_t end = x->address + x->bytes;
        if (x->storage != x || x->device->index != device || x->slab != slab)
            continue;
        if (x->persistent)
            h.kept = MAX(h.kept, end);
        if (end > h.used) {
            h.used = end;
            h.top = x->address;
        }
    }
    return h;
}

enum { PAINT = 0xC5 };

static unsigned char *read_slab(struct device *d, const struct slab *slab)
{
    unsigned char *bytes = allocate(slab->bytes, 1);
    if (slab->host)
        return memcpy(bytes, slab->host, slab->bytes);
    CL(clEnqueueReadBuffer(d->lane[LANE_DOWNLOAD]->queue, slab->buffer, CL_TRUE, 0, slab->bytes, bytes, 0, NULL, NULL));
    return bytes;
}

/* All bytes above those that persist. */
static void paint(struct trainer *t)
{
    for (int i = 0; i <= t->machine->n_devices; i++)
        for (size_t k = 0; k < t->machine->device[i].n_slabs; k++) {
            struct device *d = &t->machine->device[i];
            const struct slab *slab = &d->slabs[k];
            struct heights h = find_heights(t, i, (int)k);
            unsigned char *bytes = memset(allocate(slab->bytes, 1), PAINT, slab->bytes);
            if (slab->host)
                memset((char *)slab->host + h.kept, PAINT, slab->bytes - h.kept);
            else if (h.kept < slab->bytes)
                CL(clEnqueueWriteBuffer(d->lane[LANE_UPLOAD]->queue, slab->buffer, CL_TRUE, h.kept,
                                        slab->bytes - h.kept, bytes, 0, NULL, NULL));
            free(bytes);
        }
}

/* The tensor that was predicted to end highest was written; the guard after the slab was not.  Returns the bytes of
 * all devices. */
static size_t check_memory(struct trainer *t, const char *words)
{
    size_t sum = 0;
    for (int i = 0; i <= t->machine->n_devices; i++) {
        struct device *d = &t->machine->device[i];
        assert_int_equal(damaged_guards(d), 0);
        for (size_t k = 0; k < d->n_slabs; k++) {
            struct heights h = find_heights(t, i, (int)k);
            unsigned char *bytes = read_slab(d, &d->slabs[k]);
            size_t high = d->slabs[k].bytes;
            while (high > h.kept && bytes[high - 1] == PAINT)
                high--;
            if (high > h.used || (h.used > h.kept && high <= h.top) ||
                d->slabs[k].bytes != round_up(h.used, d->alignment))
                test_failed("%s: %s was written up to byte %zu of slab %zu, predicted are %zu, the last tensor from "
                            "%zu on\n",
                            words, d->id, high, k, h.used, h.top);
            sum += d->slabs[k].bytes;
            free(bytes);
        }
    }
    return sum;
}

/* ---- one training ------------------------------------------------------------------------------------------------ */

static float *read_moments(struct model *m, size_t *n)
{
    *n = count_parameters(m->params);
    float *all = allocate(*n, sizeof *all), *at = all;
    for (int i = 0; i < m->params->n; i++) {
        read_param(m, i, KEPT_M, at);
        at += param_elements(&m->params->param[i]);
    }
    return all;
}

/* A text of 255 characters: the head then has padding, as a whole and of two ranks the second one's part. */
static const char *letters(void)
{
    FILE *file = fopen(temp_path("letters"), "w");
    for (int i = 0; i < 4000; i++) {
        unsigned c = 0x400 + (i < 255 ? (unsigned)i : random_words(1, STREAM_TEST, 4, (uint64_t)i).word[0] % 255);
        fputc((int)(0xc0 | c >> 6), file);
        fputc((int)(0x80 | (c & 0x3f)), file);
    }
    assert_int_equal(fclose(file), 0);
    return temp_path("letters");
}

static struct course train_cell(const char *words, bool apart, size_t *bytes)
{
    char *all =
        lasting("--model tiny --gemm own --data %s --tokens chars --seq-len 16 --batch %d %s", letters(), BATCH, words);
    contexts_apart(apart);
    struct trainer *t = new_trainer(settings_of(all), LIST_TRAIN | OPEN_DATA);
    struct course c = {.n = 0};
    paint(t);
    init_random(t->model, 1337);
    expect_sound(words, t->train, values_of(t, t->train));
    for (int i = 0; i < steps; i++) {
        run_step(t, (uint32_t)i + 1);
        c.loss[i] = step_result(t, (uint32_t)i + 1)->loss;
        drain(t->train);
        expect_equal_replicas(t, words);
        if (i == 0)
            c.moments = read_moments(t->model, &c.n);
    }
    *bytes = check_memory(t, words);
    c.state = read_whole_state(t);
    free_trainer(t);
    contexts_apart(false);
    return c;
}

static void free_course(struct course *c)
{
    free(c->moments);
    free(c->state.values);
}

/* ---- what it is held against ------------------------------------------------------------------------------------- */

static double farthest_loss(const struct course *a, const struct course *b)
{
    double most = 0;
    for (int i = 0; i < steps; i++)
        most = fmax(most, isfinite(a->loss[i]) ? fabs(a->loss[i] - b->loss[i]) : INFINITY);
    return most;
}

static struct course known[COUNT(models) * SIZES * SIZES];

/* tp devices that sum the gradient in dp groups; those are close to one that does. */
static const struct course *reference(int model, int dp, int tp)
{
    struct course *c = &known[(model * SIZES + dp - 1) * SIZES + tp - 1];
    size_t bytes;
    if (c->n)
        return c;
    char *words =
        lasting("%s -d 0:0x%d --mesh tp=%d --grad-groups %d --micro-batch %d", models[model], tp, tp, dp, BATCH / dp);
    *c = train_cell(words, false, &bytes);
    const struct course *one = tp > 1 ? reference(model, dp, 1) : c;
    double gradient = relative_distance(c->moments, one->moments, c->n), loss = farthest_loss(c, one);
    if (!(gradient < 1e-5) || !(loss < 1e-4))
        test_failed("%s: gradients differ by %g, losses by %g\n", words, gradient, loss);
    if (tp > 1 && most_devices)
        printf("%-75s gradients within %.1e, losses within %.1e of one device\n", words, gradient, loss);
    return c;
}

/* ---- the grid ---------------------------------------------------------------------------------------------------- */

/* What else there is to choose is dealt out by the coordinates, so that each size meets each choice. */
static struct cell cell_at(int dp, int pp, int tp, bool apart)
{
    static const char *const others[] = {"", " --recompute full", " --delay-seed 3", " --recompute selective",
                                         " --overlap all-cpu --recompute selective --swap layer --broadcast-queues 2"};
    int turn = dp + pp + 2 * tp + 2 * apart;
    int share = BATCH / dp;
    int micro = turn % 3 + 1;
    struct cell c = {.model = (pp + tp + apart) % 2, .dp = dp, .pp = pp, .tp = tp, .zero = turn % 4, .apart = apart};
    while (share % micro)
        micro--;
    enum pipeline order = (enum pipeline)((dp + 2 * tp + pp + apart) % PIPELINES);
    bool fits = order == PIPELINE_INTERLEAVED ? share / micro % pp == 0 : share / micro >= 2 * pp;
    /* Two stages a device want pp=2 with 4 layers. */
    if (pipeline_orders[order].chunks > 1 && (pp != 2 || !fits))
        order = order == PIPELINE_INTERLEAVED ? PIPELINE_ZBH1 : PIPELINE_ZBH2;
    c.micro = turn % 5 == 0 && pp == 1 ? share : micro;
    snprintf(c.words, sizeof c.words,
             "%s -d 0:0x%d --mesh dp=%d,pp=%d,tp=%d --zero %d --micro-batch %d --pipeline %s%s", models[c.model],
             dp * pp * tp, dp, pp, tp, c.zero, c.micro, pipeline_name[order],
             others[(dp + 2 * pp + tp) % (int)COUNT(others)]);
    return c;
}

static void expect_cell(const struct cell *cell)
{
    size_t bytes;
    struct course c = train_cell(cell->words, cell->apart, &bytes);
    const struct course *expected = reference(cell->model, cell->dp, cell->tp);
    assert_int_equal(c.state.n, expected->state.n);
    expect_same_bits(cell->words, c.moments, expected->moments, c.n);
    expect_same_bits(cell->words, c.state.values, expected->state.values, c.state.n);
    double loss = farthest_loss(&c, expected);
    if (!(loss < 1e-5)) /* sums of floats in another order */
        test_failed("%s: losses differ by %g\n", cell->words, loss);
    if (most_devices)
        printf("%s %s: same bits, %zu KiB on all devices\n", cell->words, cell->apart ? "staged" : "direct",
               bytes >> 10);
    fflush(stdout);
    free_course(&c);
}

/* All cells are wanted, or those of a part with few devices.  The part has each size of each axis, each stage of ZeRO
 * and both ways of travelling. */
static bool is_wanted(int dp, int pp, int tp, bool apart)
{
    int n = dp * pp * tp;
    return most_devices ? n <= most_devices : n <= 8 && n > 1 && (dp + 2 * pp + 3 * tp + apart) % 5 == 0;
}

/* CLBlast's work space is among the bytes, of products that are large enough to have any. */
LONG_TEST(memory_is_known_with_clblast)
{
    size_t bytes;
    steps = 1;
    struct course c = train_cell("--gemm clblast --layers 1 --heads 8 --channels 512 --seq-len 256", false, &bytes);
    free_course(&c);
}

TEST(meshes_train_like_one_device)
{
    const char *grid = getenv("YARD_GRID");
    int seen = 0;
    most_devices = grid ? atoi(grid) : 0;
    steps = most_devices ? MANY_STEPS : 3;
    need_own_products();
    for (int apart = 0; apart < 2; apart++)
        for (int n = 0; n < SIZES * SIZES * SIZES; n++) {
            int dp = n / SIZES / SIZES + 1;
            int pp = n / SIZES % SIZES + 1;
            int tp = n % SIZES + 1;
            struct cell c = cell_at(dp, pp, tp, apart);
            if (is_wanted(dp, pp, tp, apart)) {
                expect_cell(&c);
                seen++;
            }
        }
    for (size_t i = 0; i < COUNT(known); i++)
        free_course(&known[i]);
    printf("%d meshes seen\n", seen);
    assert_true(seen >= 8);
}
