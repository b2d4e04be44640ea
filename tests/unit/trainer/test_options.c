/* test_options.c - the options of the command line and of the file --config, and their help.
 *
 * It tests options.c and options_help.c of src/trainer/base, with a table of options of its own.  It checks that an
 * option has the same effect in either spelling, that it leaves no trace when it is tried for a moment, and that a
 * mistake is named.  It catches an option that is silently ignored, and a value that is read back as another one.
 *
 * To see it fail: in options.c, let restore_value() do nothing.
 *
 * Expected values stand beside the words that give them.
 */
#include "tests/support/child.h"
#include "trainer/file/file.h"

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
    assert_contains(text, "learning rate (0: none; default: 0.0003)\n");
}

TEST(help_lists_options_by_group)
{
    char text[4096];
    print_help(text);
    assert_contains(text, "\nData:\n  --batch N ");
    assert_contains(text, " (default: 4)\n");
    assert_contains(text, "  -d, --device P:D ");
    assert_contains(text, "  --overlap off|plan|local|all-cpu|all-device\n                          where");
    assert_null(strstr(text, "prompt"));
    assert_null(strstr(strstr(text, "\nData:") + 1, "\nData:")); /* one heading for both of its options */
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        assert_at_most(strlen(line), HELP_WIDTH);
}
