/* test_state.c - checkpoints: pieces and plans, K to N to K, the strict reader, and runs that go on as if never broken
 * off.
 *
 *     YARD_PAIRS=300 build/tests/test_state      so many random pairs of meshes
 */
#include "techniques/reshard/folder.h"
#include "tests/support/support_state.h"

#include <dirent.h>
#include <math.h>

static int n_pairs(void)
{
    const char *n = getenv("YARD_PAIRS");
    return n ? atoi(n) : 8;
}

/* ---- pieces ----------------------------------------------------------------------------------------------------- */

/* Each element of a tensor is in one piece, and each piece's are where the plan to the whole says. */
TEST(pieces_cover_each_tensor_once)
{
    for (uint32_t i = 0; i < 60; i++) {
        struct random_case r = random_case(1000 + i);
        struct pieces *p = cut_state(&r.config, &r.from);
        for (size_t t = 0; t < p->n; t++) {
            size_t n = tensor_elements(&p->tensor[t]), covered = 0, run;
            bool *taken = allocate(n, sizeof *taken);
            for (size_t k = 0; k < p->tensor[t].n; k++)
                for (size_t e = 0; e < piece_elements(&p->tensor[t].piece[k]); e++, covered++) {
                    size_t at = element_of(&p->tensor[t], &p->tensor[t].piece[k], e, &run);
                    assert_true(at < n);
                    assert_true(!taken[at]);
                    taken[at] = true;
                }
            assert_int_equal(covered, n);
            free(taken);
        }
        free_pieces(p);
        free_mesh(&r.from);
        free_mesh(&r.to);
    }
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

static void expect_refuted(const struct copies *p, const char *what)
{
    struct problem *found = prove_copies(p);
    if (!found)
        test_failed("a plan with %s was not refused\n", what);
    free(found);
}

/* One copy at a time is made wrong. */
static void sabotage(struct copies *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct copy sound = p->copy[i], *c = &p->copy[i];
        c->n--;
        expect_refuted(p, "a copy that is too short");
        c->n = sound.n + 1;
        expect_refuted(p, "a copy that is too long");
        *c = sound;
        c->from_offset++;
        expect_refuted(p, "another element");
        *c = sound;
        c->to_offset++;
        expect_refuted(p, "another place");
        *c = sound;
        c->from_piece = (c->from_piece + 1) % (p->from->n + 1);
        expect_refuted(p, "another piece");
        *c = p->copy[(i + 1) % p->n];
        if (p->n > 1)
            expect_refuted(p, "a copy that is missing, and one that is there twice");
        *c = sound;
    }
    p->n--;
    expect_refuted(p, "its last copy missing");
    p->n++;
    assert_null(prove_copies(p));
}

TEST(wrong_plans_are_refused)
{
    for (uint32_t i = 0; i < 8; i++) {
        struct random_case r = random_case(2000 + i);
        struct pieces *from = cut_state(&r.config, &r.from), *to = cut_state(&r.config, &r.to);
        for (size_t t = 0; t < from->n; t += 5) {
            struct copies p = plan_copies(&from->tensor[t], &to->tensor[t], "a test");
            if (p.n < 200)
                sabotage(&p);
            free(p.copy);
        }
        free_pieces(from);
        free_pieces(to);
        free_mesh(&r.from);
        free_mesh(&r.to);
    }
}

static void plan_with_a_hole(void *tensor)
{
    struct kept_tensor t = *(struct kept_tensor *)tensor;
    t.n--;
    plan_copies(&t, tensor, "a test");
}

static void plan_with_a_replica(void *tensor)
{
    struct kept_tensor t = *(struct kept_tensor *)tensor;
    struct piece pieces[] = {t.piece[0], t.piece[1], t.piece[0]};
    t.piece = pieces;
    t.n = 3;
    plan_copies(&t, tensor, "a test");
}

static void plan_to_a_replica(void *tensor)
{
    struct kept_tensor t = *(struct kept_tensor *)tensor;
    struct piece pieces[] = {t.piece[0], t.piece[1], t.piece[0]};
    t.piece = pieces;
    t.n = 3;
    plan_copies(tensor, &t, "a test");
}

static void plan_with_an_overlap(void *tensor)
{
    struct kept_tensor t = *(struct kept_tensor *)tensor;
    t.piece[1].begin[0]--;
    plan_copies(&t, &t, "a test");
}

TEST(holes_and_overlaps_have_no_plan)
{
    struct config c = {.layers = 1, .heads = 2, .channels = 8, .seq_len = 4, .vocab = 9, .tied = true};
    struct mesh m = mesh_of(&c, 1, 1, 2, 0);
    struct pieces *p = cut_state(&c, &m);
    expect_refusal(plan_with_a_hole, &p->tensor[0], 1, "do not cover it once: none has element 32 of 72");
    expect_refusal(plan_with_a_replica, &p->tensor[0], 1, "a test: the pieces of tensor wte.weight, value, do not");
    expect_refusal(plan_to_a_replica, &p->tensor[0], 1, "more than one has element 0 of 72");
    expect_refusal(plan_with_an_overlap, &p->tensor[0], 1, "more than one has element");
    free_pieces(p);
    free_mesh(&m);
}

/* ---- K to N to K ------------------------------------------------------------------------------------------------ */

static void clear_folder(const char *path) { remove_folder(path); }

static void expect_same_file(const char *a, const char *b)
{
    size_t n, m;
    char *x = read_whole(a, &n), *y = read_whole(b, &m);
    if (n != m || memcmp(x, y, n) != 0)
        test_failed("%s and %s differ\n", a, b);
    free(x);
    free(y);
}

static int count_files(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void expect_same_folders(const char *a, const char *b)
{
    DIR *d = opendir(a);
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            char *x = lasting("%s/%s", a, e->d_name), *y = lasting("%s/%s", b, e->d_name);
            expect_same_file(x, y);
        }
    closedir(d);
    assert_int_equal(count_files(a), count_files(b));
}

static uint64_t reshard_to(const char *from, const char *to, const struct config *c, const struct mesh *m)
{
    struct checkpoint *k = open_checkpoint(from), *n = allocate(1, sizeof *n);
    *n = (struct checkpoint){.path = copy_string(to),
                             .step = k->step,
                             .session = k->session,
                             .tokenizer = copy_string(k->tokenizer),
                             .options = json_incref(k->options),
                             .pieces = cut_state(c, m)};
    uint64_t moved = reshard(k, n);
    free_checkpoint(k);
    free_checkpoint(n);
    return moved;
}

TEST(resharded_and_back_is_the_same)
{
    const char *k = temp_path("k");
    const char *n = temp_path("n");
    const char *again = temp_path("again");
    for (uint32_t i = 0; i < (uint32_t)n_pairs(); i++) {
        struct random_case r = random_case(i);
        uint64_t bytes = 0;
        clear_folder(k);
        clear_folder(n);
        clear_folder(again);
        write_random_state(k, &r.config, &r.from, 7, 1, i);
        uint64_t there = reshard_to(k, n, &r.config, &r.to), back = reshard_to(n, again, &r.config, &r.from);
        struct checkpoint *c = open_checkpoint(n);
        expect_state(c, i);
        for (size_t t = 0; t < c->pieces->n; t++)
            bytes += 4 * tensor_elements(&c->pieces->tensor[t]);
        assert_int_equal(there, bytes);
        assert_int_equal(back, bytes);
        expect_same_folders(k, again);
        free_checkpoint(c);
        free_mesh(&r.from);
        free_mesh(&r.to);
    }
}

static void expect_mesh(struct mesh m, const struct mesh *expected, int zero)
{
    char found[64], wanted[64];
    assert_string_equal(format_mesh(found, &m), format_mesh(wanted, expected));
    assert_int_equal(m.zero, zero);
}

/* Without --mesh the strategy is kept, whatever becomes of the pieces; with one both change. */
TEST(merged_pieces_keep_the_strategy)
{
    const char *k = temp_path("trained");
    const char *merged = temp_path("merged");
    const char *cut = temp_path("recut");
    for (uint32_t i = 0; i < (uint32_t)n_pairs(); i++) {
        struct random_case r = random_case(3000 + i);
        clear_folder(k);
        clear_folder(merged);
        clear_folder(cut);
        write_random_state(k, &r.config, &r.from, 7, 1, i);
        expect_yard(EXIT_OK, "", "ckpt reshard '%s' '%s'", k, merged);
        char mesh[64];
        expect_yard(EXIT_OK, "", "ckpt reshard '%s' '%s' --mesh %s", merged, cut, format_mesh(mesh, &r.to));
        struct checkpoint *m = open_checkpoint(merged), *c = open_checkpoint(cut);
        expect_mesh(m->pieces->mesh, &one_rank, r.from.zero);
        expect_mesh(strategy_of(m), &r.from, r.from.zero);
        expect_mesh(c->pieces->mesh, &r.to, r.from.zero);
        expect_mesh(strategy_of(c), &r.to, r.from.zero);
        expect_state(m, i);
        expect_state(c, i);
        json_t *said = yard_json("ckpt ls --json '%s'", merged);
        assert_true(number_at(said, "mesh.dp") == 1);
        assert_true(number_at(said, "strategy.dp") == r.from.dp);
        free_checkpoint(m);
        free_checkpoint(c);
        free_mesh(&r.from);
        free_mesh(&r.to);
    }
}

/* ---- the strict reader ------------------------------------------------------------------------------------------ */

static const struct config small = {.layers = 1, .heads = 2, .channels = 8, .seq_len = 4, .vocab = 9, .tied = true};

static char *small_state(const char *name)
{
    char *path = copy_string(temp_path(name));
    struct mesh m = mesh_of(&small, 1, 1, 2, 1);
    clear_folder(path);
    write_random_state(path, &small, &m, 3, 1, 5);
    free_mesh(&m);
    return path;
}

static void overwrite(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_true(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The manifest with the first `old` replaced, and a hash that fits. */
static void change_manifest(const char *folder, const char *text, const char *old, const char *new)
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

static void open_it(void *folder)
{
    struct checkpoint *c = open_checkpoint(folder);
    for (size_t i = 0; i < c->pieces->n; i++) {
        must(verify_tensor(c, i));
    }
    free_checkpoint(c);
}

/* A rule each. */
TEST(the_manifest_is_read_strictly)
{
    static const struct {
        const char *old, *new, *sentence;
    } rules[] = {
        {"\"version\":2", "\"version\":0", "\"version\" must be a whole number from 1 to 2"},
        {"\"version\":2", "\"version\":3,\"more\":1",
         "manifest.json was written by a newer yard, " YARD_VERSION ", in format 3: this one, " YARD_VERSION},
        {"\"run\":\"", "\"run\":\"x", "\"run\" must be 16 hexadecimal digits"},
        {"\"program\":\"", "\"program\":1,\"x\":\"", "Expected string, got integer"},
        {"\"mesh\":\"dp", "\"mesh\":\"dq", "options: --mesh dq=1,pp=1,tp=2: expected dp=A"},
        {"\"step\":3", "\"step\":-3", "\"step\" must be a whole number from 0"},
        {"\"step\":3", "\"steq\":3", "Object item not found: step"},
        {"\"step\":3", "\"step\":3,\"more\":1", "1 object item(s) left unpacked: more"},
        {"\"step\":3", "\"step\":3,\"step\":3", "duplicate object key"},
        {"\"data\":\"", "\"data\":\"A", "\"data\" must be 16 hexadecimal digits"},
        {"\"tokenizer\":\"bytes\"", "\"tokenizer\":7", "Expected string, got integer"},
        {"\"heads\":2", "\"heads\":3", "config: 8 channels cannot be shared by 3 heads"},
        {"\"tied\":true", "\"tied\":1", "config: Expected true or false, got integer"},
        {"\"options\":{", "\"options\":{\"x\":1,", "options: \"x\" must be a text"},
        {"\"rank\":1,\"bytes\"", "\"rank\":0,\"bytes\"", "files: rank 0 is there twice"},
        {"\"name\":\"wpe.weight\"", "\"name\":\"wqe.weight\"", "expected {\"name\":\"wpe.weight\",\"role\":\"value\""},
        {"\"shape\":[9,8]", "\"shape\":[8,9]", "tensor 0 (wte.weight, value): expected {"},
        {"\"rank\":0,\"box\":", "\"rank\":1,\"box\":", "\"file\" must be \"rank-1.safetensors\""},
        {"\"file\":\"rank-0.safetensors\"", "\"file\":\"../rank-0.safetensors\"", "\"file\" must be \"rank-0"},
        {"[[0,4],[0,8]]", "[[0,4],[0,9]]", "the range [0, 9) is empty or not within [0, 8)"},
        {"[[0,4],[0,8]]", "[[0,4,5],[0,8]]", "1 array item(s) left unpacked"},
        {"[[0,4],[0,8]]", "[[0,8],[0,4]]", "32 elements of F32; the file has not"},
        {"\"pieces\":[", "\"pieces\":[1,2,3,4,5,", "\"pieces\" must be a list of 1 to 6"},
        {"\"offset\":", "\"offset\":9", "\"offset\" must be a whole number from 8"},
        {"[[0,4],[0,8]]", "[[0,3],[0,8]]", "at byte"},
        {"]}\n", "]}]\n", "it is no JSON at line"},
    };
    char *folder = small_state("strict"), *path = lasting("%s/" MANIFEST, folder);
    size_t n;
    char *text = read_whole(path, &n);
    for (size_t i = 0; i < COUNT(rules); i++) {
        change_manifest(folder, text, rules[i].old, rules[i].new);
        struct outcome o = run_child(open_it, folder);
        if (o.code != 1 || !strstr(o.text, rules[i].sentence))
            test_failed("%s for %s: exit code %d, expected 1 and \"%s\"; got:\n%s\n", rules[i].new, rules[i].old,
                        o.code, rules[i].sentence, o.text);
    }
    overwrite(path, text, n - 1);
    expect_refusal(open_it, folder, 1, "its first line says hash");
    overwrite(path, text + 1, n - 1);
    expect_refusal(open_it, folder, 1, "it must begin with a line {\"hash\":");
    overwrite(path, text, n);
    assert_int_equal(run_child(open_it, folder).code, 0);
    free(text);
    free(folder);
}

static void put_first(const struct checkpoint *c, float x)
{
    size_t size;
    struct piece *p = &c->pieces->tensor[0].piece[0];
    char *file = rank_file(c, p->rank), *bytes = read_whole(file, &size);
    memcpy(bytes + p->file_offset, &x, sizeof x);
    overwrite(file, bytes, size);
    p->hash = hash_bytes(bytes + p->file_offset, ELEMENT_BYTES * piece_elements(p), 0);
    free(file);
    free(bytes);
}

/* Those of before runs had names. */
TEST(older_manifests_are_read)
{
    static const char *const newer[] = {"\"version\":2,\"program\":\"" YARD_VERSION "\"",
                                        ",\"run\":\"0000000000000000\""},
                             *const older[] = {"\"version\":1", ""};
    char *folder = small_state("older"), *path = lasting("%s/" MANIFEST, folder);
    for (size_t i = 0, n; i < COUNT(newer); i++) {
        char *text = read_whole(path, &n);
        change_manifest(folder, text, newer[i], older[i]);
        free(text);
    }
    struct checkpoint *c = open_checkpoint(folder);
    assert_int_equal(c->run, 0);
    assert_true(!*c->program);
    expect_state(c, 5);
    expect_yard(EXIT_OK, "not known, session 1; written by an older yard", "ckpt ls '%s'", folder);
    expect_yard(EXIT_OK, "whether they are of one run is not known", "ckpt diff '%s' '%s'", folder, folder);
    free_checkpoint(c);
    free(folder);
}

/* Tensors of several windows, from rows and columns to shards; then a byte in the last window is another. */
/* Tensor 3 of two states, which were written with the seeds 9 and 10: their distance, and the second one's norm. */
static void expect_distances(const struct checkpoint *nine, const struct checkpoint *ten)
{
    struct difference d = compare_tensor(nine, ten, 3);
    double distance = 0, norm = 0;
    for (size_t i = 0; i < tensor_elements(&ten->pieces->tensor[3]); i++) {
        distance += pow((double)state_value(9, 3, i) - (double)state_value(10, 3, i), 2);
        norm += pow((double)state_value(10, 3, i), 2);
    }
    assert_true(fabs(d.distance / sqrt(distance) - 1) < 1e-9);
    assert_true(fabs(d.norm / sqrt(norm) - 1) < 1e-9);
}

TEST(large_tensors_are_streamed)
{
    struct config c = {.layers = 1, .heads = 4, .channels = 160, .seq_len = 8, .vocab = 5003, .tied = true};
    const char *k = temp_path("large"), *n = temp_path("cut");
    struct mesh from = mesh_of(&c, 1, 1, 3, 0), to = mesh_of(&c, 2, 1, 2, 3);
    write_random_state(k, &c, &from, 1, 1, 9);
    assert_true(reshard_to(k, n, &c, &to) > 5000000);
    struct checkpoint *cut = open_checkpoint(n), *whole = open_checkpoint(k);
    expect_state(cut, 9);
    for (size_t i = 0; i < cut->pieces->n; i++)
        assert_int_equal(compare_tensor(whole, cut, i).elements, 0);
    write_random_state(temp_path("b"), &c, &from, 1, 1, 10);
    struct checkpoint *b = open_checkpoint(temp_path("b"));
    expect_distances(cut, b);
    free_checkpoint(b);
    put_first(whole, 0);
    for (int nan = 0; nan < 2; nan++) {
        put_first(cut, nan ? NAN : -0.0F);
        struct difference d = compare_tensor(whole, cut, 0);
        assert_int_equal(d.elements, 1);
        assert_true(nan ? isnan(d.most) : d.most == 0);
    }
    const struct piece *p = &cut->pieces->tensor[0].piece[0];
    assert_true(4 * piece_elements(p) > 600000); /* more than two windows */
    char *file = rank_file(cut, p->rank);
    size_t size;
    char *bytes = read_whole(file, &size);
    bytes[p->file_offset + 4 * piece_elements(p) - 1] ^= 1;
    overwrite(file, bytes, size);
    struct problem *found = verify_tensor(cut, 0);
    assert_true(found);
    assert_true(strstr(found->sentence, "is damaged: tensor wte.weight"));
    free(found);
    free(bytes);
    free(file);
    free_checkpoint(cut);
    free_checkpoint(whole);
    free_mesh(&from);
    free_mesh(&to);
}

/* A flipped bit is found wherever it is; or it is one of the spaces after a header, which say nothing. */
static void expect_flips_found(const char *folder, const char *file, size_t every)
{
    char *path = lasting("%s/%s", folder, file);
    size_t n, length = 0;
    char *bytes = read_whole(path, &n);
    uint64_t header = 0;
    if (strcmp(file, MANIFEST) != 0)
        memcpy(&header, bytes, 8);
    while (header && length < header && memchr(bytes + 8 + length, '}', header - length))
        length++; /* one byte after the last brace */
    for (size_t i = 0; i < n; i += i < 64 ? 1 : every) {
        bool space = header && i >= 8 + length && i < 8 + header;
        bytes[i] ^= (char)(1 << i % 8);
        overwrite(path, bytes, n);
        struct problem *p = attempt(open_it, (void *)folder);
        if (!p && !space)
            test_failed("bit %zu of byte %zu of %s is flipped, and nobody sees it\n", i % 8, i, file);
        free(p);
        bytes[i] ^= (char)(1 << i % 8);
    }
    overwrite(path, bytes, n);
    assert_null(attempt(open_it, (void *)folder));
    free(bytes);
}

TEST(flipped_bits_are_found)
{
    char *folder = small_state("flips");
    int open = count_files("/proc/self/fd");
    expect_flips_found(folder, MANIFEST, 61);
    expect_flips_found(folder, "rank-0.safetensors", 67);
    expect_flips_found(folder, "rank-1.safetensors", 127);
    assert_int_equal(count_files("/proc/self/fd"), open); /* nor do files stay open that were found damaged */
    free(folder);
}

TEST(other_lengths_are_found)
{
    char *folder = small_state("lengths"), *path = lasting("%s/rank-1.safetensors", folder);
    size_t n;
    char *bytes = read_whole(path, &n);
    for (size_t length = 0; length < n; length += 1 + length / 16) {
        overwrite(path, bytes, length);
        struct problem *p = attempt(open_it, folder);
        assert_non_null(p);
        free(p);
    }
    overwrite(path, bytes, n + 1); /* read_whole() puts a zero after the bytes */
    expect_refusal(open_it, folder, 1, "too long");
    unlink(path);
    struct problem *p = attempt(open_it, folder);
    assert_non_null(p);
    free(p);
    free(bytes);
    free(folder);
}

/* ---- the newest, and those that go ------------------------------------------------------------------------------- */

static void expect_newest(const char *folder, const char *name)
{
    char *found = find_checkpoint(folder), *expected = lasting("%s/%s", folder, name);
    assert_string_equal(found, expected);
    free(found);
}

static void add_state(const char *folder, uint32_t step, int64_t session)
{
    char *path = lasting("%s/step-%u", folder, step);
    struct mesh m = mesh_of(&small, 2, 1, 1, 1);
    write_random_state(path, &small, &m, step, session, step);
    free_mesh(&m);
}

TEST(the_newest_is_of_the_last_session)
{
    const char *folder = temp_path("newest");
    char *old = lasting("%s/step-9", folder), *damaged = lasting("%s/step-40/" MANIFEST, folder);
    make_folder(folder);
    add_state(folder, 9, 1);
    add_state(folder, 20, 1);
    add_state(folder, 30, 1);
    expect_newest(folder, "step-30");
    add_state(folder, 25, 2); /* resumed from 20 */
    expect_newest(folder, "step-25");
    assert_int_equal(last_session(folder), 2);
    add_state(folder, 30, 2); /* the same name: it takes the other's place */
    expect_newest(folder, "step-30");
    prune_checkpoints(folder, 0, 3);
    assert_int_not_equal(access(old, F_OK), 0);
    add_state(folder, 40, 2);
    expect_newest(folder, "step-40");
    overwrite(damaged, "{", 1);
    expect_newest(folder, "step-30"); /* with a warning */
    prune_checkpoints(folder, 2, 0);
    assert_int_equal(count_files(folder), 2 + 3); /* what is damaged is not ours to remove */
}

/* What a link leads to is not ours: neither its files nor the folder. */
TEST(links_are_not_followed)
{
    const char *folder = temp_path("links");
    char *target = small_state("elsewhere"),
         *elsewhere = realpath(target, NULL); /* links are relative to their folder */
    char *link = lasting("%s/step-1", folder);
    int files = count_files(elsewhere);
    make_folder(folder);
    assert_int_equal(symlink(elsewhere, link), 0);
    expect_newest(folder, "step-1");
    add_state(folder, 2, 1);
    prune_checkpoints(folder, 0, 1); /* step 3 of the same session is the newest */
    expect_newest(folder, "step-1");
    add_state(folder, 4, 1);
    prune_checkpoints(folder, 0, 1);
    expect_newest(folder, "step-4");
    assert_int_equal(symlink(elsewhere, link), 0);
    add_state(folder, 1, 2); /* in the link's place */
    assert_int_equal(count_files(elsewhere), files);
    assert_int_equal(count_files(folder), 2 + 2);
    free(target);
    free(elsewhere);
}

/* ---- runs that go on -------------------------------------------------------------------------------------------- */

enum { HALF = 2 };
#define TRAIN "--model tiny --layers 4 --batch 12 --val-share 0 --steps 4 "

/* Parameters of a unit begin on multiples of UNIT_ALIGN; what lies between them is never updated to anything. */
static void expect_zeros_between(const struct model *m)
{
    for (int u = 0; u < m->params->n_units && m->mesh->tp == 1 && m->mesh->zero == 0; u++) {
        struct tensor *moment = m->replica[0].m[u];
        float *values = allocate(m->params->unit[u].elements, sizeof *values);
        if (moment)
            read_tensor(moment, values);
        for (int i = m->params->unit[u].first_param; i < m->params->unit[u].first_param + m->params->unit[u].n_params;
             i++) {
            const struct param *p = &m->params->param[i];
            size_t n = (size_t)(p->shape[0] * p->shape[1]);
            for (size_t k = n; k < round_up(n, UNIT_ALIGN); k++)
                assert_true(values[p->offset + k] == 0);
        }
        free(values);
    }
}

static struct trainer *start(const char *words)
{
    struct settings *s = settings_of(words);
    struct trainer *t = new_trainer(s, LIST_TRAIN | OPEN_DATA);
    if (s->resumed) {
        load_checkpoint(t->model, s->source.checkpoint, LOAD_ALL_STATE);
        expect_zeros_between(t->model);
    } else
        init_random(t->model, (uint64_t)s->seed);
    return t;
}

static struct state end(struct trainer *t)
{
    struct state s = read_whole_state(t);
    close_source(&((struct settings *)t->settings)->source);
    free_trainer(t);
    return s;
}

static void save_half(struct trainer *t, const char *folder)
{
    struct checkpoint *c = describe_training(t, HALF);
    make_folder(folder);
    save_checkpoint(t->model, folder, c);
    free_checkpoint(c);
}

static const char *resume_words(const char *folder, const char *more)
{
    static char words[1024];
    snprintf(words, sizeof words, "--resume %s %s", folder, more);
    return words;
}

static const char *const meshes[] = {
    "-d 0:0",
    "-d 0:0x2 --zero 0",
    "-d 0:0x3 --zero 1 --recompute full",
    "-d 0:0x2 --zero 2",
    "-d 0:0x2 --mesh pp=2 --micro-batch 3",
    "-d 0:0x4 --mesh pp=4 --micro-batch 2 --pipeline gpipe",
    "-d 0:0x2 --mesh pp=2 --micro-batch 3 --pipeline interleaved --recompute selective",
    "-d 0:0x2 --mesh tp=2",
    "-d 0:0x2 --mesh tp=2 --clip 0",
    "-d 0:0x4 --mesh dp=2,tp=2 --zero 0",
    "-d 0:0x4 --mesh dp=2,tp=2 --zero 1",
    "-d 0:0x4 --mesh dp=2,pp=2 --zero 2 --micro-batch 2",
    "-d 0:0x4 --mesh pp=2,tp=2 --stages 1,3 --untied",
    "-d 0:0x8 --mesh dp=2,pp=2,tp=2 --micro-batch 3",
    "-d 0:0 --grad-groups 2 --micro-batch 3",
    "-d 0:0x3 --zero 3",
    "-d 0:0x4 --mesh dp=2,tp=2 --zero 3 --micro-batch 3",
    "-d 0:0x2 --swap layer --swap-what activations,optimizer --recompute selective",
};

/* Two steps, a break, and two more give the bits of four, with the options and the strategy of the checkpoint alone. */
TEST(a_resumed_run_is_the_unbroken_one)
{
    need_own_products();
    for (size_t i = 0; i < COUNT(meshes); i++) {
        char words[512];
        const char *folder = temp_path("resumed");
        snprintf(words, sizeof words, TRAIN "%s", meshes[i]);
        struct trainer *t = start(words);
        run_steps(t, 1, HALF);
        save_half(t, folder);
        run_steps(t, HALF + 1, 2 * HALF);
        struct state whole = end(t);
        t = start(resume_words(folder, ""));
        run_steps(t, HALF + 1, 2 * HALF);
        struct state resumed = end(t);
        assert_int_equal(whole.n, resumed.n);
        expect_same_bits(meshes[i], resumed.values, whole.values, whole.n);
        free(whole.values);
        free(resumed.values);
    }
}

/* What is written from the devices has the bytes of what a checkpoint of them is exported to. */
TEST(the_saved_model_is_the_checkpoint_s)
{
    need_own_products();
    const char *folder = temp_path("saved");
    const char *ours = temp_path("ours.safetensors");
    const char *its = temp_path("its.safetensors");
    for (size_t i = 0; i < COUNT(meshes); i++) {
        char words[512];
        snprintf(words, sizeof words, TRAIN "%s", meshes[i]);
        struct trainer *t = start(words);
        run_steps(t, 1, HALF);
        save_half(t, folder);
        struct checkpoint *c = open_checkpoint(folder);
        save_model(t->model, ours, HALF, c->tokenizer);
        export_safetensors(c, its, PLAIN_NAMES);
        expect_same_file(ours, its);
        free_checkpoint(c);
        free_trainer(t);
    }
}

/* On each mesh the state of each other one is, once loaded, the same to the bit; values alone where that is wanted. */
TEST(any_mesh_loads_any_other)
{
    need_own_products();
    static const char *const other[] = {"-d 0:0 --mesh dp=1", "-d 0:0x3 --mesh dp=3 --zero 3",
                                        "-d 0:0x4 --mesh pp=2,tp=2 --zero 0", "-d 0:0x2 --mesh tp=2"};
    const char *folder = temp_path("loaded");
    for (size_t i = 1; i < COUNT(meshes); i += 3) {
        char words[512];
        snprintf(words, sizeof words, TRAIN "%s", meshes[i]);
        struct trainer *t = start(words);
        bool untied = t->settings->untied;
        run_steps(t, 1, HALF);
        save_half(t, folder);
        struct state saved = end(t);
        for (size_t k = 0; k < COUNT(other) && !untied; k++) {
            snprintf(words, sizeof words, "%s --micro-batch 0", other[k]);
            struct state loaded = end(start(resume_words(folder, words)));
            expect_same_bits(other[k], loaded.values, saved.values, saved.n);
            free(loaded.values);
        }
        struct source s = open_source(folder, 0);
        t = new_trainer(settings_of("--model tiny --layers 4 -d 0:0x2 --mesh tp=2 --val-share 0"),
                        LIST_TRAIN | OPEN_DATA);
        if (!untied) {
            init_from_source(t->model, &s);
            struct state values = read_whole_state(t);
            expect_same_bits("--init", values.values, saved.values, saved.n_parameters);
            for (size_t k = values.n_parameters; k < values.n; k++)
                assert_true(values.values[k] == 0);
            free(values.values);
        }
        close_source(&s);
        free_trainer(t);
        free(saved.values);
    }
}

/* The strategy goes on with another dp; one device runs plainly and keeps the record; others are refused. */
TEST(the_strategy_is_rescaled)
{
    const char *folder = temp_path("strategy");
    struct trainer *t = start(TRAIN "-d 0:0x4 --mesh dp=2,tp=2");
    save_half(t, folder);
    free(end(t).values);
    static const struct {
        const char *words;
        int dp, pp, tp;
        const char *record;
    } cases[] = {
        {"", 2, 1, 2, "dp=2,pp=1,tp=2"},
        {"-d 0:0x2", 1, 1, 2, "dp=1,pp=1,tp=2"},
        {"-d 0:0x8", 4, 1, 2, "dp=4,pp=1,tp=2"},
        {"-d 0:0", 1, 1, 1, "dp=2,pp=1,tp=2"},
        {"-d 0:0x2 --mesh pp=2", 1, 2, 1, "dp=1,pp=2,tp=1"},
        {"-d 0:0x4", 2, 1, 2, "dp=2,pp=1,tp=2"},
        {"-d 0:0 --mesh dp=1", 1, 1, 1, "dp=1,pp=1,tp=1"},
    };
    const char *merged = lasting("%s-merged", folder);
    expect_yard(EXIT_OK, "dp=1,pp=1,tp=1, zero 1, of strategy dp=2,pp=1,tp=2;", "ckpt reshard '%s' '%s'", folder,
                merged);
    for (size_t i = 1; i < 2 * COUNT(cases); i++) { /* the first devices are those of the run, not of the pieces */
        const size_t k = i / 2;
        t = new_trainer(settings_of(resume_words(i % 2 ? merged : folder, cases[k].words)),
                        LIST_TRAIN | OPEN_DATA | PLAN_ONLY);
        assert_int_equal(t->mesh.dp, cases[k].dp);
        assert_int_equal(t->mesh.pp, cases[k].pp);
        assert_int_equal(t->mesh.tp, cases[k].tp);
        assert_string_equal(text_at(recorded_options(t), "mesh"), cases[k].record);
        close_source(&((struct settings *)t->settings)->source);
        free_trainer(t);
    }
    static const struct {
        const char *words;
        int ahead;
    } batches[] = {{"--batch 24", 1 - HALF}, {"--batch 6", 4 - HALF}, {"--batch 10", 3 - HALF}, {"", 0}};
    for (size_t i = 0; i < COUNT(batches); i++) { /* 24 sequences were trained on */
        t = new_trainer(settings_of(resume_words(folder, batches[i].words)), LIST_TRAIN | OPEN_DATA | PLAN_ONLY);
        assert_int_equal(t->ahead, batches[i].ahead);
        struct checkpoint *c = describe_training(t, HALF + 1); /* whole batches, and one more */
        assert_int_equal(c->samples, (int64_t)round_up(24, (size_t)t->batch) + t->batch);
        free_checkpoint(c);
        close_source(&((struct settings *)t->settings)->source);
        free_trainer(t);
    }
    expect_yard(EXIT_USAGE, "the nearest that can is --mesh dp=1,pp=1,tp=2 with 2", "train --resume '%s' -d 0:0x3",
                folder);
    expect_yard(EXIT_USAGE, "the nearest that can is --mesh dp=6,pp=1,tp=2 with 12", "train --resume '%s' -d 0:0x16",
                folder);
}

static int count_lines(const char *path, const char *with)
{
    size_t size;
    char *text = read_whole(path, &size);
    int n = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        n += strstr(line, with) != NULL;
    free(text);
    return n;
}

/* A run that is stopped and resumed leaves the files and the log of one that was not. */
TEST(the_command_line_resumes)
{
    const char *whole = temp_path("cli-whole");
    const char *broken = temp_path("cli-broken");
    const char *log = temp_path("cli.jsonl");
    const char *words = "train --model nano --layers 2 --steps 5 --val-batches 1 --sample-tokens 0";
    struct ran r = expect_yard(EXIT_OK, "", "%s --save '%s'", words, whole);
    r = expect_yard(EXIT_OK, "", "%s --save '%s' --stop-after 3 --save-every 1 --keep 2 --log '%s'", words, broken,
                    log);
    char *expected =
        format_string("yard train --resume %s --save %s --save-every 1 --keep 2 --log %s", broken, broken, log);
    assert_non_null(strstr(r.err, expected));
    assert_int_equal(count_files(broken), 2 + 2 + 1); /* ., .., two checkpoints and the model */
    FILE *f = fopen(log, "a");                        /* as a run that was killed within a line leaves it */
    assert_true(f);
    assert_true(fputs("{\"step\":4,\"lo", f) >= 0);
    assert_int_equal(fclose(f), 0);
    r = expect_yard(EXIT_OK, "", "%s --val-batches 1 --sample-tokens 0", strstr(expected, "train"));
    char *a = lasting("%s/step-5", whole), *b = lasting("%s/step-5", broken);
    char *x = lasting("%s/rank-0.safetensors", a), *y = lasting("%s/rank-0.safetensors", b);
    expect_same_file(x, y);
    assert_int_equal(count_lines(log, "{\"run\""), 1);
    assert_int_equal(count_lines(log, "\"norm\""), 5);
    r = expect_yard(EXIT_OK, "", "ckpt diff '%s' '%s'", a, b);
    r = run_yard("%s", strstr(expected, "train"));
    assert_int_equal(r.code, 0);
    assert_true(strstr(r.err, "nothing is left to train"));
    assert_true(!strstr(r.err, "warning"));
    size_t n;
    char *manifest = lasting("%s/step-5/" MANIFEST, broken), *text = read_whole(manifest, &n);
    char *vector = strndup(strstr(text, "\"vector\":"), strcspn(strstr(text, "\"vector\":"), ","));
    char *step = lasting("%s/step-5", broken);
    change_manifest(step, text, vector, "\"vector\":3");
    r = run_yard("%s", strstr(expected, "train"));
    assert_int_equal(r.code, 0);
    assert_true(strstr(r.err, "was trained with vectors of 3 floats"));
    free(text);
    free(vector);
    r = run_yard("train --resume '%s' --data LICENSE --val-batches 1 --sample-tokens 0", broken);
    assert_int_equal(r.code, 0);
    assert_true(strstr(r.err, "the data are not those that"));
    free(expected);
}

static uint64_t run_of(const char *path)
{
    struct checkpoint *c = open_checkpoint(path);
    uint64_t run = c->run;
    assert_string_equal(c->program, YARD_VERSION);
    free_checkpoint(c);
    return run;
}

static void expect_other_models_refused(const char *words, const char *folder)
{
    static const char *const others[] = {"--seq-len 16", "--untied", "--heads 4", "--channels 64", "--tokens chars"};
    for (size_t i = 0; i < COUNT(others); i++) {
        struct ran r = run_yard("%s --save \"%s\" %s", words, folder, others[i]);
        assert_int_equal(r.code, 2);
        assert_true(strstr(r.err, "is another model"));
    }
}

/* A second run is refused while the first one has the folder; and the command that is printed is one for a shell. */
TEST(a_folder_is_one_run_s)
{
    const char *folder = temp_path("it's mine"),
               *words = "train --model tiny --steps 2 --val-share 0 --sample-tokens 0";
    make_folder(folder);
    int lock = lock_folder("a test", folder);
    struct ran r = run_yard("%s --save \"%s\"", words, folder);
    assert_int_equal(r.code, 2);
    assert_true(strstr(r.err, "another run is writing there"));
    assert_int_equal(count_files(folder), 2);
    close(lock);
    char *stray = lasting("%s/step-7.tmp-2147483647", folder);
    make_folder(stray); /* as a run leaves it that was killed */
    r = run_yard("%s --save \"%s\" --stop-after 1", words, folder);
    assert_int_not_equal(access(stray, F_OK), 0);
    const char *resumes = strstr(r.err, "train --resume '");
    assert_int_equal(r.code, 0);
    assert_true(resumes);
    r = expect_yard(EXIT_OK, "", "%.*s --val-share 0 --sample-tokens 0", (int)strcspn(resumes, "\n"), resumes);
    expect_newest(folder, "step-2");
    char *first = lasting("%s/step-1", folder), *other = lasting("%s-other", folder);
    assert_int_equal(access(first, F_OK), 0); /* it is the same run that goes on */
    const char *snapshot = lasting("%s.snap", other);
    r = run_yard("train --resume \"%s\" --save \"%s\" --snapshot \"%s\" --steps 3 --val-share 0 --sample-tokens 0",
                 folder, other, snapshot);
    assert_int_equal(r.code, 0);
    assert_int_equal(last_session(folder), 2);
    assert_int_equal(last_session(other), 3);
    const uint64_t run = run_of(folder);
    assert_true(run);
    assert_int_equal(run, run_of(first));
    assert_int_equal(run, run_of(other));
    assert_int_equal(run, run_of(snapshot));
    r = expect_yard(EXIT_FAILED, "of one run, and the later is ", "ckpt diff \"%s\" \"%s\"", other, folder);
    expect_text(r.out, lasting("later is %s/step-3\n", other));
    expect_yard(EXIT_OK, "and of the same moment", "ckpt diff \"%s\" \"%s\"", other, snapshot);
    r = run_yard("%s --save \"%s\"", words, folder);
    assert_int_not_equal(access(first, F_OK), 0); /* another run begins */
    assert_int_equal(r.code, 0);
    assert_int_equal(last_session(folder), 3);
    assert_true(run_of(folder) != run);
    expect_yard(EXIT_FAILED, "they are of two runs", "ckpt diff \"%s\" \"%s\"", other, folder);
    expect_other_models_refused(words, folder);
}

/* ---- the commands ----------------------------------------------------------------------------------------------- */

static void expect_ckpt(const char *format, const char *a, const char *b, int code, const char *part)
{
    char words[1024];
    snprintf(words, sizeof words, format, a, b);
    expect_yard(code, part, "%s", words);
}

TEST(the_commands)
{
    char *a = small_state("commands");
    char *b = temp_path("other");
    char *bin = temp_path("m.bin");
    char *hf = temp_path("hf");
    expect_ckpt("ckpt ls '%s'%s", a, "", 0, "h.0.attn.c_attn.weight       value   [24, 8]        rows in 3");
    expect_ckpt("ckpt ls --json '%s'%s", a, "", 0, "\"sections\": 3");
    expect_ckpt("ckpt verify '%s'%s", a, "", 0, "sound");
    expect_ckpt("ckpt reshard '%s' '%s' --mesh dp=3 --zero 3", a, b, 0, "dp=3,pp=1,tp=1, zero 3");
    expect_ckpt("ckpt reshard '%s' '%s' --mesh dp=3 --zero 3", a, b, 2, "is a folder with files in it");
    expect_ckpt("ckpt diff '%s' '%s'", a, b, 0, "0 of");
    expect_ckpt("ckpt reshard '%s' '%s' --mesh tp=3 --plan", a, b, 2, "use tp=2");
    expect_ckpt("ckpt reshard '%s' '%s' --plan --json", a, b, 0, "\"from_offset\": 0");
    expect_ckpt("ckpt export '%s' '%s'", a, hf, 0, "Hugging Face's form");
    expect_ckpt("ckpt export '%s' '%s'", b, bin, 0, "llm.c's form");
    expect_ckpt("ckpt verify '%s'%s", bin, "", 4, "is no folder");
    expect_ckpt("ckpt lst '%s'%s", a, "", 2, "it takes ls, verify, diff, reshard or export");
    char *file = lasting("%s/rank-2.safetensors", b);
    size_t n;
    char *bytes = read_whole(file, &n);
    bytes[n - 1] ^= 1;
    overwrite(file, bytes, n);
    expect_ckpt("ckpt verify '%s'%s", b, "", 1, "is damaged: tensor");
    expect_ckpt("ckpt verify --json '%s'%s", b, "", 1, "\"sound\": false");
    free(bytes);
    free(a);
}

/* ckpt verify looks at all states of a folder; other commands take the newest that is complete, with a warning. */
TEST(a_folder_is_verified_whole)
{
    size_t n;
    char *folder = temp_path("several"), *file = lasting("%s/step-2/rank-0.safetensors", folder);
    struct config c = {.layers = 1, .heads = 2, .channels = 8, .seq_len = 4, .vocab = 9, .tied = true};
    struct mesh m = mesh_of(&c, 1, 1, 1, 0);
    make_folder(folder);
    for (uint32_t step = 1; step <= 3; step++) {
        char *path = lasting("%s/step-%u", folder, step);
        write_random_state(path, &c, &m, step, 1, step);
    }
    expect_ckpt("ckpt verify '%s'%s", folder, "", 0, "step-1: sound");
    expect_ckpt("ckpt verify --json '%s'%s", folder, "", 0, "\"step\": 3");
    char *bytes = read_whole(file, &n);
    bytes[n - 1] ^= 1;
    overwrite(file, bytes, n);
    expect_ckpt("ckpt verify '%s'%s", folder, "", 1, "step-2/rank-0.safetensors is damaged: tensor");
    expect_ckpt("ckpt verify '%s'%s", folder, "", 1, "step-1: sound");
    overwrite(file, bytes, n - 1);
    expect_ckpt("ckpt verify '%s'%s", folder, "", 1, "it is cut short");
    expect_ckpt("ckpt ls '%s'%s", folder, "", 0, "is passed over");
    free(bytes);
    free_mesh(&m);
}

/* What is there already is not replaced by something of another kind, and a checkpoint takes nothing more. */
TEST(nothing_else_is_replaced)
{
    char *a = small_state("kept");
    char *file = lasting("%s-file", a);
    char *bin = lasting("%s.bin", a);
    char *other = lasting("%s-other.bin", a), *within = lasting("%s/x", a);
    char *odd = lasting("%s-\377", a), *slash = lasting("%s-slash/", a);
    overwrite(file, "precious", 8);
    overwrite(other, "precious", 8);
    expect_ckpt("ckpt reshard '%s' '%s'", a, file, 4, "a file of that name is in the way");
    expect_ckpt("ckpt export '%s' '%s'", a, file, 4, "a file of that name is in the way");
    expect_ckpt("ckpt export '%s' '%s'", a, other, 2, "is a file of another kind");
    expect_ckpt("ckpt export '%s' '%s'", a, within, 2, "is a checkpoint, which takes nothing more");
    expect_ckpt("ckpt reshard '%s' '%s'", a, within, 2, "is a checkpoint, which takes nothing more");
    expect_ckpt("train --model tiny --save '%s'%s", a, "", 2, "is a checkpoint, which takes nothing more");
    expect_ckpt("ckpt export '%s' '%s'", a, bin, 0, "llm.c's form");
    expect_ckpt("ckpt export '%s' '%s'", a, bin, 0, "llm.c's form");
    expect_ckpt("ckpt export '%s' '%s-hf/'", a, a, 0, "Hugging");
    make_folder(slash);
    expect_ckpt("ckpt reshard '%s' '%s'", a, slash, 0, "written, in");
    expect_ckpt("ckpt reshard --json '%s' '%s'", a, odd, 0, "kept-?\"");
    struct outcome o = run_child(open_it, a);
    size_t n;
    char *text = read_whole(file, &n);
    assert_int_equal(o.code, 0);
    assert_string_equal(text, "precious");
    free(text);
    free(a);
}

/* llm.c's file and Hugging Face's have the same parameters, from whatever mesh. */
static void expect_small_config(const char *path)
{
    json_t *json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "n_head")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "n_embd")), 8);
    assert_int_equal(json_integer_value(json_object_get(json, "n_layer")), 1);
    assert_int_equal(json_integer_value(json_object_get(json, "n_positions")), 4);
    assert_true(json_is_true(json_object_get(json, "tie_word_embeddings")));
    json_decref(json);
}

TEST(exports_agree)
{
    char *a = small_state("exported");
    char *bin = temp_path("agree.bin");
    char *hf = temp_path("agree");
    struct checkpoint *c = open_checkpoint(a);
    clear_folder(hf);
    export_llmc(c, bin);
    struct tokenizer bytes = tokenizer_from_text("bytes", "");
    json_t *tokenizer = tokenizer_to_json(&bytes), *vocab = json_at(tokenizer, "model.vocab");
    assert_int_equal(json_object_size(vocab), 256);
    export_huggingface(c, hf, tokenizer, -1);
    assert_true(number_at(vocab, "A") == 'A');
    assert_true(number_at(vocab, "\u0120") == ' ');
    assert_true(number_at(vocab, "\u00ff") == 255);
    export_huggingface(c, hf, tokenizer, -1); /* a second time: nothing of the first one is kept beside it */
    assert_int_not_equal(access(lasting("%s.kept-%ld", hf, (long)getpid()), F_OK), 0);
    char *file = lasting("%s/model.safetensors", hf);
    struct llmc_model *m = open_llmc_model(bin);
    struct safetensors *st = open_safetensors(file);
    size_t n = 3 * 8 * 8; /* qkvw: after 128 rows of wte, 4 of wpe, and ln_1 */
    float *theirs = allocate(n, sizeof *theirs), *ours = allocate(n, sizeof *ours);
    read_at(m->file, theirs, n * sizeof *theirs, LLMC_HEADER_BYTES + 4 * 8 * (128 + 4 + 2));
    struct param qkv = {.shape = {3 * small.channels, small.channels}, .conv1d = true};
    read_floats(st, find_tensor(st, "h.0.attn.c_attn.weight"), ours);
    ours = transpose_conv1d(&qkv, ours, FILE_TO_OURS);
    expect_same_bits("qkvw", ours, theirs, n);
    for (size_t i = 0; i < n; i++) /* tensor 6 of the checkpoint */
        assert_true(theirs[i] == state_value(5, 6, i));
    assert_int_equal(read_config(file, 0).heads, 2);
    assert_int_equal(read_config(bin, 0).vocab, 9);
    expect_small_config(lasting("%s/config.json", hf));
    close_llmc_model(m);
    close_safetensors(st);
    free_checkpoint(c);
    free(theirs);
    free(ours);
    free(a);
}

static void export_it(void *checkpoint) { export_llmc(checkpoint, temp_path("untied.bin")); }

TEST(a_head_of_its_own_is_exported)
{
    struct config c = small;
    c.tied = false;
    struct mesh m = mesh_of(&c, 1, 1, 2, 0);
    const char *path = temp_path("untied"), *hf = temp_path("untied-hf");
    write_random_state(path, &c, &m, 3, 1, 5);
    struct checkpoint *k = open_checkpoint(path);
    export_huggingface(k, hf, NULL, -1);
    char *file = lasting("%s/model.safetensors", hf), *about = lasting("%s/config.json", hf);
    size_t n;
    char *text = read_whole(about, &n);
    assert_non_null(strstr(text, "\"tie_word_embeddings\": false"));
    assert_false(read_config(file, 0).tied);
    expect_refusal(export_it, k, 2, "which llm.c's format has no place for");
    free_checkpoint(k);
    free_mesh(&m);
    free(text);
}
