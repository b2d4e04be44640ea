/* test_grid.c - training on meshes of all sizes, compared with one device.
 *
 * The grid has dp, pp and tp from 1 to 4.  ZeRO 0 to 3, orders of the pipeline, micro-batches, passes, and ways that
 * bytes travel are spread over it.  It has two models.  The heads and layers of the first divide evenly; those of the
 * second do not, and it uses flash attention.
 *
 * This test checks for each mesh that the list proves right; that replicas are equal to the bit after every step; that
 * each device uses its memory up to the last predicted byte, and no further (the test paints it before); and that the
 * state has the bits of tp devices which sum the gradient in dp groups.  Where tp is 1, that is one device.  Where it
 * is not, gradients of step 1 must be within 1e-5 of one device's, and losses within 1e-4.
 *
 * To see it fail: in collective.c, keep a slice at the turn in which it comes: [k * n + turn] in add_reduce_moves().
 *
 * `make test` takes a small part of the grid and few steps.  This command takes all of it, and prints a line for each
 * mesh:
 *
 *     YARD_GRID=16 build/tests/test_grid      meshes of up to 16 devices
 */
#include "tests/support/support.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_training.h"

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

struct heights { /* offsets in a slab */
    size_t used; /* where its highest tensor ends */
    size_t kept; /* where the highest of those ends that persist */
    size_t top;  /* where its highest tensor begins */
};

static struct heights find_heights(const struct trainer *trainer, int device, int slab)
{
    struct heights heights = {0};
    for (size_t i = 0; i < trainer->pool->n; i++) {
        const struct tensor *tensor = trainer->pool->tensors[i];
        size_t end = tensor->address + tensor->bytes;
        if (tensor->storage != tensor || tensor->device->index != device || tensor->slab != slab)
            continue;
        if (tensor->persistent)
            heights.kept = MAX(heights.kept, end);
        if (end > heights.used) {
            heights.used = end;
            heights.top = tensor->address;
        }
    }
    return heights;
}

enum { PAINT = 0xC5 };

static unsigned char *read_slab(struct device *device, const struct slab *slab)
{
    unsigned char *bytes = allocate(slab->bytes, 1);
    if (slab->host)
        return memcpy(bytes, slab->host, slab->bytes);
    read_buffer(device, slab->buffer, 0, bytes, slab->bytes);
    return bytes;
}

/* All bytes above those that persist. */
static void paint(struct trainer *trainer)
{
    for (int i = 0; i <= trainer->machine->n_devices; i++)
        for (size_t k = 0; k < trainer->machine->devices[i].n_slabs; k++) {
            struct device *device = &trainer->machine->devices[i];
            const struct slab *slab = &device->slabs[k];
            struct heights heights = find_heights(trainer, i, (int)k);
            unsigned char *bytes = memset(allocate(slab->bytes, 1), PAINT, slab->bytes);
            if (slab->host)
                memset((char *)slab->host + heights.kept, PAINT, slab->bytes - heights.kept);
            else if (heights.kept < slab->bytes)
                CL(clEnqueueWriteBuffer(device->lanes[LANE_UPLOAD]->queue, slab->buffer, CL_TRUE, heights.kept,
                                        slab->bytes - heights.kept, bytes, 0, NULL, NULL));
            free(bytes);
        }
}

/* The tensor that was predicted to end highest was written; the guard after the slab was not.  Returns the bytes of
 * all devices. */
static size_t check_memory(struct trainer *trainer, const char *words)
{
    size_t sum = 0;
    for (int i = 0; i <= trainer->machine->n_devices; i++) {
        struct device *device = &trainer->machine->devices[i];
        assert_int_equal(damaged_guards(device), 0);
        for (size_t k = 0; k < device->n_slabs; k++) {
            struct heights heights = find_heights(trainer, i, (int)k);
            unsigned char *bytes = read_slab(device, &device->slabs[k]);
            size_t high = device->slabs[k].bytes;
            while (high > heights.kept && bytes[high - 1] == PAINT)
                high--;
            bool top_was_written = heights.used <= heights.kept || high > heights.top;
            bool is_as_predicted = device->slabs[k].bytes == round_up(heights.used, device->alignment);
            if (high > heights.used || !top_was_written || !is_as_predicted)
                test_failed("%s: %s was written up to byte %zu of slab %zu, predicted are %zu, the last tensor from "
                            "%zu on\n",
                            words, device->id, high, k, heights.used, heights.top);
            sum += device->slabs[k].bytes;
            free(bytes);
        }
    }
    return sum;
}

/* ---- one training ------------------------------------------------------------------------------------------------ */

static float *read_moments(struct model *model, size_t *n)
{
    *n = count_parameters(model->params);
    float *all = allocate(*n, sizeof *all), *at = all;
    for (int i = 0; i < model->params->n; i++) {
        read_param(model, i, KEPT_M, at);
        at += param_elements(&model->params->items[i]);
    }
    return all;
}

/* A text of 255 characters: the head then has padding, as a whole and of two ranks the second one's part. */
static const char *letters(void)
{
    FILE *file = fopen(temp_path("letters"), "w");
    for (int i = 0; i < 4000; i++) {
        unsigned letter = 0x400 + (i < 255 ? (unsigned)i : random_words(1, STREAM_TEST, 4, (uint64_t)i).word[0] % 255);
        fputc((int)(0xc0 | letter >> 6), file);
        fputc((int)(0x80 | (letter & 0x3f)), file);
    }
    assert_int_equal(fclose(file), 0);
    return temp_path("letters");
}

static struct course train_cell(const char *words, bool apart, size_t *bytes)
{
    char *all =
        lasting("--model tiny --gemm own --data %s --tokens chars --seq-len 16 --batch %d %s", letters(), BATCH, words);
    contexts_apart(apart);
    struct trainer *trainer = new_trainer(parse_words(all), LIST_TRAIN | OPEN_DATA);
    struct course course = {.n = 0};
    paint(trainer);
    init_random(trainer->model, 1337);
    expect_sound(words, trainer->train_list, values_of(trainer, trainer->train_list));
    for (int i = 0; i < steps; i++) {
        issue_step(trainer, (uint32_t)i + 1);
        course.loss[i] = step_result(trainer, (uint32_t)i + 1)->loss;
        drain(trainer->train_list);
        expect_equal_replicas(trainer, words);
        if (i == 0)
            course.moments = read_moments(trainer->model, &course.n);
    }
    *bytes = check_memory(trainer, words);
    course.state = read_whole_state(trainer);
    free_trainer(trainer);
    restore_contexts();
    return course;
}

static void free_course(struct course *course)
{
    free(course->moments);
    free(course->state.values);
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
    struct course *course = &known[(model * SIZES + dp - 1) * SIZES + tp - 1];
    size_t bytes;
    if (course->n)
        return course;
    char *words =
        lasting("%s -d 0:0x%d --mesh tp=%d --grad-groups %d --micro-batch %d", models[model], tp, tp, dp, BATCH / dp);
    *course = train_cell(words, false, &bytes);
    const struct course *one = tp > 1 ? reference(model, dp, 1) : course;
    double gradient = relative_distance(course->moments, one->moments, course->n), loss = farthest_loss(course, one);
    if (!(gradient < 1e-5) || !(loss < 1e-4))
        test_failed("%s: gradients differ by %g, losses by %g\n", words, gradient, loss);
    if (tp > 1 && most_devices)
        printf("%-75s gradients within %.1e, losses within %.1e of one device\n", words, gradient, loss);
    return course;
}

/* ---- the grid ---------------------------------------------------------------------------------------------------- */

/* All other choices are dealt out by the coordinates, so that each size meets each choice. */
static struct cell cell_at(int dp, int pp, int tp, bool apart)
{
    static const char *const others[] = {"", " --recompute full", " --delay-seed 3", " --recompute selective",
                                         " --overlap all-cpu --recompute selective --swap layer --broadcast-queues 2"};
    int turn = dp + pp + 2 * tp + 2 * apart;
    int share = BATCH / dp;
    int micro = turn % 3 + 1;
    struct cell cell = {.model = (pp + tp + apart) % 2, .dp = dp, .pp = pp, .tp = tp, .zero = turn % 4, .apart = apart};
    while (share % micro)
        micro--;
    enum pipeline order = (enum pipeline)((dp + 2 * tp + pp + apart) % PIPELINES);
    bool fits = order == PIPELINE_INTERLEAVED ? share / micro % pp == 0 : share / micro >= 2 * pp;
    /* Two stages a device want pp=2 with 4 layers. */
    if (pipeline_orders[order].chunks > 1 && (pp != 2 || !fits))
        order = order == PIPELINE_INTERLEAVED ? PIPELINE_ZBH1 : PIPELINE_ZBH2;
    bool is_whole = turn % 5 == 0 && pp == 1;
    cell.micro = is_whole ? share : micro;
    snprintf(cell.words, sizeof cell.words,
             "%s -d 0:0x%d --mesh dp=%d,pp=%d,tp=%d --zero %d --micro-batch %d --pipeline %s%s", models[cell.model],
             dp * pp * tp, dp, pp, tp, cell.zero, cell.micro, pipeline_name[order],
             others[(dp + 2 * pp + tp) % (int)COUNT(others)]);
    return cell;
}

static void expect_cell(const struct cell *cell)
{
    size_t bytes;
    struct course course = train_cell(cell->words, cell->apart, &bytes);
    const struct course *expected = reference(cell->model, cell->dp, cell->tp);
    assert_int_equal(course.state.n, expected->state.n);
    expect_same_bits(cell->words, course.moments, expected->moments, course.n);
    expect_same_bits(cell->words, course.state.values, expected->state.values, course.state.n);
    double loss = farthest_loss(&course, expected);
    if (!(loss < 1e-5)) /* sums of floats in another order */
        test_failed("%s: losses differ by %g\n", cell->words, loss);
    if (most_devices)
        printf("%s %s: same bits, %zu KiB on all devices\n", cell->words, cell->apart ? "staged" : "direct",
               bytes >> 10);
    fflush(stdout);
    free_course(&course);
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
    struct course course =
        train_cell("--gemm clblast --layers 1 --heads 8 --channels 512 --seq-len 256", false, &bytes);
    free_course(&course);
}

TEST(meshes_train_like_one_device)
{
    int seen = 0;
    most_devices = number_from("YARD_GRID", 0);
    steps = most_devices ? MANY_STEPS : 3;
    need_own_products();
    for (int apart = 0; apart < 2; apart++)
        for (int n = 0; n < SIZES * SIZES * SIZES; n++) {
            int dp = n / SIZES / SIZES + 1;
            int pp = n / SIZES % SIZES + 1;
            int tp = n % SIZES + 1;
            struct cell cell = cell_at(dp, pp, tp, apart);
            if (is_wanted(dp, pp, tp, apart)) {
                expect_cell(&cell);
                seen++;
            }
        }
    for (size_t i = 0; i < COUNT(known); i++)
        free_course(&known[i]);
    printf("%d meshes seen\n", seen);
    assert_at_least(seen, 8);
}
