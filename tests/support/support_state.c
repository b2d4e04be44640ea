/* support_state.c - checkpoints of random numbers, and what is expected of them. */
#include "support_state.h"

#include "techniques/reshard/find_checkpoint.h"
#include "techniques/reshard/folder.h"
#include "techniques/reshard/manifest.h"
#include "techniques/reshard/rank_files.h"
#include "techniques/reshard/transfer.h"

#include <dirent.h>
#include <fcntl.h>

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static int draw_between(struct draws *d, int low, int high)
{
    return low + (int)draw_below(d, (size_t)(high - low + 1));
}

struct mesh mesh_of(const struct config *c, int dp, int pp, int tp, int zero)
{
    struct mesh m = {.dp = dp, .pp = pp, .tp = tp, .zero = zero, .chunks = 1};
    must(cut_layers(&m, c->layers, NULL));
    return m;
}

static struct mesh random_mesh(struct draws *d, const struct config *c)
{
    int tp = draw_between(d, 1, MIN(c->heads, 5));
    int pp = draw_between(d, 1, c->layers);
    int zero = draw_between(d, 0, 3);
    int dp = draw_between(d, 1, 8);
    return mesh_of(c, dp, pp, tp, zero);
}

struct random_case random_case(uint32_t number)
{
    struct draws d = {.seed = 11, .row = number};
    struct random_case r = {0};
    r.config.heads = draw_between(&d, 1, 7);
    r.config.layers = draw_between(&d, 1, 3);
    r.config.channels = r.config.heads * draw_between(&d, 1, 9);
    r.config.seq_len = draw_between(&d, 1, 40);
    r.config.vocab = draw_between(&d, 7, 300);
    r.config.tied = draw_between(&d, 0, 1);
    r.from = random_mesh(&d, &r.config);
    r.to = random_mesh(&d, &r.config);
    return r;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

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
        void *values = allocate(st_elements(t), 4);
        if (t->dtype == DTYPE_I32)
            read_ints(st, t, values);
        else if (t->dtype != DTYPE_OTHER)
            read_floats(st, t, values);
        free(values);
    }
    close_safetensors(st);
}

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

struct stored store_of(const struct config *c, const struct mesh *mesh, int slots, bool halves)
{
    struct mesh alike = *mesh;
    alike.zero = 0; /* so that `at` counts from the unit's start */
    struct stored x = {outline_model(c, mesh), cut_state(c, &alike), {.config = c, .mesh = mesh, .batch = 8}};
    x.plan.ring = allocate(1, sizeof *x.plan.ring);
    x.plan.ring->n = slots;
    size_t cap = 0;
    for (int r = n_ranks(mesh) - 1; r >= 0; r--)
        for (int u = 0; u < x.model->params->n_units; u++) {
            struct shard s = shard_of(params_of(x.model, r)->unit[u].elements, dp_of(mesh, r), mesh->dp);
            size_t middle = halves ? (s.begin + s.end) / 2 : s.end;
            if (!has_stage(mesh, r, stage_of(x.model, u)))
                continue;
            if (s.begin < middle)
                *APPEND(x.plan.range, x.plan.n, cap) = (struct state_range){r, u, s.begin, middle};
            if (middle < s.end)
                *APPEND(x.plan.range, x.plan.n, cap) = (struct state_range){r, u, middle, s.end};
        }
    return x;
}

void free_stored(struct stored *x)
{
    free(x->plan.range);
    free(x->plan.ring);
    free_pieces(x->pieces);
    free_model(x->model);
}

/* Fills in what the range has of a tensor.  Where tensor-parallel ranks have parts of it, the elements lie as in the
 * rank's piece; else as in the rank's table of parameters. */
static void fill_tensor(const struct stored *x, const struct state_range *r, size_t tensor, uint64_t seed, float *out)
{
    const struct kept_tensor *t = &x->pieces->tensor[tensor];
    const struct param *param = &params_of(x->model, r->rank)->param[t->param];
    bool cut = param->cut.split != SPLIT_NONE;
    size_t run;
    for (size_t k = 0; k < t->n; k++) {
        const struct piece *piece = &t->piece[k];
        size_t first = cut ? piece->memory_offset : param->offset;
        if (cut && tp_of(x->plan.mesh, piece->rank) != tp_of(x->plan.mesh, r->rank))
            continue;
        for (size_t i = 0; i < piece_elements(piece); i++)
            if (first + i >= r->begin && first + i < r->end)
                out[first + i - r->begin] = state_value(seed, tensor, element_of(t, piece, i, &run));
    }
}

float *fill_payload(const struct stored *x, size_t payload, uint64_t seed)
{
    const struct state_range *r = &x->plan.range[payload];
    float *out = allocate((size_t)payload_bytes(r), 1);
    memset(out, 0x55, (size_t)payload_bytes(r));
    for (size_t i = 0; i < x->pieces->n; i++)
        if (r->unit == x->pieces->tensor[i].unit)
            fill_tensor(x, r, i, seed, out + x->pieces->tensor[i].role * payload_bytes(r) / KEPT_ROLES / ELEMENT_BYTES);
    return out;
}

struct checkpoint description(json_t *options, uint32_t step, int64_t session)
{
    return (struct checkpoint){.step = step,
                               .samples = 8 * (int64_t)step,
                               .session = session,
                               .tokenizer = (char *)(uintptr_t) "bytes",
                               .options = options};
}

uint64_t seed_of(uint32_t step, int64_t session) { return 100 * (uint64_t)step + (uint64_t)session; }

void store_iteration(struct snap *s, const struct stored *x, uint32_t step, int64_t session)
{
    struct stored_step t;
    assert_true(snap_begin(s, step) > 0);
    for (size_t i = 0; i < x->plan.n; i++) {
        float *bytes = fill_payload(x, i, seed_of(step, session));
        snap_write(s, step, i, bytes);
        free(bytes);
    }
    assert_true(snap_commit(s, step, true, &t));
    assert_true(t.recoverable <= t.durable);
}

void write_snapshot(const char *path, const struct config *c, const struct mesh *m, bool halves, uint32_t n)
{
    struct snap *s;
    struct stored x = store_of(c, m, 2, halves);
    struct checkpoint d = description(json_pack("{s:s}", "novel", "1"), 0, 1);
    must(open_snap(path, &d, &x.plan, &s));
    for (uint32_t i = 1; i <= n; i++)
        store_iteration(s, &x, i, 1);
    close_snap(s);
    json_decref(d.options);
    free_stored(&x);
}

/* ---- files and folders ------------------------------------------------------------------------------------------- */

void overwrite(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_true(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

void expect_same_file(const char *a, const char *b)
{
    size_t n, m;
    char *x = read_whole(a, &n), *y = read_whole(b, &m);
    if (n != m || memcmp(x, y, n) != 0)
        test_failed("%s and %s differ\n", a, b);
    free(x);
    free(y);
}

int count_files(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* ---- small checkpoints ------------------------------------------------------------------------------------------- */

const struct config small_config = {.layers = 1, .heads = 2, .channels = 8, .seq_len = 4, .vocab = 9, .tied = true};

char *small_state(const char *name)
{
    char *path = copy_string(temp_path(name));
    struct mesh m = mesh_of(&small_config, 1, 1, 2, 1);
    remove_folder(path);
    write_random_state(path, &small_config, &m, 3, 1, 5);
    free_mesh(&m);
    return path;
}

void change_manifest(const char *folder, const char *text, const char *old, const char *new)
{
    char *path = lasting("%s/" MANIFEST, folder);
    const char *at = strstr(text + 28, old);
    if (!at)
        test_failed("the manifest has no %s\n", old);
    char *body = lasting("%.*s%s%s", (int)(at - text) - 28, text + 28, new, at + strlen(old));
    char *all =
        format_string("{\"hash\":\"%016llx\",\n%s", (unsigned long long)hash_bytes(body, strlen(body), 0), body);
    overwrite(path, all, strlen(all));
    free(all);
}

void check_checkpoint(void *folder)
{
    struct checkpoint *c = open_checkpoint(folder);
    for (size_t i = 0; i < c->pieces->n; i++) {
        must(verify_tensor(c, i));
    }
    free_checkpoint(c);
}

void expect_newest_checkpoint(const char *folder, const char *name)
{
    char *found = find_checkpoint(folder), *expected = lasting("%s/%s", folder, name);
    assert_string_equal(found, expected);
    free(found);
}

/* ---- snapshot files whose bytes are changed ---------------------------------------------------------------------- */

static void read_image(void *image)
{
    struct image *x = image;
    struct checkpoint *c = read_snapshot(x->path);
    x->damage = c->stored->n_damage;
    snprintf(x->said, sizeof x->said, "%s", x->damage ? c->stored->damage[0] : "");
    x->step = snapfile_of(c)->newest.slot && has_state(c, seed_of(c->step, 1)) ? c->step : 0;
    free_checkpoint(c);
}

bool notices(struct image *x)
{
    x->step = 0;
    x->damage = 0;
    struct problem *p = attempt(read_image, x);
    bool refused = p && p->code == EXIT_FAILED;
    free(p);
    return p ? refused : x->damage && x->step;
}

void put_bytes(const struct image *x, size_t at, size_t n)
{
    int fd = open(x->path, O_RDWR);
    assert_int_equal(pwrite(fd, x->bytes + at, n, (off_t)at), n);
    close(fd);
}

struct image make_image(const char *path, struct snapfile *layout)
{
    struct image x = {.path = path};
    struct mesh m = mesh_of(&small_config, 2, 1, 1, 1);
    unlink(path);
    write_snapshot(path, &small_config, &m, false, 2);
    struct checkpoint *c = open_checkpoint(path);
    *layout = *snapfile_of(c);
    x.bytes = read_whole(path, &x.n);
    assert_int_equal(x.n, slot_at(layout, 3));
    free_checkpoint(c);
    free_mesh(&m);
    return x;
}

size_t first_piece(const char *path)
{
    struct checkpoint *c = open_snapshot(path);
    size_t at = c->pieces->tensor[0].piece[0].file_offset;
    free_checkpoint(c);
    return at;
}
