/* test_reshard.c - the pieces of a checkpoint, and moving them from one mesh to another and back.
 *
 * It tests src/techniques/reshard, and transfer.c of src/techniques/checkpoint.  It checks that each element of a
 * tensor is in one piece, that a plan which copies pieces of one mesh to those of another is proved right, that a plan
 * with any copy changed is refused, and that a checkpoint which goes from K ranks to N and back to K is the same to the
 * byte.  It catches elements that are lost, copied twice or put elsewhere.
 *
 * To see it fail: in reshard_pieces.c, let a stretch end with its row where width > columns, in place of <.
 *
 * Models and meshes are drawn at random (support_state.h), with uneven heads, layers and vocabularies.  Each value
 * follows from a seed, the number of its tensor, and its place in it.
 *
 *     YARD_CASES=300 build/tests/test_reshard      so many random pairs of meshes
 *
 * test_checkpoint_strict.c tests damaged checkpoints, test_resume.c runs that go on, and test_ckpt.c the command yard
 * ckpt.
 */
#include "techniques/checkpoint/files.h"
#include "tests/support/support_state.h"

#include <dirent.h>
#include <math.h>

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static void expect_covered_once(const struct kept_tensor *tensor)
{
    size_t n = tensor_elements(tensor);
    size_t covered = 0;
    bool *taken = allocate(n, sizeof *taken);
    for (const struct piece *piece = tensor->pieces; piece < tensor->pieces + tensor->n_pieces; piece++)
        for (size_t i = 0; i < piece_elements(piece); i++) {
            size_t stretch;
            size_t element = element_of(tensor, piece, i, &stretch);
            assert_below(element, n);
            assert_false(taken[element]);
            taken[element] = true;
            covered++;
        }
    assert_int_equal(covered, n);
    free(taken);
}

TEST(pieces_cover_each_tensor_once)
{
    for (uint32_t i = 0; i < 60; i++) {
        struct random_case chosen = random_case(1000 + i);
        struct cut_tensors *cut = new_cut_tensors(&chosen.config, &chosen.from);
        for (size_t t = 0; t < cut->n; t++)
            expect_covered_once(&cut->tensors[t]);
        free_cut_tensors(cut);
        free_mesh(&chosen.from);
        free_mesh(&chosen.to);
    }
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static void expect_refuted(const struct copies *copies, const char *what)
{
    struct problem *problem = prove_copies(copies);
    if (!problem)
        test_failed("a plan with %s was not refused\n", what);
    free(problem);
}

/* Makes one copy at a time wrong, in every way. */
static void expect_wrong_copies_refuted(struct copies *copies)
{
    for (size_t i = 0; i < copies->n; i++) {
        struct copy sound = copies->items[i];
        struct copy *copy = &copies->items[i];
        copy->n--;
        expect_refuted(copies, "a copy that is too short");
        copy->n = sound.n + 1;
        expect_refuted(copies, "a copy that is too long");
        *copy = sound;
        copy->from_offset++;
        expect_refuted(copies, "another element");
        *copy = sound;
        copy->to_offset++;
        expect_refuted(copies, "another place");
        *copy = sound;
        copy->from_piece = (copy->from_piece + 1) % (copies->from->n_pieces + 1);
        expect_refuted(copies, "another piece");
        *copy = copies->items[(i + 1) % copies->n];
        if (copies->n > 1)
            expect_refuted(copies, "a copy that is missing, and one that is there twice");
        *copy = sound;
    }
    copies->n--;
    expect_refuted(copies, "its last copy missing");
    copies->n++;
    assert_null(prove_copies(copies));
}

/* A plan of n copies is changed in some ways at each of them, and all n are proved each time.  So the test takes some
 * tensors, and of these the plans with fewer copies than MOST_COPIES. */
TEST(wrong_plans_are_refused)
{
    enum { EVERY_FIFTH = 5, MOST_COPIES = 200 };
    for (uint32_t i = 0; i < 8; i++) {
        struct random_case chosen = random_case(2000 + i);
        struct cut_tensors *from = new_cut_tensors(&chosen.config, &chosen.from),
                           *to = new_cut_tensors(&chosen.config, &chosen.to);
        for (size_t t = 0; t < from->n; t += EVERY_FIFTH) {
            struct copies copies;
            assert_null(plan_copies(&from->tensors[t], &to->tensors[t], "a test", &copies));
            if (copies.n < MOST_COPIES)
                expect_wrong_copies_refuted(&copies);
            free(copies.items);
        }
        free_cut_tensors(from);
        free_cut_tensors(to);
        free_mesh(&chosen.from);
        free_mesh(&chosen.to);
    }
}

static void expect_no_plan(const struct kept_tensor *from, const struct kept_tensor *to, const char *sentence)
{
    struct copies copies;
    struct problem *problem = plan_copies(from, to, "a test", &copies);
    assert_non_null(problem);
    assert_int_equal(problem->code, EXIT_FAILED);
    assert_contains(problem->sentence, sentence);
    free(problem);
    free(copies.items);
}

/* The tensor, of two pieces, with its first piece once more; *pieces has room for the three. */
static struct kept_tensor with_a_replica(const struct kept_tensor *tensor, struct piece pieces[3])
{
    struct kept_tensor changed = *tensor;
    pieces[0] = tensor->pieces[0];
    pieces[1] = tensor->pieces[1];
    pieces[2] = tensor->pieces[0];
    changed.pieces = pieces;
    changed.n_pieces = 3;
    return changed;
}

TEST(holes_and_overlaps_have_no_plan)
{
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.tp = 2});
    struct cut_tensors *cut = new_cut_tensors(&small_config, &mesh);
    struct kept_tensor *tensor = &cut->tensors[0];
    struct kept_tensor with_a_hole = *tensor;
    with_a_hole.n_pieces--;
    expect_no_plan(&with_a_hole, tensor, "do not cover it once: none has element 32 of 72");
    struct piece pieces[3];
    const struct kept_tensor replicated = with_a_replica(tensor, pieces);
    expect_no_plan(&replicated, tensor, "a test: the pieces of tensor wte.weight, value, do not");
    expect_no_plan(tensor, &replicated, "more than one has element 0 of 72");
    tensor->pieces[1].begin[0]--;
    expect_no_plan(tensor, tensor, "more than one has element");
    free_cut_tensors(cut);
    free_mesh(&mesh);
}

/* ---- K to N to K ------------------------------------------------------------------------------------------------- */

static void expect_same_folders(const char *found, const char *expected)
{
    DIR *folder = opendir(found);
    assert_non_null(folder);
    for (const struct dirent *dirent; (dirent = readdir(folder));)
        if (dirent->d_name[0] != '.') {
            char *ours = lasting("%s/%s", found, dirent->d_name), *theirs = lasting("%s/%s", expected, dirent->d_name);
            expect_same_file(ours, theirs);
        }
    closedir(folder);
    assert_int_equal(count_files(found), count_files(expected));
}

static uint64_t reshard_to(const char *from, const char *to, const struct config *config, const struct mesh *mesh)
{
    struct checkpoint *old = open_checkpoint(from), *new = allocate(1, sizeof *new);
    *new = (struct checkpoint){.path = copy_string(to),
                               .step = old->step,
                               .session = old->session,
                               .tokenizer = copy_string(old->tokenizer),
                               .options = json_incref(old->options),
                               .cut = new_cut_tensors(config, mesh)};
    uint64_t moved = reshard_into(old, new);
    free_checkpoint(old);
    free_checkpoint(new);
    return moved;
}

TEST(resharded_and_back_is_the_same)
{
    const char *first = temp_path("k");
    const char *cut = temp_path("n");
    const char *again = temp_path("again");
    for (uint32_t i = 0; i < (uint32_t)number_from("YARD_CASES", 8); i++) {
        struct random_case chosen = random_case(i);
        uint64_t bytes = 0;
        remove_folder(first);
        remove_folder(cut);
        remove_folder(again);
        write_random_state(first, &chosen.config, &chosen.from, 7, 1, i);
        uint64_t there = reshard_to(first, cut, &chosen.config, &chosen.to),
                 back = reshard_to(cut, again, &chosen.config, &chosen.from);
        struct checkpoint *checkpoint = open_checkpoint(cut);
        expect_state(checkpoint, i);
        for (size_t t = 0; t < checkpoint->cut->n; t++)
            bytes += ELEMENT_BYTES * tensor_elements(&checkpoint->cut->tensors[t]);
        assert_int_equal(there, bytes);
        assert_int_equal(back, bytes);
        expect_same_folders(first, again);
        free_checkpoint(checkpoint);
        free_mesh(&chosen.from);
        free_mesh(&chosen.to);
    }
}

static void expect_mesh(struct mesh mesh, const struct mesh *expected, int zero)
{
    char found[MESH_TEXT], wanted[MESH_TEXT];
    assert_string_equal(format_mesh(found, &mesh), format_mesh(wanted, expected));
    assert_int_equal(mesh.zero, zero);
}

/* Without --mesh the strategy is kept, whatever becomes of the pieces; with one both change. */
TEST(merged_pieces_keep_the_strategy)
{
    const char *trained = temp_path("trained");
    const char *merged = temp_path("merged");
    const char *cut = temp_path("recut");
    for (uint32_t i = 0; i < (uint32_t)number_from("YARD_CASES", 8); i++) {
        struct random_case chosen = random_case(3000 + i);
        remove_folder(trained);
        remove_folder(merged);
        remove_folder(cut);
        write_random_state(trained, &chosen.config, &chosen.from, 7, 1, i);
        expect_yard(EXIT_OK, "", "ckpt reshard '%s' '%s'", trained, merged);
        char mesh[MESH_TEXT];
        expect_yard(EXIT_OK, "", "ckpt reshard '%s' '%s' --mesh %s", merged, cut, format_mesh(mesh, &chosen.to));
        struct checkpoint *whole = open_checkpoint(merged), *recut = open_checkpoint(cut);
        expect_mesh(whole->cut->mesh, &one_rank, chosen.from.zero);
        expect_mesh(read_strategy(whole), &chosen.from, chosen.from.zero);
        expect_mesh(recut->cut->mesh, &chosen.to, chosen.from.zero);
        expect_mesh(read_strategy(recut), &chosen.to, chosen.from.zero);
        expect_state(whole, i);
        expect_state(recut, i);
        json_t *said = yard_json("ckpt ls --json '%s'", merged);
        assert_close(number_at(said, "mesh.dp"), 1, 0);
        assert_close(number_at(said, "strategy.dp"), chosen.from.dp, 0);
        free_checkpoint(whole);
        free_checkpoint(recut);
        free_mesh(&chosen.from);
        free_mesh(&chosen.to);
    }
}

/* ---- large tensors ----------------------------------------------------------------------------------------------- */

/* Sets the first value of the first tensor, with a hash that fits. */
static void put_first(const struct checkpoint *checkpoint, float value)
{
    size_t size;
    struct piece *piece = &checkpoint->cut->tensors[0].pieces[0];
    char *file = rank_file(checkpoint, piece->rank), *bytes = read_whole(file, &size);
    memcpy(bytes + piece->file_offset, &value, sizeof value);
    overwrite(file, bytes, size);
    piece->hash = hash_bytes(bytes + piece->file_offset, ELEMENT_BYTES * piece_elements(piece), 0);
    free(file);
    free(bytes);
}

/* Tensor 3 of two states, which were written with the seeds 9 and 10: their distance, and the second one's norm. */
static void expect_distances(struct checkpoint *nine, struct checkpoint *ten)
{
    struct difference difference = compare_tensor(nine, ten, 3);
    double distance = 0, norm = 0;
    for (size_t i = 0; i < tensor_elements(&ten->cut->tensors[3]); i++) {
        distance += pow((double)state_value(9, 3, i) - (double)state_value(10, 3, i), 2);
        norm += pow((double)state_value(10, 3, i), 2);
    }
    assert_close(difference.distance / sqrt(distance), 1, 1e-9);
    assert_close(difference.norm / sqrt(norm), 1, 1e-9);
}

/* A model whose tensor 0, wte.weight, is large, and two meshes: rows and columns on one, shards on the
 * other. */
struct large_case {
    struct config config;
    struct mesh from, to;
};

static struct large_case make_large(void)
{
    struct large_case large = {
        .config = {.layers = 1, .heads = 4, .channels = 160, .seq_len = 8, .vocab = 5003, .tied = true}};
    large.from = cut_mesh(&large.config, (struct mesh){.tp = 3});
    large.to = cut_mesh(&large.config, (struct mesh){.dp = 2, .tp = 2, .zero = 3});
    return large;
}

static struct checkpoint *write_large(const struct large_case *large, const char *name, uint64_t seed)
{
    const char *path = temp_path(name);
    write_random_state(path, &large->config, &large->from, 1, 1, seed);
    return open_checkpoint(path);
}

static struct checkpoint *cut_large(const struct large_case *large, const struct checkpoint *whole)
{
    const char *path = temp_path("cut");
    assert_above(reshard_to(whole->path, path, &large->config, &large->to), 5000000);
    return open_checkpoint(path);
}

static void end_large(struct large_case *large)
{
    free_mesh(&large->from);
    free_mesh(&large->to);
}

TEST(large_tensors_are_copied)
{
    struct large_case large = make_large();
    struct checkpoint *whole = write_large(&large, "large", 9);
    struct checkpoint *cut = cut_large(&large, whole);
    expect_state(cut, 9);
    for (size_t i = 0; i < cut->cut->n; i++)
        assert_int_equal(compare_tensor(whole, cut, i).elements, 0);
    struct checkpoint *other = write_large(&large, "b", 10);
    expect_distances(cut, other);
    free_checkpoint(other);
    free_checkpoint(cut);
    free_checkpoint(whole);
    end_large(&large);
}

/* 0 and -0 differ in their bits and by no amount.  NaN differs from 0 by an amount that is NaN too. */
TEST(values_that_differ_in_a_bit_are_counted)
{
    struct large_case large = make_large();
    struct checkpoint *whole = write_large(&large, "large", 9);
    struct checkpoint *cut = cut_large(&large, whole);
    put_first(whole, 0);
    put_first(cut, -0.0F);
    struct difference difference = compare_tensor(whole, cut, 0);
    assert_int_equal(difference.elements, 1);
    assert_close(difference.most, 0, 0);
    put_first(cut, NAN);
    difference = compare_tensor(whole, cut, 0);
    assert_int_equal(difference.elements, 1);
    assert_true(isnan(difference.most));
    free_checkpoint(cut);
    free_checkpoint(whole);
    end_large(&large);
}

TEST(damage_in_the_last_byte_is_noticed)
{
    struct large_case large = make_large();
    struct checkpoint *whole = write_large(&large, "large", 9);
    struct checkpoint *cut = cut_large(&large, whole);
    const struct piece *piece = &cut->cut->tensors[0].pieces[0];
    assert_above(ELEMENT_BYTES * piece_elements(piece), 600000);
    char *file = rank_file(cut, piece->rank);
    size_t size;
    char *bytes = read_whole(file, &size);
    bytes[piece->file_offset + ELEMENT_BYTES * piece_elements(piece) - 1] ^= 1;
    overwrite(file, bytes, size);
    struct problem *problem = verify_tensor(cut, 0);
    assert_non_null(problem);
    assert_contains(problem->sentence, "is damaged: tensor wte.weight");
    free(problem);
    free(bytes);
    free(file);
    free_checkpoint(cut);
    free_checkpoint(whole);
    end_large(&large);
}
