/* test_base.c - what every part of the trainer uses: errors, memory, numbers as text, random numbers, hashes and
 * options.
 *
 * It tests src/trainer/base.  It checks that functions with published answers (Philox, xxHash) give these; that a
 * number which is written as text and read again is the same number; that an option has the same effect in either
 * spelling, and leaves no trace when it is tried for a moment; and that a mistake ends the program with one sentence,
 * after a cleanup of what was begun.  It catches a rounded number that is read back as another, an option that is
 * silently ignored, and a sentence with a character that a terminal obeys.
 *
 * To see it fail: in hash.c, let the first of the last three shifts be one by 32 instead of 33.
 *
 * Expected texts and numbers stand beside what gives them.  Published answers say where they come from.
 */
#include "tests/support/child.h"
#include "trainer/device/driver.h"
#include "trainer/file/file.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>

/* ---- fail -------------------------------------------------------------------------------------------------------- */

static void say_cleanup(void *text) { inform("cleanup %s", (char *)text); }

static void fail_again(void *unused)
{
    (void)unused;
    fail(EXIT_IO, "a second failure");
}

static void fail_with_cleanups(void *unused)
{
    (void)unused;
    struct cleanup first = {.run = say_cleanup, .argument = "first"}, last = {.run = say_cleanup, .argument = "last"},
                   cancelled = {.run = say_cleanup, .argument = "cancelled"};
    on_fail(&first);
    on_fail(&cancelled);
    on_fail(&last);
    cancel_on_fail(&cancelled);
    fail(EXIT_NO_DEVICE, "no device %d", 7);
}

static void fail_in_cleanup(void *unused)
{
    struct cleanup again = {.run = fail_again};
    on_fail(&again);
    fail_with_cleanups(unused);
}

TEST(fail_cleans_up_in_reverse)
{
    struct outcome outcome = run_child(fail_with_cleanups, NULL);
    assert_int_equal(outcome.code, EXIT_NO_DEVICE);
    assert_string_equal(outcome.text, "yard: no device 7\ncleanup last\ncleanup first\n");
    outcome = run_child(fail_in_cleanup, NULL);
    assert_string_equal(outcome.text, "yard: no device 7\ncleanup last\ncleanup first\n");
}

static void count_cleanup(void *count) { ++*(int *)count; }

static void fail_in_depth(void *count)
{
    struct cleanup cleanup = {.run = count_cleanup, .argument = count};
    on_fail(&cleanup);
    fail(EXIT_IO, "no %s", "luck");
}

static void attempt_in_depth(void *count)
{
    struct cleanup cleanup = {.run = count_cleanup, .argument = count};
    on_fail(&cleanup);
    struct problem *problem = attempt(fail_in_depth, count);
    assert_string_equal(problem->sentence, "no luck");
    free(problem);
    assert_int_equal(*(int *)count, 1); /* what was registered before is kept */
    fail(EXIT_USAGE, "again");
}

static struct cleanup of_another, of_an_inner;

static void *register_cleanup(void *cleanup)
{
    on_fail(cleanup);
    return NULL;
}

static void do_register(void *cleanup) { register_cleanup(cleanup); }

static void fail_beside_another(void *unused)
{
    (void)unused;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, register_cleanup, &of_another), 0);
    pthread_join(other, NULL);
    assert_null(attempt(do_register, &of_an_inner));
    fail(EXIT_IO, "no luck");
}

/* A cleanup that another thread registers meanwhile is its own; one that is left of an attempt within ours is ours. */
TEST(an_attempt_cleans_up_its_own)
{
    int count = 0, theirs = 0;
    of_an_inner = (struct cleanup){.run = count_cleanup, .argument = &count};
    of_another = (struct cleanup){.run = count_cleanup, .argument = &theirs};
    free(attempt(fail_beside_another, NULL));
    assert_int_equal(count, 1);
    assert_int_equal(theirs, 0);
    cancel_on_fail(&of_another);
}

static void must_not(void *unused)
{
    (void)unused;
    must(new_problem(EXIT_NO_DEVICE, "no device"));
}

static void do_nothing(void *unused) { (void)unused; }

/* An attempt turns fail() into a problem, runs the cleanups of its own time, and may be made within another. */
TEST(an_attempt_makes_a_problem_of_a_failure)
{
    int count = 0;
    struct problem *problem = attempt(attempt_in_depth, &count);
    assert_int_equal(problem->code, EXIT_USAGE);
    assert_string_equal(problem->sentence, "again");
    assert_int_equal(count, 2);
    free(problem);
    assert_null(attempt(do_nothing, NULL));
    must(NULL);
    struct outcome outcome = run_child(must_not, NULL);
    assert_int_equal(outcome.code, EXIT_NO_DEVICE);
    assert_string_equal(outcome.text, "yard: no device\n");
}

static void break_invariant(void *unused)
{
    (void)unused;
    int a = 3, b = 4;
    CHECK(a == b, "a %d, b %d", a, b);
}

TEST(check_prints_both_values_and_aborts)
{
    struct outcome outcome = run_child(break_invariant, NULL);
    assert_int_equal(outcome.signal, SIGABRT);
    assert_non_null(strstr(outcome.text, "a == b: a 3, b 4"));
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static void interrupt_without_stderr(void *unused)
{
    (void)unused;
    prepare_process("yard");
    defer_interrupts("the step");
    close(STDERR_FILENO); /* then what the handler says sets errno */
    errno = ERANGE;
    raise(SIGINT);
    _exit(interrupted() && errno == ERANGE ? 0 : 1);
}

TEST(a_signal_leaves_errno_as_it_was) { assert_int_equal(run_child(interrupt_without_stderr, NULL).code, 0); }

/* As timeout(1) does. */
static void send_twice(void *unused)
{
    (void)unused;
    prepare_process("yard");
    defer_interrupts("the step");
    raise(SIGTERM);
    raise(SIGTERM);
    _exit(interrupted() ? 0 : 1);
}

static void send_again_later(void *unused)
{
    (void)unused;
    prepare_process("yard");
    defer_interrupts("the step");
    raise(SIGTERM);
    nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
    raise(SIGTERM);
    _exit(0);
}

TEST(only_a_later_signal_ends_the_program_at_once)
{
    const char *first = "yard: interrupted: finishing the step; a second signal ends the run at once\n";
    struct outcome outcome = run_child(send_twice, NULL);
    assert_int_equal(outcome.code, 0);
    assert_string_equal(outcome.text, first);

    outcome = run_child(send_again_later, NULL);
    assert_int_equal(outcome.code, EXIT_INTERRUPTED);
    assert_non_null(strstr(outcome.text, "yard: interrupted again: ended at once"));
}

/* ---- machine ----------------------------------------------------------------------------------------------------- */

static bool is_smaller(const void *item, const void *key)
{
    const int *a = item;
    const int *b = key;
    return *a < *b;
}

/* The array has 0, 2, 4 ..., one more each time.  A search finds the place that a walk finds, from wherever it begins
 * at or before that place; one that begins behind the end stays there. */
TEST(places_in_arrays_are_found_and_made)
{
    enum { MOST = 40 };
    int *items = NULL;
    size_t cap = 0;
    size_t n = 0;
    while (n <= MOST) {
        for (int key = -1; key <= 2 * (int)n; key++) {
            size_t place = 0;
            while (place < n && items[place] < key)
                place++;
            assert_int_equal(lower_bound(&key, items, n, sizeof *items, is_smaller), place);
            for (size_t from = 0; from <= place; from++)
                assert_int_equal(lower_bound_near(from, &key, items, n, sizeof *items, is_smaller), place);
            assert_int_equal(lower_bound_near(n + 1, &key, items, n, sizeof *items, is_smaller), n + 1);
        }
        items = insert_item(items, &n, &cap, 0, sizeof *items);
        for (size_t i = 1; i < n; i++)
            items[i] += 2;
        items[0] = 0;
    }
    free(items);
}

static void reallocate_too_much(void *unused)
{
    (void)unused;
    free(reallocate(NULL, SIZE_MAX / 2, 4)); /* the product wraps around to a small number */
}

TEST(allocation_is_never_null)
{
    expect_refusal(reallocate_too_much, NULL, EXIT_USAGE, "out of memory");
    char *nothing = allocate(0, 8);
    assert_non_null(nothing);
    free(nothing);
    char *text = lasting("%d-%s", 5, "x");
    assert_string_equal(text, "5-x");
}

/* A process in group job/step of version 2, or a/b of version 1, below a root of our own. */
TEST(control_groups_leave_what_they_do_not_use)
{
    char *root = temp_path("groups"), *command = NULL;
    append_text(&command, "mkdir -p %s/job/step %s/memory/a/b && cd %s && echo max >job/step/memory.max && ", root,
                root, root);
    append_text(&command, "echo 5000 >job/memory.max && echo 3000 >job/memory.current && ");
    append_text(&command, "printf 'anon 7\\ninactive_file 600\\nactive_file 400\\n' >job/memory.stat && ");
    append_text(&command, "echo 700 >memory/a/b/memory.limit_in_bytes && echo 200 >memory/a/b/memory.usage_in_bytes");
    assert_int_equal(system(command), 0);
    free(command);
    assert_int_equal(left_by_groups(write_text("v2", "0::/job/step\n"), root), 3000); /* 5000 - (3000 - 1000) */
    assert_int_equal(left_by_groups(write_text("v1", "9:cpu:/\n4:memory:/a/b\n0::/\n"), root), 500);
    assert_int_equal(left_by_groups(write_text("none", "4:memory:/elsewhere\n0::/\n"), root), SIZE_MAX);
    assert_int_equal(left_by_groups(temp_path("missing"), root), SIZE_MAX);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

TEST(bytes_have_three_digits_and_a_unit)
{
    char out[32];
    assert_string_equal(format_bytes(out, 0), "0 B");
    assert_string_equal(format_bytes(out, 17), "17 B");
    assert_string_equal(format_bytes(out, 1023), "1023 B");
    assert_string_equal(format_bytes(out, 1024), "1.00 KiB");
    assert_string_equal(format_bytes(out, 12595.2), "12.3 KiB");
    assert_string_equal(format_bytes(out, 1.5 * (1 << 30)), "1.50 GiB");
    assert_string_equal(format_bytes(out, 1048575), "1.00 MiB");
}

TEST(numbers_too_long_have_an_exponent)
{
    char out[32];
    assert_string_equal(format_number(out, 5.48781, 4), "5.4878");
    assert_string_equal(format_number(out, -999999.4, 0), "-999999");
    assert_string_equal(format_number(out, 190269026897756160.0, 4), "1.903e+17");
    assert_string_equal(format_number(out, NAN, 3), "nan");
    assert_string_equal(format_number(out, -NAN, 3), "nan");
    assert_string_equal(format_number(out, -INFINITY, 3), "-inf");
}

TEST(seconds_are_told_as_a_clock_does)
{
    char out[32];
    assert_string_equal(format_seconds(out, 12), "12 s");
    assert_string_equal(format_seconds(out, 190), "3 min 10 s");
    assert_string_equal(format_seconds(out, 3720), "1 h 02 min");
    assert_string_equal(format_seconds(out, 59.7), "1 min 00 s");
    assert_string_equal(format_seconds(out, NAN), "?");
    assert_string_equal(format_seconds(out, -1), "?");
}

TEST(bytes_are_parsed_with_units)
{
    size_t n = 1;
    assert_true(parse_bytes("0", &n));
    assert_int_equal(n, 0);
    assert_true(parse_bytes("512M", &n));
    assert_int_equal(n, (size_t)512 << 20);
    assert_true(parse_bytes("3k", &n));
    assert_int_equal(n, 3072);
    assert_true(parse_bytes("16G", &n));
    assert_int_equal(n, (size_t)16 << 30);
    assert_true(parse_bytes("1.5G", &n));
    assert_int_equal(n, (size_t)3 << 29);
    assert_true(parse_bytes("2.4k", &n));
    assert_int_equal(n, 2457); /* 2457.6 */
    const char *const wrong[] = {"",       "M",   "-1",   " 1",           "1 ",
                                 "1.5",    "1.M", ".5M",  "1..5",         "1.5.",
                                 "1.5e3M", "1MB", "0x10", "17179869184G", "99999999999999999999"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (parse_bytes(wrong[i], &n))
            test_failed("\"%s\" was taken as %zu bytes\n", wrong[i], n);
}

TEST(numbers_are_parsed_whole_or_not_at_all)
{
    int64_t n;
    double x;
    assert_true(parse_int("-9223372036854775808", &n));
    assert_int_equal(n, INT64_MIN);
    assert_true(parse_int("+7", &n));
    assert_int_equal(n, 7);
    assert_false(parse_int("", &n));
    assert_false(parse_int(" 7", &n));
    assert_false(parse_int("7x", &n));
    assert_false(parse_int("7.0", &n));
    assert_false(parse_int("9223372036854775808", &n));
    assert_false(parse_int("-", &n));
    assert_false(parse_int("0x7", &n));
    assert_true(parse_double("1e-3", &x));
    assert_close(x, 1e-3, 0);
    assert_true(parse_double("-.5", &x));
    assert_close(x, -.5, 0);
    assert_false(parse_double("", &x));
    assert_false(parse_double("nan", &x));
    assert_false(parse_double("inf", &x));
    assert_false(parse_double("1e999", &x));
    assert_false(parse_double("0x1p3", &x));
    assert_false(parse_double(" 1", &x));
    assert_false(parse_double("1e", &x));
}

TEST(what_a_terminal_would_obey_is_a_question_mark)
{
    static const struct {
        const char *text, *shown;
        bool lines;
    } cases[] = {
        {"plain \t text", "plain \t text", false},
        {"gr\xC3\xBC\xC3\x9F, \xE2\x82\xAC, \xF0\x9F\x98\x80", "gr\xC3\xBC\xC3\x9F, \xE2\x82\xAC, \xF0\x9F\x98\x80",
         false},
        {"\033[31m", "?[31m", false},
        {"a\nyard: b\r", "a?yard: b?", false},
        {"a\nb\r\033", "a\nb??", true},
        {"\xC2\x9B, \x9B, \x7F", "??, ?, ?", false}, /* CSI as a character, as a byte; delete */
        {"cut \xE2\x82", "cut ??", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = make_printable(copy_string(cases[i].text), cases[i].lines ? MANY_LINES : ONE_LINE);
        assert_string_equal(text, cases[i].shown);
        free(text);
    }
}

static void say_foreign(void *text) { fail(EXIT_FAILED, "it says %s", (char *)text); }

/* The text that a stream shows, given `each` bytes at a time; the caller frees it. */
static char *streamed(const char *bytes, size_t each)
{
    char *text = NULL;
    size_t size, n = strlen(bytes);
    FILE *out = open_memstream(&text, &size);
    struct text_stream stream = {0};
    for (size_t i = 0; i < n; i += each)
        show_bytes(&stream, out, bytes + i, MIN(each, n - i));
    end_stream(&stream, out);
    fclose(out);
    return text;
}

/* U+FFFD stands where Unicode recommends it: once for the longest beginning of a character, else for a byte. */
TEST(bytes_are_shown_as_they_come)
{
#define UNKNOWN "\uFFFD"
    static const char *const cases[][2] = {
        {"\u0416\u0438\u043B\u0438 \u20AC \U0001F600\n", "\u0416\u0438\u043B\u0438 \u20AC \U0001F600\n"},
        {"a\tb\rc\033[31m\177", "a\tb.c.[31m."},
        {"\xC2\x80\xC2\x9B\xC2\xA0", "..\u00A0"}, /* U+0080, and U+009B that begins a command */
        {"\xD0", UNKNOWN},                        /* the end comes too early */
        {"\xD0\xD0\x96", UNKNOWN "\u0416"},       /* a beginning, and a character */
        {"\x96\xD0\x96", UNKNOWN "\u0416"},       /* the second byte of a character, whose first is missing */
        {"\xE2\x82"
         "a",
         UNKNOWN "a"}, /* two bytes of three */
        {"\xF0\x9F\x98"
         "a\xF0\x9F",
         UNKNOWN "a" UNKNOWN},         /* three bytes of four, then two of four */
        {"\xC0\xAF", UNKNOWN UNKNOWN}, /* longer than needed */
        {"\xE0\x80\xAF", UNKNOWN UNKNOWN UNKNOWN},
        {"\xED\xA0\x80", UNKNOWN UNKNOWN UNKNOWN},             /* a surrogate */
        {"\xF4\x90\x80\x80", UNKNOWN UNKNOWN UNKNOWN UNKNOWN}, /* beyond U+10FFFF */
        {"\xFF\xFE"
         "a",
         UNKNOWN UNKNOWN "a"},
        {"\xE2\x1B[m", UNKNOWN ".[m"}}; /* what a terminal obeys is not a part of a character */
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t each = 1; each <= 5; each++) {
            char *text = streamed(cases[i][0], each);
            if (strcmp(text, cases[i][1]) != 0)
                test_failed("case %zu, %zu bytes at a time: got \"%s\", expected \"%s\"\n", i, each, text, cases[i][1]);
            free(text);
        }
}

/* Whatever comes, what is shown is UTF-8, and of its control characters there are the two that are harmless. */
TEST(any_bytes_are_shown_as_utf8)
{
    for (uint32_t i = 0; i < 2000; i++) {
        char bytes[13] = "";
        for (size_t k = 0; k < 12; k++) { /* most of them of multi-byte characters */
            uint32_t word = random_words(5, STREAM_TEST, i, k).word[0];
            bool is_of_many = word % 4 != 0;
            uint32_t any = word >> 8 & 0xFF;
            bytes[k] = (char)(is_of_many ? 0x80 | any : MAX(any, 1));
        }
        char *text = streamed(bytes, 1 + i % 3);
        for (size_t at = 0, n = strlen(text); at < n;) {
            uint32_t c = 0;
            size_t length = utf8_decode(text + at, n - at, &c);
            assert_above(length, 0);
            assert_true(c >= 0xA0 || (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t');
            at += length;
        }
        free(text);
    }
}

TEST(sentences_are_printable)
{
    expect_refusal(say_foreign, "\033]0;x\007\nyard: all is well", EXIT_FAILED, "it says ?]0;x??yard: all is well\n");
}

/* ---- clock, random, hash ----------------------------------------------------------------------------------------- */

/* The known answers that come with Random123, the reference implementation (philox4x32, 10 rounds). */
TEST(philox_gives_the_published_numbers)
{
    static const struct {
        uint64_t seed, element;
        uint32_t step, stream;
        uint32_t answer[4];
    } known[] = {
        {.seed = 0, .element = 0, .step = 0, .stream = 0, .answer = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {.seed = UINT64_MAX,
         .element = UINT64_MAX,
         .step = UINT32_MAX,
         .stream = UINT32_MAX,
         .answer = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {.seed = 0x299f31d0a4093822,
         .element = 0x85a308d3243f6a88,
         .step = 0x13198a2e,
         .stream = 0x03707344,
         .answer = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        struct random4 random4 = random_words(known[i].seed, known[i].stream, known[i].step, known[i].element);
        assert_memory_equal(random4.word, known[i].answer, sizeof random4.word);
    }
}

/* The formula, written once more: the initial weights of every published run depend on these bits. */
TEST(normal_numbers_are_those_of_box_and_muller)
{
    for (uint64_t i = 0; i < 1000; i++) {
        struct random4 random4 = random_words(9, STREAM_INIT, 1, i);
        double u1 = ldexp((double)random4.word[0], -32) + ldexp((double)(random4.word[1] >> 11), -53);
        double u2 = ldexp((double)random4.word[2], -32) + ldexp((double)(random4.word[3] >> 11), -53);
        assert_close(random_uniform(9, STREAM_INIT, 1, i), u1, 0);
        assert_close(random_normal(9, STREAM_INIT, 1, i), sqrt(-2 * log(1 - u1)) * cos(2 * M_PI * u2), 1e-12);
    }
}

/* The answers are those of the reference implementation, libxxhash 0.8.1, over bytes 37 i + 11. */
TEST(the_hash_gives_the_published_numbers)
{
    static const struct {
        size_t n;
        uint64_t seed0, seed1;
    } known[] = {
        {0, 0xEF46DB3751D8E999u, 0xAC75FDA2929B17EFu},   {1, 0xF592C0C7639C4CB6u, 0xE7FDA85A72454615u},
        {3, 0x22C08528601D4F27u, 0x5CBB7F85404A1F73u},   {4, 0xFB1E5CF2F1AE4D95u, 0x9994339DD3CF0D91u},
        {7, 0x5613AC510496C04Eu, 0xC53CCE27AE03AD38u},   {8, 0x57CB2B7521F3E21Au, 0xCD44F16C92A699DFu},
        {12, 0x2F53B00266039E64u, 0xDCE50FF235F73A04u},  {31, 0xE4A0E629E519A4AEu, 0x9FAB920EF1FC4E09u},
        {32, 0xCC6B8AAADA790B2Du, 0x881C3285B30B5A93u},  {33, 0x35EC49850475A832u, 0x207074871E91CB01u},
        {63, 0xBF9F0BA3CF95B28Au, 0xE28C6289B8031861u},  {64, 0x155CCCE4BF32BEFCu, 0x90535F3E4EAE4016u},
        {100, 0x4826E367566EA023u, 0xD57C2EA757C17569u}, {287, 0x117A145C212453ABu, 0xA0F1F11DE8AE1653u},
    };
    unsigned char bytes[301];
    unsigned char *odd = bytes + 1; /* unaligned on purpose */
    for (int i = 0; i < 300; i++)
        odd[i] = (unsigned char)(37 * i + 11);
    for (size_t i = 0; i < COUNT(known); i++) {
        assert_int_equal(hash_bytes(odd, known[i].n, 0), known[i].seed0);
        assert_int_equal(hash_bytes(odd, known[i].n, 0x9E3779B1u), known[i].seed1);
    }
    assert_int_equal(hash_bytes(NULL, 0, 0), known[0].seed0);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

enum { TRAIN = 1, SAMPLE = 2 };

static bool serial;
static int batch, overlap;
static double rate;
static size_t memory;
static const char *data, *devices, *prompt;
static struct option_table table;

static const char *const choices[] = {"off", "plan", "local", "all-cpu", "all-device", NULL};
static const struct option options[] = {
    {.name = "batch",
     .type = OPT_INT,
     .value = &batch,
     .initial = "4",
     .argument = "N",
     .low = 1,
     .high = 4096,
     .group = "Data",
     .classes = TRAIN,
     .help = "sequences per step, in a help text that must be wrapped because it is far wider than what is left of "
             "the line after the name of the option and its argument"},
    {.name = "data",
     .type = OPT_TEXT,
     .value = &data,
     .argument = "PATH",
     .group = "Data",
     .classes = TRAIN | SAMPLE,
     .help = "file, folder or glob"},
    {.name = "serial",
     .type = OPT_FLAG,
     .value = &serial,
     .group = "Running",
     .classes = TRAIN,
     .help = "one task after another"},
    {.name = "lr",
     .type = OPT_DOUBLE,
     .value = &rate,
     .initial = "3e-4",
     .argument = "X",
     .low = 0,
     .high = 10,
     .group = "Training",
     .classes = TRAIN,
     .help = "learning rate (0: none)"},
    {.name = "device-mem",
     .type = OPT_BYTES,
     .value = &memory,
     .argument = "BYTES",
     .group = "Devices",
     .classes = TRAIN,
     .help = "limit per device"},
    {.name = "overlap",
     .type = OPT_CHOICE,
     .value = &overlap,
     .initial = "off",
     .argument = choices,
     .group = "Passes",
     .classes = TRAIN,
     .help = "where updates run"},
    {.name = "device",
     .letter = 'd',
     .type = OPT_TEXT,
     .value = &devices,
     .argument = "P:D",
     .group = "Devices",
     .classes = TRAIN | SAMPLE,
     .help = "which devices"},
    {.name = "prompt",
     .type = OPT_TEXT,
     .value = &prompt,
     .argument = "TEXT",
     .group = "Sampling",
     .classes = SAMPLE,
     .help = "text to go on from"},
};

/* All variables as before the first command line. */
static void reset(void)
{
    table = (struct option_table){.options = options, .n = COUNT(options)};
    serial = true; /* a flag is reset, also one of a folder that no other test sets */
    memory = 0;
    data = devices = prompt = NULL;
    reset_options(&table);
    assert_false(serial);
}

struct command_line {
    unsigned command;
    char *words[8]; /* ends with NULL */
};

static void parse(void *argument)
{
    struct command_line *line = argument;
    char **words;
    int n_words, n = 0;
    while (line->words[n])
        n++;
    words = parse_options(&table, line->command, "train", n, line->words, &n_words);
    for (int i = 0; i < n_words; i++)
        inform("word %s", words[i]);
    free(words);
}

static void parse_config_file(void *path)
{
    static char *text; /* the table points into it */
    free(text);
    text = read_text(path);
    parse_config(&table, TRAIN, path, text);
}

TEST(options_take_a_value_in_both_spellings)
{
    reset();
    char *argv[] = {
        "--batch=4096",    "-",  "--lr",  "1e-3", "--serial", "-d", "0:0x4", "--data=--x=y", "--overlap", "all-cpu",
        "--device-mem=2G", "--", "--two", NULL};
    char **words;
    int n_words;
    words = parse_options(&table, TRAIN, "train", COUNT(argv) - 1, argv, &n_words);
    assert_int_equal(batch, 4096); /* limits are inclusive */
    assert_int_equal(overlap, 3);
    assert_string_equal(data, "--x=y");
    assert_close(rate, 1e-3, 0);
    assert_true(serial);
    assert_int_equal(memory, (size_t)2 << 30);
    assert_string_equal(devices, "0:0x4");
    assert_int_equal(n_words, 2);
    assert_string_equal(words[0], "-");
    assert_string_equal(words[1], "--two");
    assert_null(words[2]);
    assert_true(option_given(&table, "batch"));
    assert_false(option_given(&table, "prompt"));
    assert_null(find_option(&table, "bath"));
    free(words);
}

TEST(options_that_are_tried_leave_no_trace)
{
    reset();
    static const struct {
        const char *name, *tried, *initial;
    } each[] = {
        {"batch", "7", "4"},        {"serial", "true", "false"}, {"device-mem", "1024", "0"},
        {"overlap", "plan", "off"}, {"device", "1:0", ""},
    };
    for (size_t i = 0; i < COUNT(each); i++) {
        const struct option *option = find_option(&table, each[i].name);
        char *begun = option_text(option);
        struct value_before before = try_value(option, each[i].tried);
        char *tried = option_text(option);
        assert_string_equal(tried, each[i].tried);
        struct value_before inner = try_value(option, NULL); /* a trial within the trial */
        char *initial = option_text(option);
        assert_string_equal(initial, each[i].initial);
        assert_false(option_given(&table, each[i].name));
        restore_value(&inner);
        char *again = option_text(option);
        assert_string_equal(again, each[i].tried);
        restore_value(&before);
        char *end = option_text(option);
        assert_string_equal(end, begun);
        free(begun);
        free(tried);
        free(initial);
        free(again);
        free(end);
    }
}

TEST(wrong_options_are_named)
{
    reset();
    static struct {
        struct command_line line;
        const char *part;
    } wrong[] = {
        {{TRAIN, {"--bach", "8"}}, "unknown option --bach; did you mean --batch?"},
        {{TRAIN, {"--bach=8"}}, "unknown option --bach=8; did you mean --batch?"},
        {{TRAIN, {"--quux"}}, "unknown option --quux; `yard train --help` lists"},
        {{TRAIN, {"--promt", "x"}}, "unknown option --promt; `yard train"}, /* never suggests another command's */
        {{TRAIN, {"-x"}}, "unknown option -x"},
        {{TRAIN, {"-batch"}}, "did you mean --batch?"},
        {{TRAIN, {"--prompt", "x"}}, "--prompt is an option of another command, not of `yard train`"},
        {{TRAIN, {"--batch"}}, "--batch needs a value: a whole number from 1 to 4096"},
        {{TRAIN, {"--batch", "--lr", "1"}}, "--batch needs a value"},
        {{TRAIN, {"--batch", "0"}}, "--batch takes a whole number from 1 to 4096, not \"0\""},
        {{TRAIN, {"--batch", "4097"}}, "not \"4097\""},
        {{TRAIN, {"--batch", "8x"}}, "not \"8x\""},
        {{TRAIN, {"--batch="}}, "not \"\""},
        {{TRAIN, {"--lr", "fast"}}, "--lr takes a number from 0 to 10, not \"fast\""},
        {{TRAIN, {"--device-mem", "2GB"}}, "such as 512M, not \"2GB\""},
        {{TRAIN, {"--overlap", "all"}}, "one of off|plan|local|all-cpu|all-device, not \"all\""},
        {{TRAIN, {"--overlap", "off|plan"}}, "not \"off|plan\""},
        {{TRAIN, {"--overlap="}}, "not \"\""},
        {{TRAIN, {"--serial=true"}}, "--serial is a switch and takes no value"},
        {{TRAIN, {"-d"}}, "-d needs a value"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_refusal(parse, &wrong[i].line, EXIT_USAGE, wrong[i].part);
}

TEST(the_command_line_comes_after_the_config_file)
{
    reset();
    static const char config[] =
        "# a comment\n\n batch = 16  # more\r\nlr=0.5\nserial = true\ndata = a b#c.txt\nprompt = x\n"
        "overlap = plan";
    char *path = write_file("run.conf", config, sizeof config - 1);
    parse_config_file(path);
    assert_int_equal(batch, 16);
    assert_close(rate, 0.5, 0);
    assert_true(serial);
    assert_string_equal(data, "a b#c.txt");
    assert_int_equal(overlap, 1);
    assert_null(prompt); /* one file may serve several commands */
    path = write_text("tabs.conf", "batch\t=\t17\ndata\t= a=b\nlr\v=\f0.25\n");
    parse_config_file(path);
    assert_int_equal(batch, 17);
    assert_string_equal(data, "a=b");
    assert_close(rate, 0.25, 0);
    char line[] = "task x=y lane layer=3\t= 1 2 3\n";
    struct settings_text profile = {.path = "p", .unread = line};
    assert_true(next_setting(&profile)); /* the '=' after white space is the one */
    assert_string_equal(profile.name, "task x=y lane layer=3");
    assert_string_equal(profile.value, "1 2 3");
    char *argv[] = {"--batch", "32"}, **words;
    int n_words;
    words = parse_options(&table, TRAIN, "train", 2, argv, &n_words);
    assert_int_equal(batch, 32);
    free(words);
}

/* Some editors write a file with a byte order mark and carriage returns. */
TEST(a_config_file_may_begin_with_a_byte_order_mark)
{
    reset();
    static const char config[] = "\xEF\xBB\xBF"
                                 "batch = 16\r\nlr = 0.5\r\n";
    parse_config_file(write_file("mark.conf", config, sizeof config - 1));
    assert_int_equal(batch, 16);
    assert_close(rate, 0.5, 0);
}

TEST(wrong_lines_of_config_are_named)
{
    reset();
    static const struct {
        const char *text;
        size_t n;
        const char *part;
    } wrong[] = {
        {"batch = 8\nbach = 9\n", 19, "wrong.conf, line 2: unknown option \"bach\"; did you mean batch?"},
        {"batch 8\n", 8, "wrong.conf, line 1: expected `name = value`, found \"batch 8\""},
        {"\n\nbatch = many\n", 15, "wrong.conf, line 3: batch takes a whole number from 1 to 4096, not \"many\""},
        {"serial = yes\n", 13, "serial takes true or false, not \"yes\""},
        {"xyzzy = 1", 9, "unknown option \"xyzzy\"; the names are those"},
        {"batch = 8\0\n", 11, "line 1 holds a zero byte"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const char *path = write_file("wrong.conf", wrong[i].text, wrong[i].n);
        expect_refusal(parse_config_file, (void *)path, EXIT_USAGE, wrong[i].part);
    }
    expect_refusal(parse_config_file, temp_path("none.conf"), EXIT_IO, "none.conf: No such file");
    expect_refusal(parse_config_file, "/tmp", EXIT_IO, "/tmp is a folder; expected a text file");
}

TEST(values_of_options_are_read_back_from_their_text)
{
    reset();
    static const struct {
        const char *name, *text;
    } expected[] = {{"batch", "4"},      {"serial", "false"}, {"lr", "0.0003"},
                    {"device-mem", "0"}, {"data", ""},        {"overlap", "off"}};
    for (size_t i = 0; i < COUNT(expected); i++) {
        char *text = option_text(find_option(&table, expected[i].name));
        assert_string_equal(text, expected[i].text);
        free(text);
    }
    rate = 0.1 + 0.2;
    char *text = option_text(find_option(&table, "lr"));
    assert_string_equal(text, "0.30000000000000004"); /* reads back as the same number */
    free(text);
}

static void print_help(char text[4096])
{
    reset();
    FILE *out = tmpfile();
    print_options(out, &table, TRAIN);
    rewind(out);
    text[fread(text, 1, 4095, out)] = '\0';
    fclose(out);
}

TEST(help_has_a_remark_and_the_default_in_one_pair_of_brackets)
{
    char text[4096];
    print_help(text);
    assert_non_null(strstr(text, "learning rate (0: none; default: 0.0003)\n"));
}

TEST(help_lists_options_by_group)
{
    char text[4096];
    print_help(text);
    assert_non_null(strstr(text, "\nData:\n  --batch N "));
    assert_non_null(strstr(text, " (default: 4)\n"));
    assert_non_null(strstr(text, "  -d, --device P:D "));
    assert_non_null(strstr(text, "  --overlap off|plan|local|all-cpu|all-device\n                          where"));
    assert_null(strstr(text, "prompt"));
    assert_null(strstr(strstr(text, "\nData:") + 1, "\nData:")); /* one heading for both of its options */
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        assert_at_most(strlen(line), HELP_WIDTH);
}

/* Folding changes nothing but blanks, and no line is too long but for a single word. */
TEST(folding_changes_only_blanks)
{
    static const char text[] = "memory      parameters 141 KiB, gradients \303\274ber 141 KiB\n"
                               "  a paragraph that is indented, with_one_word_that_is_too_long_for_a_line of it\n\nend";
    for (int columns = 24; columns <= 60; columns++) {
        char *folded = fold_text(text, columns);
        const char *a = text, *b = folded;
        while (*a || *b) {
            a += strspn(a, " \n");
            b += strspn(b, " \n");
            size_t n = strcspn(a, " \n");
            assert_int_equal(n, strcspn(b, " \n"));
            assert_memory_equal(a, b, n);
            a += n;
            b += n;
        }
        for (char *line = strtok(folded, "\n"); line; line = strtok(NULL, "\n")) {
            size_t wide = strlen(line) - (strstr(line, "\303\274") ? 1 : 0);
            if (wide > (size_t)columns)
                assert_null(strchr(line + strspn(line, " "), ' '));
        }
        free(folded);
    }
    char *folded = fold_text(text, 30);
    assert_non_null(
        strstr(folded, "memory      parameters 141\n            KiB, gradients\n            \303\274ber 141 KiB\n"));
    free(folded);
}
