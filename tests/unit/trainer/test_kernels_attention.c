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

struct attended {
    float *out, *dqkv; /* dqkv has three times the elements of out */
};

static struct attended new_attended(size_t n)
{
    return (struct attended){.out = allocate(n, sizeof(float)), .dqkv = allocate(3 * n, sizeof(float))};
}

static void free_attended(struct attended *attended)
{
    free(attended->out);
    free(attended->dqkv);
}

static struct attended attend(struct machine *machine, enum attention kind, int B, int T, int H, int hs)
{
    size_t n = (size_t)(B * T * H * hs);
    struct params params = {.config = {.heads = H, .channels = H * hs}, .n_units = 1};
    struct model model = {.params = &params};
    struct tape tape = {.rank = 0};
    struct pool *pool = new_pool(machine);
    struct list *list = new_list(pool, "attention");
    struct builder b = {.list = list, .model = &model, .device = device, .kernels = {.attention = kind}};
    struct attended attended = new_attended(n);
    b.batch = B;
    b.seq = T;
    b.tape = &tape;
    b.backward_wanted = true;
    struct tensor *qkv = new_work_tensor(pool, device, "qkv", SHAPE(B * T, 3 * H * hs));
    struct tensor *dout = new_work_tensor(pool, device, "dout", SHAPE(B * T, H * hs));
    struct tensor *out = attention(&b, "mix", qkv);
    set_gradient(&b, out, dout);
    tape.ops[0].input_rule(&b, &tape.ops[0]);
    struct tensor *dqkv = gradient(&b, qkv);
    struct tensor *to_read_or_write[] = {qkv, dout, out, dqkv};
    for (size_t i = 0; i < COUNT(to_read_or_write); i++)
        to_read_or_write[i]->persistent = true;
    must(finish_lists(pool, &list, 1));
    float *values[] = {random_floats(3 * n, 7), random_floats(n, 8)};
    write_tensor(qkv, values[0]);
    write_tensor(dout, values[1]);
    execute(list, 1);
    drain(list);
    read_tensor(out, attended.out);
    read_tensor(dqkv, attended.dqkv);
    assert_int_equal(damaged_guards(device), 0);
    free_list(list);
    free_pool(pool);
    free(values[0]);
    free(values[1]);
    free(tape.ops);
    free(b.grads);
    return attended;
}

/* Plain attention is tested with other vectors than 1.  A device with short loops, llvmpipe, computes it wrong, and
 * flash attention too except in the first shape. */
static bool is_tested(enum attention kind, size_t shape)
{
    if (device->extra.quirks.short_loops)
        return kind == ATTENTION_FLASH && shape == 0;
    return kind == ATTENTION_FLASH || device->shape.vector != 1;
}

/* Both ways are close to 64-bit floats.  The size of the work-group changes no bit of flash, whatever room local memory
 * has for its tiles. */
static void check_attention(int B, int T, int H, int hs)
{
    size_t n = (size_t)(B * T * H * hs);
    struct attended expected = new_attended(n);
    struct attended first = new_attended(n); /* of flash with vectors of 1 */
    bool has_first = false;
    float *qkv = random_floats(3 * n, 7), *dout = random_floats(n, 8);
    ref_attention(expected.out, expected.dqkv, dout, qkv, B, T, H, hs);
    for (size_t shape = 0; take_shape(shape); shape++)
        for (enum attention kind = ATTENTION_PLAIN; kind <= ATTENTION_FLASH; kind++) {
            if (!is_tested(kind, shape))
                continue;
            bool fixes_bits = kind == ATTENTION_FLASH && device->shape.vector == 1;
            struct attended attended = attend(machines[shape], kind, B, T, H, hs);
            char *what = lasting("%s attention, B %d, T %d, %d heads of %d, VEC %u WG %u", kind ? "flash" : "plain", B,
                                 T, H, hs, device->shape.vector, device->shape.work_group);
            expect_close(what, attended.out, expected.out, n, 3e-6);
            expect_close(what, attended.dqkv, expected.dqkv, 3 * n, 1e-5);
            if (fixes_bits && has_first) {
                expect_same_bits(what, attended.out, first.out, n);
                expect_same_bits(what, attended.dqkv, first.dqkv, 3 * n);
            }
            if (fixes_bits && !has_first) {
                memcpy(first.out, attended.out, n * sizeof(float));
                memcpy(first.dqkv, attended.dqkv, 3 * n * sizeof(float));
                has_first = true;
            }
            free_attended(&attended);
        }
    free_attended(&expected);
    free_attended(&first);
    free(qkv);
    free(dout);
}

TEST(plain_and_flash_attention_give_what_plain_c_gives)
{
    static const size_t rooms[] = {SIZE_MAX, 49152, 24576};
    static const struct {
        int B, T, H, hs;
    } sizes[] = {
        {.B = 2, .T = 1, .H = 1, .hs = 3},
        {.B = 1, .T = 9, .H = 2, .hs = 4},
        {.B = 1, .T = 70, .H = 2, .hs = 17},
        {.B = 2, .T = 131, .H = 1, .hs = 32},
    };
    size_t had[SHAPES];
    for (size_t i = 0; i < SHAPES; i++)
        had[i] = machines[i]->devices[0].shape.local_memory;
    for (size_t r = 0; r < COUNT(rooms); r++) {
        for (size_t i = 0; i < SHAPES; i++)
            if (machines[i]->devices[0].shape.vector == 1)
                machines[i]->devices[0].shape.local_memory = MIN(had[i], rooms[r]);
        for (size_t i = 0; i < COUNT(sizes); i++)
            check_attention(sizes[i].B, sizes[i].T, sizes[i].H, sizes[i].hs);
    }
    for (size_t i = 0; i < SHAPES; i++)
        machines[i]->devices[0].shape.local_memory = had[i];
}

ALWAYS(machines_close) { close_shapes(); }
