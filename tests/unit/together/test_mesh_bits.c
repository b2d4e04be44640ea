/* test_mesh_bits.c - training over meshes of devices: its bits, its validation and its samples.
 *
 * It tests the lists of src/trainer/train and src/trainer/mesh as they run.  It checks that the parameters after some
 * steps are those of one device, to the bit, as far as a mesh promises that, and that losses of validation and logits
 * of samples are close to those of one device.  It catches a sum in another order, a gradient that is added twice, and
 * a stale parameter.
 *
 * To see it fail: in collective.c, let no sum move on to where it is to stay: collector = 0 in add_reduce_sums().
 *
 * The expected bits are those of another mesh's training.  test_grid.c tests other sizes, and passes.
 */
#include "tests/support/support.h"
#include "tests/support/support_training.h"

#include <math.h>

enum { STEPS = 3 };

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static struct state train_on(const char *words)
{
    return train(parse_words(lasting("--model tiny --gemm own --data LICENSE --layers 4 --seq-len 16 %s", words)),
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
    restore_contexts();
}

/* ---- evaluation and sampling ------------------------------------------------------------------------------------- */

/* Biases begin at zero, which would hide one that is added twice. */
static void init_with_biases(struct model *model)
{
    init_random(model, 1337);
    for (int i = 0; i < model->params->n; i++) {
        const struct param *param = &model->params->items[i];
        float *values = random_floats((size_t)(param->shape[0] * param->shape[1]), (uint64_t)i);
        if (param->init == INIT_ZERO)
            write_param(model, i, KEPT_VALUE, values);
        free(values);
    }
}

/* The validation loss, and the logits of a sampled token. */
static double look(const char *words, float *logits, int vocab)
{
    struct trainer *trainer = new_trainer(parse_words(words), LIST_EVAL | LIST_SAMPLE | OPEN_DATA);
    assert_int_equal(trainer->config.vocab, vocab);
    init_with_biases(trainer->model);
    double loss = evaluate(trainer, 2, NULL, NULL);
    for (int i = 0; i < trainer->seq_len; i++)
        trainer->extra.sample_window[i] = i;
    trainer->extra.sample_position = 5;
    execute(trainer->sample_list, 1);
    drain(trainer->sample_list);
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
        assert_close(look(words, many, VOCAB), loss, 1e-5);
        expect_close(meshes[i], many, one, VOCAB, 1e-5);
    }
}
