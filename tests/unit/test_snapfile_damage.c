/* test_snapfile_damage.c - a snapshot file that is damaged, cut, from another version or made up is noticed.
 *
 * It tests reading.c and file_layout.c of src/techniques/snapshot, and what `yard ckpt` says.  A bit that no hash
 * covers, a length that nobody checks, and a number that is believed and asks for a terabyte of memory are found.
 *
 * A small file with iterations 1 and 2 is written, and then its bytes are changed (struct image of support_state.h).
 *
 *     YARD_EVERY=1 build/tests/test_snapfile_damage     every bit is turned over, else each 61st
 */
#include "tests/support/support_state.h"

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static bool notices_flip(struct image *x, size_t at, int bit)
{
    x->bytes[at] ^= (char)(1 << bit);
    put_bytes(x, at, 1);
    bool noticed = notices(x);
    x->bytes[at] ^= (char)(1 << bit);
    put_bytes(x, at, 1);
    return noticed;
}

TEST(every_bit_matters)
{
    struct snapfile s;
    struct image x = make_image(temp_path("bits.snap"), &s);
    size_t every = getenv("YARD_EVERY") ? strtoul(getenv("YARD_EVERY"), NULL, 10) : 61;
    size_t tried = 0;
    size_t older = 0;
    for (size_t bit = 0; bit < 8 * MANIFEST_AT; bit += every, tried++) /* pages */
        if (!notices_flip(&x, bit / 8, (int)(bit % 8)) || !x.step)
            test_failed("bit %zu of byte %zu\n", bit % 8, bit / 8);
        else
            older += x.step == 1;
    for (size_t bit = 0; bit < 8 * s.manifest_bytes; bit += 7 * every, tried++)
        if (!notices_flip(&x, MANIFEST_AT + bit / 8, (int)(bit % 8)))
            test_failed("bit %zu of byte %zu of the manifest\n", bit % 8, bit / 8);
    struct checkpoint *c = open_snapshot(x.path);
    for (size_t i = 0; i < c->pieces->n; i++)
        for (size_t k = 0; k < c->pieces->tensor[i].n; k++) {
            const struct piece *p = &c->pieces->tensor[i].piece[k];
            for (size_t bit = 5 * i; bit < 8 * ELEMENT_BYTES * piece_elements(p); bit += 7 * every, tried++)
                if (!notices_flip(&x, p->file_offset + bit / 8, (int)(bit % 8)) || x.step != 1 ||
                    !strstr(x.said, c->pieces->tensor[i].name))
                    test_failed("bit %zu of %s: step %u, %s\n", bit, c->pieces->tensor[i].name, x.step, x.said);
        }
    for (size_t bit = 0; bit < 64 * s.in.n; bit += every, tried++)
        if (!notices_flip(&x, hashes_at(&s, (int)s.newest.slot) + bit / 8, (int)(bit % 8)) || x.step != 1)
            test_failed("bit %zu of the hashes\n", bit);
    free_checkpoint(c);
    assert_true(older > 100);
    printf("# %zu bits turned over\n", tried);
    free(x.bytes);
}

TEST(other_lengths_are_refused)
{
    struct snapfile s;
    struct image x = make_image(temp_path("length.snap"), &s);
    size_t most = x.n;
    assert_int_equal(truncate(x.path, (off_t)most + 1), 0);
    assert_true(notices(&x));
    assert_true(!x.step);
    for (size_t n = most - 1; n > 0; n = n > 509 ? n - 509 : n - 1) {
        assert_int_equal(truncate(x.path, (off_t)n), 0);
        assert_true(notices(&x));
        assert_true(!x.step);
    }
    free(x.bytes);
}

/* What the command says of a file whose newest iteration is damaged, and of one without any. */
TEST(the_command_names_the_payload)
{
    struct snapfile s;
    char path[1024];
    snprintf(path, sizeof path, "%s", temp_path("verify.snap"));
    struct image x = make_image(path, &s);
    assert_int_equal(run_yard("ckpt verify '%s'", path).code, EXIT_OK);
    assert_non_null(strstr(run_yard("ckpt ls '%s'", path).out, "step 2, 16 sequences\nsnapshot    slot 2 of 2, "));
    x.bytes[first_piece(path)] ^= 1;
    put_bytes(&x, 0, x.n);
    expect_yard(EXIT_FAILED, "iteration 2 is torn or damaged: ", "ckpt verify '%s'", path);
    struct ran r = expect_yard(EXIT_OK, "tensor wte.weight, value", "ckpt ls '%s'", path);
    expect_text(r.out, "step 1,");
    expect_text(run_yard("train --resume '%s'", path).err, lasting("warning: %s: option novel is unknown", path));
    x.bytes[first_piece(path)] ^= 1;
    put_bytes(&x, 0, x.n);
    expect_yard(EXIT_FAILED, "has no whole iteration", "ckpt verify '%s'", path);
    free(x.bytes);
}

/* Before runs had ids the pages had another number in that place; and a yard to come may have another page. */
TEST(older_and_newer_files)
{
    static const char now[] = "\"version\":2,\"program\":\"" YARD_VERSION "\"";
    char path[1024], digits[17];
    struct snapfile s;
    snprintf(path, sizeof path, "%s", temp_path("versions.snap"));
    struct image x = make_image(path, &s);
    char *manifest = x.bytes + MANIFEST_AT, *at = strstr(manifest, now);
    memset(at, ' ', strlen(now));
    memcpy(at, "\"version\":1", 11);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash_bytes(manifest + 28, s.manifest_bytes - 28, 0));
    memcpy(manifest + 9, digits, 16);
    s.manifest_hash = hash_bytes(manifest, s.manifest_bytes, 0);
    for (char version = 3; version <= 4; version++) {
        for (char *page = x.bytes; page < manifest; page += SNAP_PAGE) {
            page[8] = version;
            page[24] = 7;
            memcpy(page + 56, &s.manifest_hash, 8);
            memcpy(page + SNAP_PAGE - 8, &(uint64_t){hash_bytes(page, SNAP_PAGE - 8, 0)}, 8);
        }
        put_bytes(&x, 0, x.n);
        expect_yard(version == 3 ? EXIT_OK : EXIT_FAILED,
                    version == 3 ? "not known, session 1; written by an older yard"
                                 : "versions.snap was written by a newer yard, as a snapshot of version 4",
                    "ckpt ls '%s'", path);
    }
    free(x.bytes);
}

/* A file that no run has committed to is not called damaged, nor is one that a run was killed over as it made it. */
TEST(a_file_without_commits_is_not_damaged)
{
    struct snapfile s;
    char path[1024];
    snprintf(path, sizeof path, "%s", temp_path("without.snap"));
    struct image x = make_image(path, &s);
    for (int k = 0; k < 2; k++)
        fill_page(&s, &(struct snap_commit){0}, x.bytes + k * SNAP_PAGE);
    put_bytes(&x, 0, x.n);
    for (int empty = 0; empty < 2; empty++) {
        if (empty)
            assert_int_equal(truncate(path, 0), 0);
        struct ran r = run_yard("ckpt verify '%s'", path);
        if (r.code != EXIT_FAILED || !strstr(r.out, "nothing was committed yet") || strstr(r.out, "damaged") ||
            strstr(r.err, "damaged"))
            test_failed("code %d: %s%s\n", r.code, r.out, r.err);
        expect_yard(EXIT_FAILED, "nothing was committed yet", "train --resume '%s' --snapshot '%s'", path, path);
    }
    free(x.bytes);
}

/* A terabyte of holes whose pages name two thousand million payloads: memory is asked for what is there. */
TEST(a_made_up_count_asks_for_no_memory)
{
    struct snapfile s;
    char path[1024], page[SNAP_PAGE];
    snprintf(path, sizeof path, "%s", temp_path("hostile.snap"));
    struct image x = make_image(path, &s);
    fill_page(&s, &(struct snap_commit){.seq = 9, .step = 9, .slot = 3}, x.bytes); /* there are two slots */
    put_bytes(&x, 0, x.n);
    assert_true(notices(&x));
    assert_int_equal(x.step, 2);
    assert_true(strstr(x.said, "page 0 is torn or damaged: it has impossible numbers"));
    s.in.n = (size_t)1 << 31;
    s.in.bytes = ((uint64_t)1 << 40) / 2 - s.slots_at;
    fill_page(&s, &(struct snap_commit){0}, page);
    memcpy(x.bytes, page, SNAP_PAGE);
    memcpy(x.bytes + SNAP_PAGE, page, SNAP_PAGE);
    put_bytes(&x, 0, x.n);
    if (truncate(path, (off_t)slot_at(&s, 3)) != 0)
        skip(); /* the file system has no files as large */
    expect_yard(EXIT_FAILED, "it has impossible numbers", "ckpt verify '%s'", path);
    assert_int_equal(truncate(path, 0), 0);
    free(x.bytes);
}

/* ---- the commands ------------------------------------------------------------------------------------------------ */

/* The other words take it like the folder that has the same. */
TEST(the_command_takes_it)
{
    char path[1024], folder[1024], other[1024];
    struct mesh m = mesh_of(&small_config, 2, 1, 1, 3);
    snprintf(path, sizeof path, "%s", temp_path("words.snap"));
    snprintf(folder, sizeof folder, "%s", temp_path("words"));
    snprintf(other, sizeof other, "%s", temp_path("words.other"));
    unlink(path);
    write_snapshot(path, &small_config, &m, true, 2);
    write_random_state(folder, &small_config, &m, 2, 1, seed_of(2, 1));
    struct ran r = run_yard("ckpt diff '%s' '%s'", path, folder);
    if (r.code != EXIT_OK)
        test_failed("%s%s\n", r.out, r.err);
    r = run_yard("ckpt reshard '%s' '%s' --mesh dp=1,tp=2", path, other);
    if (r.code != EXIT_OK)
        test_failed("%s%s\n", r.out, r.err);
    assert_int_equal(run_yard("ckpt diff '%s' '%s'", other, folder).code, EXIT_OK);
    assert_int_equal(run_yard("ckpt export '%s' '%s.bin'", path, other).code, EXIT_OK);
    free_mesh(&m);
}
