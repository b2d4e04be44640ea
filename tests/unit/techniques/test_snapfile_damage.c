/* test_snapfile_damage.c - a snapshot file that is damaged, cut, from another version or made up is noticed.
 *
 * It tests snapfile_read.c and snapfile_layout.c of src/techniques/snapshot, and what `yard ckpt` says.  A bit that no
 * hash covers, a length that nobody checks, and a number that is believed and asks for a terabyte of memory are found.
 *
 * To see it fail: in snapfile_layout.c, take a page whose hash is wrong: let parse_page() compare its magic alone.
 *
 * A small file with iterations 1 and 2 is written, and then its bytes are changed (struct image of support_state.h).
 *
 *     YARD_EVERY_BIT=1 build/tests/test_snapfile_damage     every bit is turned over, else each 61st
 */
#include "tests/support/support_state.h"

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static bool notices_flip(struct image *image, size_t at, int bit)
{
    image->bytes[at] ^= (char)(1 << bit);
    put_bytes(image, at, 1);
    bool noticed = notices(image);
    image->bytes[at] ^= (char)(1 << bit);
    put_bytes(image, at, 1);
    return noticed;
}

TEST(every_flipped_bit_is_noticed)
{
    struct snapfile snapfile;
    struct image image = make_image(temp_path("bits.snap"), &snapfile);
    size_t every = (size_t)number_from("YARD_EVERY_BIT", 61);
    size_t tried = 0;
    size_t older = 0;
    for (size_t bit = 0; bit < 8 * MANIFEST_AT; bit += every, tried++) /* pages */
        if (!notices_flip(&image, bit / 8, (int)(bit % 8)) || !image.step)
            test_failed("bit %zu of byte %zu\n", bit % 8, bit / 8);
        else
            older += image.step == 1;
    for (size_t bit = 0; bit < 8 * snapfile.manifest_bytes; bit += 7 * every, tried++)
        if (!notices_flip(&image, MANIFEST_AT + bit / 8, (int)(bit % 8)))
            test_failed("bit %zu of byte %zu of the manifest\n", bit % 8, bit / 8);
    struct checkpoint *checkpoint = open_newest_snapshot(image.path);
    for (size_t i = 0; i < checkpoint->pieces->n; i++)
        for (size_t k = 0; k < checkpoint->pieces->tensors[i].n; k++) {
            const struct piece *piece = &checkpoint->pieces->tensors[i].pieces[k];
            for (size_t bit = 5 * i; bit < 8 * ELEMENT_BYTES * piece_elements(piece); bit += 7 * every, tried++)
                if (!notices_flip(&image, piece->file_offset + bit / 8, (int)(bit % 8)) || image.step != 1 ||
                    !strstr(image.said, checkpoint->pieces->tensors[i].name))
                    test_failed("bit %zu of %s: step %u, %s\n", bit, checkpoint->pieces->tensors[i].name, image.step,
                                image.said);
        }
    for (size_t bit = 0; bit < 64 * snapfile.base.n; bit += every, tried++)
        if (!notices_flip(&image, hashes_at(&snapfile, (int)snapfile.newest.slot) + bit / 8, (int)(bit % 8)) ||
            image.step != 1)
            test_failed("bit %zu of the hashes\n", bit);
    free_checkpoint(checkpoint);
    assert_true(older > 100);
    printf("# %zu bits turned over\n", tried);
    free(image.bytes);
}

TEST(files_of_other_lengths_are_refused)
{
    struct snapfile snapfile;
    struct image image = make_image(temp_path("length.snap"), &snapfile);
    size_t most = image.n;
    assert_int_equal(truncate(image.path, (off_t)most + 1), 0);
    assert_true(notices(&image));
    assert_true(!image.step);
    for (size_t n = most - 1; n > 0; n = n > 509 ? n - 509 : n - 1) {
        assert_int_equal(truncate(image.path, (off_t)n), 0);
        assert_true(notices(&image));
        assert_true(!image.step);
    }
    free(image.bytes);
}

/* What the command says of a file whose newest iteration is damaged, and of one without any. */
TEST(ckpt_names_the_damaged_payload)
{
    struct snapfile snapfile;
    const char *path = temp_path("verify.snap");
    struct image image = make_image(path, &snapfile);
    assert_int_equal(run_yard("ckpt verify '%s'", path).code, EXIT_OK);
    assert_non_null(strstr(run_yard("ckpt ls '%s'", path).out, "step 2, 16 sequences\nsnapshot    slot 2 of 2, "));
    image.bytes[first_piece(path)] ^= 1;
    put_bytes(&image, 0, image.n);
    expect_yard(EXIT_FAILED, "iteration 2 is torn or damaged: ", "ckpt verify '%s'", path);
    struct ran ran = expect_yard(EXIT_OK, "tensor wte.weight, value", "ckpt ls '%s'", path);
    expect_text(ran.out, "step 1,");
    expect_text(run_yard("train --resume '%s'", path).err, lasting("warning: %s: option novel is unknown", path));
    image.bytes[first_piece(path)] ^= 1;
    put_bytes(&image, 0, image.n);
    expect_yard(EXIT_FAILED, "has no whole iteration", "ckpt verify '%s'", path);
    free(image.bytes);
}

/* Before runs had ids the pages had another number in that place; and a yard to come may have another page. */
TEST(older_versions_are_read_and_newer_ones_refused)
{
    static const char now[] = "\"version\":2,\"program\":\"" YARD_VERSION "\"";
    char digits[17];
    struct snapfile snapfile;
    const char *path = temp_path("versions.snap");
    struct image image = make_image(path, &snapfile);
    char *manifest = image.bytes + MANIFEST_AT, *at = strstr(manifest, now);
    memset(at, ' ', strlen(now));
    memcpy(at, "\"version\":1", 11);
    snprintf(digits, sizeof digits, "%016llx",
             (unsigned long long)hash_bytes(manifest + 28, snapfile.manifest_bytes - 28, 0));
    memcpy(manifest + 9, digits, 16);
    snapfile.manifest_hash = hash_bytes(manifest, snapfile.manifest_bytes, 0);
    for (char version = 3; version <= 4; version++) {
        for (char *page = image.bytes; page < manifest; page += SNAPFILE_PAGE) {
            page[8] = version;
            page[24] = 7;
            memcpy(page + 56, &snapfile.manifest_hash, 8);
            memcpy(page + SNAPFILE_PAGE - 8, &(uint64_t){hash_bytes(page, SNAPFILE_PAGE - 8, 0)}, 8);
        }
        put_bytes(&image, 0, image.n);
        expect_yard(version == 3 ? EXIT_OK : EXIT_FAILED,
                    version == 3 ? "not known, session 1; written by an older yard"
                                 : "versions.snap was written by a newer yard, as a snapshot of version 4",
                    "ckpt ls '%s'", path);
    }
    free(image.bytes);
}

/* A file that no run has committed to is not called damaged, nor is one that a run was killed over as it made it. */
TEST(a_file_without_commits_is_not_damaged)
{
    struct snapfile snapfile;
    const char *path = temp_path("without.snap");
    struct image image = make_image(path, &snapfile);
    for (int k = 0; k < 2; k++)
        fill_page(&snapfile, &(struct snapfile_commit){0}, image.bytes + k * SNAPFILE_PAGE);
    put_bytes(&image, 0, image.n);
    for (int empty = 0; empty < 2; empty++) {
        if (empty)
            assert_int_equal(truncate(path, 0), 0);
        struct ran ran = run_yard("ckpt verify '%s'", path);
        if (ran.code != EXIT_FAILED || !strstr(ran.out, "nothing was committed yet") || strstr(ran.out, "damaged") ||
            strstr(ran.err, "damaged"))
            test_failed("code %d: %s%s\n", ran.code, ran.out, ran.err);
        expect_yard(EXIT_FAILED, "nothing was committed yet", "train --resume '%s' --snapshot '%s'", path, path);
    }
    free(image.bytes);
}

/* A terabyte of holes whose pages name two thousand million payloads: memory is asked for what is there. */
TEST(memory_is_bounded_by_the_file_not_by_its_counts)
{
    struct snapfile snapfile;
    char page[SNAPFILE_PAGE];
    const char *path = temp_path("hostile.snap");
    struct image image = make_image(path, &snapfile);
    fill_page(&snapfile, &(struct snapfile_commit){.seq = 9, .step = 9, .slot = 3},
              image.bytes); /* there are two slots */
    put_bytes(&image, 0, image.n);
    assert_true(notices(&image));
    assert_int_equal(image.step, 2);
    assert_true(strstr(image.said, "page 0 is torn or damaged: it has impossible numbers"));
    snapfile.base.n = (size_t)1 << 31;
    snapfile.base.bytes = ((uint64_t)1 << 40) / 2 - snapfile.slots_at;
    fill_page(&snapfile, &(struct snapfile_commit){0}, page);
    memcpy(image.bytes, page, SNAPFILE_PAGE);
    memcpy(image.bytes + SNAPFILE_PAGE, page, SNAPFILE_PAGE);
    put_bytes(&image, 0, image.n);
    if (truncate(path, (off_t)slot_at(&snapfile, 3)) != 0)
        skip(); /* the file system has no files as large */
    expect_yard(EXIT_FAILED, "it has impossible numbers", "ckpt verify '%s'", path);
    assert_int_equal(truncate(path, 0), 0);
    free(image.bytes);
}

/* ---- the commands ------------------------------------------------------------------------------------------------ */

/* The other words take it like the folder that has the same. */
TEST(ckpt_takes_a_snapshot_like_a_folder)
{
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 2, .zero = 3});
    const char *path = temp_path("words.snap");
    const char *folder = temp_path("words");
    const char *other = temp_path("words.other");
    unlink(path);
    write_snapshot(path, &small_config, &mesh, HALF_PAYLOADS, 2);
    write_random_state(folder, &small_config, &mesh, 2, 1, seed_of(2, 1));
    struct ran ran = run_yard("ckpt diff '%s' '%s'", path, folder);
    if (ran.code != EXIT_OK)
        test_failed("%s%s\n", ran.out, ran.err);
    ran = run_yard("ckpt reshard '%s' '%s' --mesh dp=1,tp=2", path, other);
    if (ran.code != EXIT_OK)
        test_failed("%s%s\n", ran.out, ran.err);
    assert_int_equal(run_yard("ckpt diff '%s' '%s'", other, folder).code, EXIT_OK);
    assert_int_equal(run_yard("ckpt export '%s' '%s.bin'", path, other).code, EXIT_OK);
    free_mesh(&mesh);
}
