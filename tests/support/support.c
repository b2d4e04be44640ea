/* support.c - arrays, files, devices and runs of ./yard, which several tests need. */
#include "support.h"

#include "planning/lists/lists.h"

#include <math.h>
#include <unistd.h>

/* ---- files ------------------------------------------------------------------------------------------------------- */

struct lasting {
    struct lasting *next;
    char *text;
};

static char *lasting_text(const char *format, va_list arguments)
{
    static struct lasting *all; /* reachable: the leak checker takes them for no leaks */
    struct lasting *lasting = allocate(1, sizeof *lasting);
    assert_at_least(vasprintf(&lasting->text, format, arguments), 0);
    lasting->next = all;
    all = lasting;
    return lasting->text;
}

char *lasting(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = lasting_text(format, arguments);
    va_end(arguments);
    return text;
}

char *temp_path(const char *name)
{
    static char folder[512];
    const char *given = getenv("TMP");
    if (!folder[0])
        snprintf(folder, sizeof folder, "%s", given ? given : "/tmp/yard-test-XXXXXX");
    if (!given && strstr(folder, "XXXXXX"))
        assert_non_null(mkdtemp(folder));
    return lasting("%s/%s", folder, name);
}

char *write_file(const char *name, const void *bytes, size_t n)
{
    char *path = temp_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
    return path;
}

char *write_text(const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = lasting_text(format, arguments);
    va_end(arguments);
    return write_file(name, text, strlen(text));
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

size_t draw_below(struct draws *draws, size_t below)
{
    double u = random_uniform(draws->seed, STREAM_TEST, draws->row, draws->drawn);
    draws->drawn++;
    return (size_t)(u * (double)below);
}

int draw_between(struct draws *draws, int low, int high)
{
    return low + (int)draw_below(draws, (size_t)(high - low + 1));
}

float *random_floats(size_t n, uint64_t seed)
{
    float *x = allocate(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)random_normal(seed, STREAM_TEST, 0, i);
    return x;
}

float *copy_floats(const float *x, size_t n) { return memcpy(allocate(n, sizeof *x), x, n * sizeof *x); }

void expect_same_bits(const char *what, const float *ours, const float *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&ours[i], &expected[i], sizeof *ours) != 0)
            test_failed("%s: element %zu of %zu is %a (%.9g), expected %a (%.9g)\n", what, i, n, (double)ours[i],
                        (double)ours[i], (double)expected[i], (double)expected[i]);
}

void expect_close(const char *what, const float *ours, const float *expected, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)ours[i] - expected[i]) <= tolerance * (1 + fabs((double)expected[i]))))
            test_failed("%s: element %zu of %zu is %.9g, expected %.9g (tolerance %g)\n", what, i, n, (double)ours[i],
                        (double)expected[i], tolerance);
}

double relative_distance(const float *a, const float *b, size_t n)
{
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return sqrt(difference / norm);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

const char *two_devices(void)
{
    static const char *found;
    if (found)
        return found;
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0"});
    cl_uint most = 0;
    clGetDeviceInfo(machine->devices[0].cl, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof most, &most, NULL);
    bool can_be_cut = most >= 2 && machine->devices[0].units >= 2;
    close_machine(machine);
    found = can_be_cut ? "0:0/2" : "0:0x2";
    return found;
}

/* What a variable was before any test set it. */
static const char *outside_value(const char *name)
{
    static struct {
        const char *name;
        char *value;
    } known[8];
    size_t i = 0;
    while (known[i].name && strcmp(known[i].name, name) != 0)
        i++;
    if (!known[i].name && getenv(name))
        known[i].value = copy_string(getenv(name));
    known[i].name = name;
    return known[i].value;
}

void set_number(const char *name, int value)
{
    char number[16];
    const char *outside = outside_value(name), *text = value ? number : outside;
    snprintf(number, sizeof number, "%d", value);
    if (text)
        setenv(name, text, 1);
    else
        unsetenv(name);
}

void contexts_apart(bool apart) { set_number("YARD_SEPARATE_CONTEXTS", apart); }

void restore_contexts(void) { contexts_apart(false); }

void contexts_joined(void)
{
    restore_contexts();
    unsetenv("YARD_SEPARATE_CONTEXTS");
}

void need_own_products(void)
{
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0"});
    bool short_loops = machine->devices[0].extra.quirks.short_loops;
    close_machine(machine);
    if (short_loops)
        skip();
}

struct machine *open_shaped(const char *devices, int vector, int work_group)
{
    set_number("YARD_VEC", vector);
    set_number("YARD_WG", work_group);
    struct machine *machine = open_machine(&(struct machine_options){.devices = devices});
    set_number("YARD_VEC", 0);
    set_number("YARD_WG", 0);
    return machine;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* The first 16 KiB of a file; the text lasts. */
static char *read_back(const char *path)
{
    char text[16384];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return lasting("%s", text);
}

static struct ran run_words(const char *format, va_list arguments)
{
    const char *program = getenv("YARD");
    const char *out = temp_path("stdout");
    const char *err = temp_path("stderr");
    struct ran ran = {.code = -1, .words = lasting_text(format, arguments), .stdout_path = out};
    char *line = format_string("%s %s >'%s' 2>'%s' </dev/null", program ? program : "./yard", ran.words, out, err);
    int status = system(line); /* NOLINT: a test's own words */
    if (WIFEXITED(status))
        ran.code = WEXITSTATUS(status);
    ran.out = read_back(out);
    ran.err = read_back(err);
    free(line);
    return ran;
}

struct ran run_yard(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct ran ran = run_words(format, arguments);
    va_end(arguments);
    return ran;
}

struct ran expect_yard(int code, const char *part, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct ran ran = run_words(format, arguments);
    va_end(arguments);
    if (ran.code != code || (!strstr(ran.out, part) && !strstr(ran.err, part)))
        test_failed("yard %s: exit code %d, expected %d and \"%s\":\n%s\n%s\n", ran.words, ran.code, code, part,
                    ran.out, ran.err);
    return ran;
}

json_t *yard_json(const char *format, ...)
{
    json_error_t error = {.text = ""};
    va_list arguments;
    va_start(arguments, format);
    struct ran ran = run_words(format, arguments);
    va_end(arguments);
    json_t *object =
        ran.code == EXIT_OK ? json_load_file(ran.stdout_path, JSON_REJECT_DUPLICATES, &error) : json_null();
    static json_t *all; /* they last */
    if (!all)
        all = json_array();
    json_array_append_new(all, object);
    if (!json_is_object(object))
        test_failed("yard %s...: exit code %d, and stdout is not a JSON object: %s\n%s\n", format, ran.code, error.text,
                    ran.err);
    return object;
}

json_t *verified_plan(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *words = lasting_text(format, arguments);
    va_end(arguments);
    return yard_json("plan %s --simulate --verify --json", words);
}

json_t *json_at(const json_t *from, const char *path)
{
    const json_t *at = from;
    char key[64];
    for (const char *rest = path; *rest && at; rest += strspn(rest, ".")) {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(rest, "."), rest);
        at = json_is_array(at) ? json_array_get(at, strtoul(key, NULL, 10)) : json_object_get(at, key);
        rest += strcspn(rest, ".");
    }
    if (!at)
        test_failed("the JSON has no %s\n", path);
    return (json_t *)(uintptr_t)at;
}

double number_at(const json_t *from, const char *path)
{
    const json_t *value = json_at(from, path);
    if (!json_is_number(value))
        test_failed("in the JSON %s is no number\n", path);
    return json_number_value(value);
}

const char *text_at(const json_t *from, const char *path)
{
    const json_t *value = json_at(from, path);
    if (!json_is_string(value))
        test_failed("in the JSON %s is no text\n", path);
    return json_string_value(value);
}

const char *this_test;

struct outcome run_self(const char *name)
{
    struct outcome outcome = {.code = -1};
    const char *err = temp_path("case.stderr");
    char *line = format_string("'%s' '%s' >/dev/null 2>'%s' </dev/null", this_test, name, err);
    int status = system(line); /* NOLINT */
    if (WIFEXITED(status))
        outcome.code = WEXITSTATUS(status);
    snprintf(outcome.text, sizeof outcome.text, "%s", read_back(err));
    free(line);
    return outcome;
}

void expect_case(const char *name, int code, const char *part, ...)
{
    struct outcome outcome = run_self(name);
    const char *rest = outcome.text;
    va_list parts;
    if (outcome.code != code)
        test_failed("case %s: exit code %d, expected %d; it says:\n%s\n", name, outcome.code, code, outcome.text);
    va_start(parts, part);
    for (; part; part = va_arg(parts, const char *)) {
        const char *found = strstr(rest, part);
        if (!found)
            test_failed("case %s: expected \"%s\" behind what came before; it says:\n%s\n", name, part, outcome.text);
        rest = found + strlen(part);
    }
    va_end(parts);
}

/* ---- logs -------------------------------------------------------------------------------------------------------- */

json_t *read_log(const char *path)
{
    static json_t *kept[3];
    json_decref(kept[2]);
    memmove(kept + 1, kept, 2 * sizeof *kept);
    json_t *lines = json_array();
    kept[0] = lines;
    char text[16384];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) {
        json_error_t error;
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, &error);
        if (!json_is_object(line) || text[strlen(text) - 1] != '\n')
            test_failed("%s: not one object: %s (%s)\n", path, text, error.text);
        json_array_append_new(lines, line);
    }
    fclose(file);
    return lines;
}

json_t *last_line(const char *path)
{
    json_t *lines = read_log(path);
    return json_array_get(lines, json_array_size(lines) - 1);
}
