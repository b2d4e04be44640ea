/* test_kernels_attention.c - attention and its gradient, plain and flash, compared with 64-bit floats (ref_attention).
 *
 * It tests src/trainer/model/attention.c with the kernels that it calls.  It catches a key above the diagonal that
 * counts, a block whose maximum is not updated, a gradient of the wrong head, and bits of flash attention that depend
 * on the size of the work-group or on the local memory.
 *
 * To see it fail: in flash.cl, do not scale what was summed before the maximum rose: factor 1.
 *
 * Inputs are normal numbers that depend only on a seed.
 */
#include "tests/support/support_kernels.h"
#include "trainer/model/model.h"
#include "trainer/run/run.h"

ALWAYS(machines_open) { open_shapes(); }

/* ---- attention, through src/trainer/model/attention.c ------------------------------------------------------------ */

/* B sequences of T tokens, H heads of hs channels. */
static const struct sizes {
    int B, T, H, hs;
} all_sizes[] = {
    {.B = 2, .T = 1, .H = 1, .hs = 3},
    {.B = 1, .T = 9, .H = 2, .hs = 4},
    {.B = 1, .T = 70, .H = 2, .hs = 17},
    {.B = 2, .T = 131, .H = 1, .hs = 32},
};

/* The output, and the gradient of the input. */
struct attended {
    float *out, *dqkv; /* dqkv has three times the elements of out */
};

static struct attended make_attended(size_t n)
{
    return (struct attended){.out = allocate(n, sizeof(float)), .dqkv = allocate(3 * n, sizeof(float))};
}

static void free_attended(struct attended *attended)
{
    free(attended->out);
    free(attended->dqkv);
}

/* What attention is asked to compute: sizes and inputs, and what plain C makes of these. */
struct question {
    int B, T, H, hs;
    size_t n; /* elements of the output */
    float *qkv, *dout;
    struct attended expected;
};

static struct question make_question(const struct sizes *sizes)
{
    struct question q = {.B = sizes->B, .T = sizes->T, .H = sizes->H, .hs = sizes->hs};
    q.n = (size_t)(q.B * q.T * q.H * q.hs);
    q.qkv = random_floats(3 * q.n, 7);
    q.dout = random_floats(q.n, 8);
    q.expected = make_attended(q.n);
    ref_attention(q.expected.out, q.expected.dqkv, q.dout, q.qkv, q.B, q.T, q.H, q.hs);
    return q;
}

static void free_question(struct question *q)
{
    free(q->qkv);
    free(q->dout);
    free_attended(&q->expected);
}

/* The tensors of a list that computes attention, and then the gradient of its input. */
struct tensors {
    struct tensor *qkv, *dout; /* inputs */
    struct tensor *out, *dqkv;
};

static struct tensors add_attention(struct list *list, enum attention kind, const struct question *q)
{
    int tokens = q->B * q->T;
    int channels = q->H * q->hs;
    struct params params = {.config = {.heads = q->H, .channels = channels}, .n_units = 1};
    struct model model = {.params = &params};
    struct tape tape = {.rank = 0};
    struct builder b = {
        .list = list,
        .model = &model,
        .device = device,
        .kernels = {.attention = kind},
        .batch = q->B,
        .seq = q->T,
        .tape = &tape,
        .backward_wanted = true,
    };
    struct tensors tensors = {
        .qkv = new_work_tensor(list->pool, device, "qkv", SHAPE(tokens, 3 * channels)),
        .dout = new_work_tensor(list->pool, device, "dout", SHAPE(tokens, channels)),
    };
    tensors.out = attention(&b, "mix", tensors.qkv);
    set_gradient(&b, tensors.out, tensors.dout);
    tape.ops[0].input_rule(&b, &tape.ops[0]);
    tensors.dqkv = gradient(&b, tensors.qkv);
    free(tape.ops);
    free(b.grads);
    return tensors;
}

/* Attention on the device under test. */
static struct attended attend(enum attention kind, const struct question *q)
{
    struct attended attended = make_attended(q->n);
    struct pool *pool = new_pool(machine);
    struct list *list = new_list(pool, "attention");
    struct tensors tensors = add_attention(list, kind, q);
    struct tensor *const read_or_written[] = {tensors.qkv, tensors.dout, tensors.out, tensors.dqkv};
    for (size_t i = 0; i < COUNT(read_or_written); i++)
        read_or_written[i]->persistent = true; /* so that no two of them share bytes */
    must(finish_lists(pool, &list, 1));
    write_tensor(tensors.qkv, q->qkv);
    write_tensor(tensors.dout, q->dout);
    execute(list, 1);
    drain(list);
    read_tensor(tensors.out, attended.out);
    read_tensor(tensors.dqkv, attended.dqkv);
    assert_int_equal(damaged_guards(device), 0);
    free_list(list);
    free_pool(pool);
    return attended;
}

/* Attention on the device under test, which must be close to that in 64-bit floats. */
static struct attended attend_closely(enum attention kind, const struct question *q)
{
    struct attended attended = attend(kind, q);
    char *what =
        lasting("%s attention, B %d, T %d, %d heads of %d, VEC %u WG %u", kind == ATTENTION_FLASH ? "flash" : "plain",
                q->B, q->T, q->H, q->hs, device->shape.vector, device->shape.work_group);
    expect_close(what, attended.out, q->expected.out, q->n, 3e-6);
    expect_close(what, attended.dqkv, q->expected.dqkv, 3 * q->n, 1e-5);
    return attended;
}

/* A device with short loops, llvmpipe, computes it wrong. */
TEST(plain_attention_gives_what_plain_c_gives)
{
    for (size_t i = 0; i < COUNT(all_sizes); i++) {
        struct question q = make_question(&all_sizes[i]);
        for (size_t shape = 0; take_shape(shape); shape++) {
            if (device->shape.vector == 1 || device->extra.quirks.short_loops)
                continue;
            struct attended attended = attend_closely(ATTENTION_PLAIN, &q);
            free_attended(&attended);
        }
        free_question(&q);
    }
}

/* All shapes are close to plain C, and those with vectors of 1 have the same bits: they differ in the size of the
 * work-group.  A device with short loops computes it wrong except in its own shape. */
static void check_flash(const struct question *q)
{
    struct attended first = {0}; /* that of the first shape with vectors of 1 */
    for (size_t shape = 0; take_shape(shape); shape++) {
        if (device->extra.quirks.short_loops && shape > 0)
            continue;
        struct attended attended = attend_closely(ATTENTION_FLASH, q);
        if (device->shape.vector == 1 && !first.out) {
            first = attended;
            continue;
        }
        if (device->shape.vector == 1) {
            expect_same_bits("out, work-groups of another size", attended.out, first.out, q->n);
            expect_same_bits("dqkv, work-groups of another size", attended.dqkv, first.dqkv, 3 * q->n);
        }
        free_attended(&attended);
    }
    free_attended(&first);
}

/* Lets the devices with vectors of 1 have at most so many of the bytes of local memory that they had. */
static void limit_local_memory(const size_t had[SHAPES], size_t room)
{
    for (size_t shape = 0; take_shape(shape); shape++)
        if (device->shape.vector == 1)
            device->shape.local_memory = MIN(had[shape], room);
}

/* Flash attention takes smaller tiles where local memory has less room. */
TEST(flash_attention_gives_what_plain_c_gives)
{
    static const size_t rooms[] = {49152, 24576, SIZE_MAX}; /* the last one leaves the devices as they were */
    size_t had[SHAPES];
    for (size_t shape = 0; take_shape(shape); shape++)
        had[shape] = device->shape.local_memory;
    for (size_t i = 0; i < COUNT(all_sizes); i++) {
        struct question q = make_question(&all_sizes[i]);
        for (size_t r = 0; r < COUNT(rooms); r++) {
            limit_local_memory(had, rooms[r]);
            check_flash(&q);
        }
        free_question(&q);
    }
}

ALWAYS(machines_close) { close_shapes(); }
