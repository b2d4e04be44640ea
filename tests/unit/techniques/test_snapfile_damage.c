/* test_snapfile_damage.c - snapshot files that are damaged, cut, forged, or of another version.
 *
 * It tests snapfile_read.c and snapfile_layout.c of src/techniques/snapfile, and what `yard ckpt` says about such a
 * file.  It checks that each damage is noticed.  It catches a bit that no hash covers, a length that the program
 * ignores, and a number that is believed although it asks for a terabyte of memory.
 *
 * To see it fail: in snapfile_layout.c, take a page whose hash is wrong: let parse_page() compare its magic alone.
 *
 * The test writes a small file with iterations 1 and 2, and then changes its bytes (struct image of support_state.h).
 *
 *     YARD_EVERY_BIT=1 build/tests/test_snapfile_damage     turns every bit over, else each 61st
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

/* Turns over each stride-th of the bits from byte `begin` on, one at a time.  Each must be noticed with a sentence that
 * has `name`, and what is read then must be the expected step.  Returns how many bits were tried. */
static size_t flip_region(struct image *image, const char *name, size_t begin, size_t bits, size_t stride,
                          uint32_t expected_step)
{
    size_t tried = 0;
    for (size_t bit = 0; bit < bits; bit += stride) {
        bool noticed = notices_flip(image, begin + bit / 8, (int)(bit % 8));
        if (!noticed || image->step != expected_step || !strstr(image->said, name))
            test_failed("bit %zu of %s: step %u, %s\n", bit, name, image->step, image->said);
        tried++;
    }
    return tried;
}

/* Strides are odd, so that each of a byte's bits is turned over somewhere.  That of large regions is longer, since each
 * bit costs a whole reading of the file. */
TEST(every_flipped_bit_is_noticed)
{
    struct snapfile snapfile;
    struct image image = make_image(temp_path("bits.snap"), &snapfile);
    size_t stride = (size_t)number_from("YARD_EVERY_BIT", 61), long_stride = 7 * stride;
    uint32_t newest = 2, older = 1;
    size_t hashes = hashes_at(&snapfile, (int)snapfile.newest.slot);
    size_t tried = 0;
    for (int k = 0; k < 2; k++)
        tried += flip_region(&image, lasting("page %d", k), (size_t)k * SNAPFILE_PAGE, 8 * SNAPFILE_PAGE, stride,
                             k == snapfile.page ? older : newest);
    tried += flip_region(&image, "its manifest", MANIFEST_AT, 8 * snapfile.manifest_bytes, long_stride, 0);
    struct checkpoint *checkpoint = read_newest_snapshot(image.path);
    for (size_t i = 0; i < checkpoint->cut->n; i++) {
        const struct kept_tensor *tensor = &checkpoint->cut->tensors[i];
        for (size_t k = 0; k < tensor->n_pieces; k++)
            tried += flip_region(&image, tensor->name, tensor->pieces[k].file_offset,
                                 8 * ELEMENT_BYTES * piece_elements(&tensor->pieces[k]), long_stride, older);
    }
    tried += flip_region(&image, "the hashes", hashes, 8 * HASH_BYTES * snapfile.base.n, stride, older);
    free_checkpoint(checkpoint);
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
    assert_int_equal(image.step, 0);
    for (size_t n = most - 1; n > 0; n = n > 509 ? n - 509 : n - 1) {
        assert_int_equal(truncate(image.path, (off_t)n), 0);
        assert_true(notices(&image));
        assert_int_equal(image.step, 0);
    }
    free(image.bytes);
}

/* One of the two pages is enough to know the file as a snapshot, and to read the commit that it names. */
TEST(a_file_that_lost_one_page_is_still_a_snapshot)
{
    struct snapfile snapfile;
    const char *path = temp_path("one-page.snap");
    struct image image = make_image(path, &snapfile);
    for (int k = 0; k < 2; k++) {
        char kept[SNAPFILE_PAGE];
        char *page = image.bytes + k * SNAPFILE_PAGE;
        memcpy(kept, page, SNAPFILE_PAGE);
        memset(page, 0, SNAPFILE_PAGE);
        put_bytes(&image, 0, image.n);
        struct ran ran = expect_yard(EXIT_OK, lasting("page %d is torn or damaged", k), "ckpt ls '%s'", path);
        assert_contains(ran.out, k == snapfile.page ? "step 1," : "step 2,");
        memcpy(page, kept, SNAPFILE_PAGE);
    }
    free(image.bytes);
}

/* The command's words on a file whose newest iteration is damaged, and of one without any. */
TEST(ckpt_names_the_damaged_payload)
{
    struct snapfile snapfile;
    const char *path = temp_path("verify.snap");
    struct image image = make_image(path, &snapfile);
    assert_int_equal(run_yard("ckpt verify '%s'", path).code, EXIT_OK);
    assert_contains(run_yard("ckpt ls '%s'", path).out, "step 2, 16 sequences\nsnapshot    slot 2 of 2, ");
    json_t *root = yard_json("ckpt ls --json '%s'", path);
    const json_t *snapshot = json_object_get(root, "snapshot");
    assert_int_equal(number_at(snapshot, "slots"), 2);
    assert_int_equal(number_at(snapshot, "slot"), 2);
    assert_int_equal(number_at(snapshot, "commit"), 2); /* each of the two steps is one */
    json_decref(root);
    image.bytes[first_piece(path)] ^= 1;
    put_bytes(&image, 0, image.n);
    expect_yard(EXIT_FAILED, "step 2 is torn or damaged: ", "ckpt verify '%s'", path);
    struct ran ran = expect_yard(EXIT_OK, "tensor wte.weight, value", "ckpt ls '%s'", path);
    assert_contains(ran.out, "step 1,");
    assert_contains(run_yard("train --resume '%s'", path).err, lasting("warning: %s: option novel is unknown", path));
    image.bytes[first_piece(path)] ^= 1;
    put_bytes(&image, 0, image.n);
    expect_yard(EXIT_FAILED, "has no whole step", "ckpt verify '%s'", path);
    free(image.bytes);
}

/* A manifest's first line has the hash of all lines after it: {"hash":"c0ffee0123456789", */
struct hash_line {
    char begin[9], digits[16], end[3];
};

/* Says version 1 in the manifest, whose other bytes stay where they are, and gives it a hash that fits.  Returns the
 * hash of all its bytes, which the pages have. */
static uint64_t age_manifest(char *manifest, size_t n)
{
    static const char now[] = "\"version\":2,\"program\":\"" YARD_VERSION "\"", then[] = "\"version\":1";
    char digits[sizeof((struct hash_line *)0)->digits + 1];
    char *at = strstr(manifest, now);
    size_t line = sizeof(struct hash_line);
    memset(at, ' ', strlen(now));
    memcpy(at, then, strlen(then));
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash_bytes(manifest + line, n - line, 0));
    memcpy(manifest + offsetof(struct hash_line, digits), digits, strlen(digits));
    return hash_bytes(manifest, n, 0);
}

/* Before runs had ids the pages had another number in that place; and a yard to come may have another page. */
TEST(older_versions_are_read_and_newer_ones_refused)
{
    struct snapfile snapfile;
    const char *path = temp_path("versions.snap");
    struct image image = make_image(path, &snapfile);
    uint64_t manifest_hash = age_manifest(image.bytes + MANIFEST_AT, snapfile.manifest_bytes);
    for (uint32_t version = 3; version <= 4; version++) {
        for (char *page = image.bytes; page < image.bytes + MANIFEST_AT; page += SNAPFILE_PAGE) {
            struct snapfile_page contents;
            memcpy(&contents, page, sizeof contents);
            contents.version = version;
            contents.run_id = 7;
            contents.manifest_hash = manifest_hash;
            memcpy(page, &contents, sizeof contents);
            memcpy(page + PAGE_HASH_AT, &(uint64_t){hash_bytes(page, PAGE_HASH_AT, 0)}, HASH_BYTES);
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
        bool is_empty = ran.code == EXIT_FAILED && strstr(ran.out, "nothing was committed yet");
        if (!is_empty || strstr(ran.out, "damaged") || strstr(ran.err, "damaged"))
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
    assert_contains(image.said, "page 0 is torn or damaged: it has impossible numbers");
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
