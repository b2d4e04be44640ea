/* support_state.c - checkpoints of random numbers, and what is expected of them. */
#include "support_state.h"

#include "techniques/checkpoint/files.h"

#include <dirent.h>
#include <fcntl.h>

/* ---- cases ------------------------------------------------------------------------------------------------------- */

struct mesh cut_mesh(const struct config *config, struct mesh mesh)
{
    mesh.dp = MAX(mesh.dp, 1);
    mesh.pp = MAX(mesh.pp, 1);
    mesh.tp = MAX(mesh.tp, 1);
    mesh.chunks = 1;
    must(cut_layers(&mesh, config->layers, NULL));
    return mesh;
}

static struct mesh random_mesh(struct draws *draws, const struct config *config)
{
    int tp = draw_between(draws, 1, MIN(config->heads, 5));
    int pp = draw_between(draws, 1, config->layers);
    int zero = draw_between(draws, 0, 3);
    int dp = draw_between(draws, 1, 8);
    return cut_mesh(config, (struct mesh){.dp = dp, .pp = pp, .tp = tp, .zero = zero});
}

struct random_case random_case(uint32_t number)
{
    struct draws draws = {.seed = 11, .row = number};
    struct random_case chosen = {0};
    chosen.config.heads = draw_between(&draws, 1, 7);
    chosen.config.layers = draw_between(&draws, 1, 3);
    chosen.config.channels = chosen.config.heads * draw_between(&draws, 1, 9);
    chosen.config.seq_len = draw_between(&draws, 1, 40);
    chosen.config.vocab = draw_between(&draws, 7, 300);
    chosen.config.tied = draw_between(&draws, 0, 1);
    chosen.from = random_mesh(&draws, &chosen.config);
    chosen.to = random_mesh(&draws, &chosen.config);
    return chosen;
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

void write_random_state(const char *path, const struct config *config, const struct mesh *m, uint32_t step,
                        int64_t session, uint64_t seed)
{
    char mesh[64];
    snprintf(mesh, sizeof mesh, "dp=%d,pp=%d,tp=%d", m->dp, m->pp, m->tp);
    struct checkpoint *checkpoint = allocate(1, sizeof *checkpoint);
    *checkpoint = (struct checkpoint){.path = copy_string(path),
                                      .step = step,
                                      .session = session,
                                      .tokenizer = copy_string("bytes"),
                                      .options = json_pack("{s:s}", "mesh", mesh),
                                      .cut = new_cut_tensors(config, m)};
    struct rank_writers writers = open_ranks(checkpoint);
    for (size_t i = 0; i < checkpoint->cut->n; i++)
        for (size_t p = 0; p < checkpoint->cut->tensors[i].n_pieces; p++) {
            struct piece *piece = &checkpoint->cut->tensors[i].pieces[p];
            fill_piece(&checkpoint->cut->tensors[i], i, piece, seed, writers.files[piece->rank]);
        }
    publish_ranks(&writers, checkpoint);
    free_checkpoint(checkpoint);
}

bool has_state(struct checkpoint *checkpoint, uint64_t seed)
{
    bool same = true;
    for (size_t i = 0; i < checkpoint->cut->n && same; i++) {
        size_t n = tensor_elements(&checkpoint->cut->tensors[i]);
        float *values = allocate(n, sizeof *values);
        read_kept(checkpoint, i, values);
        for (size_t k = 0; k < n; k++)
            same &= values[k] == state_value(seed, i, k);
        free(values);
    }
    return same;
}

void expect_state(struct checkpoint *checkpoint, uint64_t seed)
{
    if (!has_state(checkpoint, seed))
        test_failed("%s has other values than it was written with\n", checkpoint->path);
}

void read_all_tensors(const char *path)
{
    struct safetensors *st = open_safetensors(path);
    for (size_t i = 0; i < st->n; i++) {
        const struct st_tensor *tensor = &st->tensors[i];
        void *values = allocate(st_elements(tensor), 4);
        if (tensor->dtype == DTYPE_I32)
            read_ints(st, tensor, values);
        else if (tensor->dtype != DTYPE_OTHER)
            read_floats(st, tensor, values);
        free(values);
    }
    close_safetensors(st);
}

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

static void add_range(struct snapfile_plan *plan, size_t *cap, struct state_range range)
{
    GROW(plan->ranges, *cap, plan->n + 1);
    plan->ranges[plan->n++] = range;
}

struct stored new_stored(const struct config *config, const struct mesh *mesh, int slots, enum payloads payloads)
{
    struct mesh alike = *mesh;
    alike.zero = 0; /* so that `at` counts from the unit's start */
    struct stored stored = {
        outline_model(config, mesh), new_cut_tensors(config, &alike), {.config = config, .mesh = mesh, .batch = 8}};
    stored.plan.slots = allocate(1, sizeof *stored.plan.slots);
    stored.plan.slots->n = slots;
    size_t cap = 0;
    for (int r = n_ranks(mesh) - 1; r >= 0; r--)
        for (int u = 0; u < stored.model->params->n_units; u++) {
            struct range shard = shard_of(params_of(stored.model, r)->units[u].elements, dp_of(mesh, r), mesh->dp);
            size_t middle = payloads == HALF_PAYLOADS ? (shard.begin + shard.end) / 2 : shard.end;
            if (!has_stage(mesh, r, stage_of(stored.model, u)))
                continue;
            if (shard.begin < middle)
                add_range(&stored.plan, &cap, (struct state_range){r, u, {shard.begin, middle}});
            if (middle < shard.end)
                add_range(&stored.plan, &cap, (struct state_range){r, u, {middle, shard.end}});
        }
    return stored;
}

void free_stored(struct stored *stored)
{
    free(stored->plan.ranges);
    free(stored->plan.slots);
    free_cut_tensors(stored->cut);
    free_model(stored->model);
}

/* Fills in what the range has of a tensor.  Where tensor-parallel ranks have parts of it, the elements lie as in the
 * rank's piece; else as in the rank's table of parameters. */
static void fill_tensor(const struct stored *stored, const struct state_range *range, size_t tensor, uint64_t seed,
                        float *out)
{
    const struct kept_tensor *kept = &stored->cut->tensors[tensor];
    const struct param *param = &params_of(stored->model, range->rank)->items[kept->param];
    bool cut = param->cut.split != SPLIT_NONE;
    size_t run;
    for (size_t k = 0; k < kept->n_pieces; k++) {
        const struct piece *piece = &kept->pieces[k];
        size_t first = cut ? piece->memory_offset : param->offset;
        if (cut && tp_of(stored->plan.mesh, piece->rank) != tp_of(stored->plan.mesh, range->rank))
            continue;
        for (size_t i = 0; i < piece_elements(piece); i++)
            if (first + i >= range->elements.begin && first + i < range->elements.end)
                out[first + i - range->elements.begin] = state_value(seed, tensor, element_of(kept, piece, i, &run));
    }
}

float *fill_payload(const struct stored *stored, size_t payload, uint64_t seed)
{
    const struct state_range *range = &stored->plan.ranges[payload];
    float *out = allocate((size_t)payload_bytes(range), 1);
    memset(out, 0x55, (size_t)payload_bytes(range));
    for (size_t i = 0; i < stored->cut->n; i++)
        if (range->unit == stored->cut->tensors[i].unit)
            fill_tensor(stored, range, i, seed,
                        out + stored->cut->tensors[i].role * payload_bytes(range) / STORED_ROLES / ELEMENT_BYTES);
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

void store_iteration(struct snapfile_writer *writer, const struct stored *stored, uint32_t step, int64_t session)
{
    struct commit_times times;
    assert_above(begin_commit(writer, step), 0);
    for (size_t i = 0; i < stored->plan.n; i++) {
        float *bytes = fill_payload(stored, i, seed_of(step, session));
        write_payload(writer, step, i, bytes);
        free(bytes);
    }
    assert_true(finish_commit(writer, step, true, &times));
    assert_at_most(times.recoverable, times.durable);
}

void write_snapshot(const char *path, const struct config *config, const struct mesh *mesh, enum payloads payloads,
                    uint32_t n)
{
    struct snapfile_writer *writer;
    struct stored stored = new_stored(config, mesh, 2, payloads);
    struct checkpoint checkpoint = description(json_pack("{s:s}", "novel", "1"), 0, 1);
    must(open_snapfile_writer(path, &checkpoint, &stored.plan, &writer));
    for (uint32_t i = 1; i <= n; i++)
        store_iteration(writer, &stored, i, 1);
    close_snapfile_writer(writer);
    json_decref(checkpoint.options);
    free_stored(&stored);
}

/* ---- files and folders ------------------------------------------------------------------------------------------- */

void overwrite(const char *path, const char *text, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
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
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.tp = 2, .zero = 1});
    remove_folder(path);
    write_random_state(path, &small_config, &mesh, 3, 1, SMALL_SEED);
    free_mesh(&mesh);
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
    struct checkpoint *checkpoint = open_checkpoint(folder);
    for (size_t i = 0; i < checkpoint->cut->n; i++) {
        must(verify_tensor(checkpoint, i));
    }
    free_checkpoint(checkpoint);
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
    struct checkpoint *checkpoint = read_snapshot(x->path);
    x->damage = checkpoint->single_file->n_damage;
    snprintf(x->said, sizeof x->said, "%s", x->damage ? checkpoint->single_file->damage[0] : "");
    x->step = snapfile_of(checkpoint)->newest.slot && has_state(checkpoint, seed_of(checkpoint->step, 1))
                  ? checkpoint->step
                  : 0;
    free_checkpoint(checkpoint);
}

bool notices(struct image *image)
{
    image->step = 0;
    image->damage = 0;
    struct problem *problem = attempt(read_image, image);
    bool refused = problem && problem->code == EXIT_FAILED;
    if (problem)
        snprintf(image->said, sizeof image->said, "%s", problem->sentence);
    free(problem);
    return problem ? refused : image->damage && image->step;
}

void put_bytes(const struct image *image, size_t at, size_t n)
{
    int fd = open(image->path, O_RDWR);
    assert_int_equal(pwrite(fd, image->bytes + at, n, (off_t)at), n);
    close(fd);
}

struct image make_image(const char *path, struct snapfile *layout)
{
    struct image image = {.path = path};
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 2, .zero = 1});
    unlink(path);
    write_snapshot(path, &small_config, &mesh, WHOLE_PAYLOADS, 2);
    struct checkpoint *checkpoint = open_checkpoint(path);
    *layout = *snapfile_of(checkpoint);
    image.bytes = read_whole(path, &image.n);
    assert_int_equal(image.n, slot_at(layout, 3));
    free_checkpoint(checkpoint);
    free_mesh(&mesh);
    return image;
}

size_t first_piece(const char *path)
{
    struct checkpoint *checkpoint = read_newest_snapshot(path);
    size_t at = checkpoint->cut->tensors[0].pieces[0].file_offset;
    free_checkpoint(checkpoint);
    return at;
}
