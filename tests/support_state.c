/* support_state.c - checkpoints of random numbers, and what is expected of them. */
#include "support_state.h"

/* ---- cases ------------------------------------------------------------------------------------------------------ */

struct draws {
    uint32_t number, drawn;
};

static int draw(struct draws *d, int low, int high)
{
    struct random4 r = random_words(11, STREAM_TEST, d->number, d->drawn++);
    return low + (int)(r.word[0] % (uint32_t)(high - low + 1));
}

struct mesh mesh_of(const struct config *c, int dp, int pp, int tp, int zero)
{
    struct mesh m = {.dp = dp, .pp = pp, .tp = tp, .zero = zero, .chunks = 1};
    must(cut_layers(&m, c->layers, NULL));
    return m;
}

static struct mesh random_mesh(struct draws *d, const struct config *c)
{
    int tp = draw(d, 1, MIN(c->heads, 5)), pp = draw(d, 1, c->layers);
    struct mesh m = mesh_of(c, draw(d, 1, 8), pp, tp, draw(d, 0, 3));
    m.exact = tp > 1 && draw(d, 0, 3) == 0;
    return m;
}

struct random_case random_case(uint32_t number)
{
    struct draws d = {number, 0};
    int heads = draw(&d, 1, 7);
    struct random_case r = {.config = {.layers = draw(&d, 1, 3),
                                       .heads = heads,
                                       .channels = heads * draw(&d, 1, 9),
                                       .seq_len = draw(&d, 1, 40),
                                       .vocab = draw(&d, 7, 300),
                                       .tied = draw(&d, 0, 1)}};
    r.from = random_mesh(&d, &r.config);
    r.to = random_mesh(&d, &r.config);
    return r;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

float state_value(uint64_t seed, size_t tensor, size_t i)
{
    uint64_t x = (seed * 1000003 + tensor) * 1000003 + i;
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15u;
    return (float)(int32_t)(x >> 36); /* whole, and nearly all of them unlike */
}

static void fill_piece(struct kept_tensor *t, size_t tensor, struct piece *p, uint64_t seed, struct st_writer *out)
{
    size_t n = piece_elements(p), run;
    float *values = allocate(n, sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = state_value(seed, tensor, element_of(t, p, i, &run));
    p->hash = hash_bytes(values, n * sizeof *values, 0);
    st_write(out, values, n * sizeof *values);
    free(values);
}

void write_random_state(const char *path, const struct config *c, const struct mesh *m, uint32_t step, int64_t session,
                        uint64_t seed)
{
    char mesh[64];
    snprintf(mesh, sizeof mesh, "dp=%d,pp=%d,tp=%d", m->dp, m->pp, m->tp);
    struct checkpoint *k = allocate(1, sizeof *k);
    *k = (struct checkpoint){.path = copy_string(path),
                             .step = step,
                             .session = session,
                             .tokenizer = copy_string("bytes"),
                             .options = json_pack("{s:s}", "mesh", mesh),
                             .pieces = cut_state(c, m)};
    struct ranks_written w = open_ranks(k);
    for (size_t i = 0; i < k->pieces->n; i++)
        for (size_t p = 0; p < k->pieces->tensor[i].n; p++) {
            struct piece *piece = &k->pieces->tensor[i].piece[p];
            fill_piece(&k->pieces->tensor[i], i, piece, seed, w.file[piece->rank]);
        }
    publish_ranks(&w, k);
    free_checkpoint(k);
}

bool has_state(const struct checkpoint *c, uint64_t seed)
{
    bool same = true;
    for (size_t i = 0; i < c->pieces->n && same; i++) {
        size_t n = tensor_elements(&c->pieces->tensor[i]);
        float *values = allocate(n, sizeof *values);
        read_kept(c, i, values);
        for (size_t k = 0; k < n; k++)
            same &= values[k] == state_value(seed, i, k);
        free(values);
    }
    return same;
}

void expect_state(const struct checkpoint *c, uint64_t seed)
{
    if (!has_state(c, seed))
        test_failed("%s has other values than it was written with\n", c->path);
}

void read_all_tensors(const char *path)
{
    struct safetensors *st = open_safetensors(path);
    for (size_t i = 0; i < st->n; i++) {
        const struct st_tensor *t = &st->tensors[i];
        bool whole = t->dtype == DTYPE_I32 || t->dtype == DTYPE_I64 || t->dtype == DTYPE_U8 || t->dtype == DTYPE_U16;
        void *values = allocate(st_elements(t), 4);
        if (whole)
            read_ints(st, t, values);
        else if (t->dtype != DTYPE_OTHER)
            read_floats(st, t, values);
        free(values);
    }
    close_safetensors(st);
}
