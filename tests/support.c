#include "support.h"

#include <math.h>
#include <unistd.h>

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

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

/* ---- devices ---------------------------------------------------------------------------------------------------- */

const char *two_devices(void)
{
    static const char *found;
    if (found)
        return found;
    struct machine *m = open_machine(&(struct machine_options){.devices = "0:0"});
    cl_uint most = 0;
    clGetDeviceInfo(m->device[0].cl, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof most, &most, NULL);
    bool can_be_cut = most >= 2 && m->device[0].units >= 2;
    close_machine(m);
    return found = can_be_cut ? "0:0/2" : "0:0x2";
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

void contexts_joined(void)
{
    contexts_apart(false);
    unsetenv("YARD_SEPARATE_CONTEXTS");
}

void need_own_products(void)
{
    struct machine *m = open_machine(&(struct machine_options){.devices = "0:0"});
    bool short_loops = m->device[0].short_loops;
    close_machine(m);
    if (short_loops)
        skip();
}

struct machine *open_shaped(const char *devices, int vector, int work_group)
{
    set_number("YARD_VEC", vector);
    set_number("YARD_WG", work_group);
    struct machine *m = open_machine(&(struct machine_options){.devices = devices});
    set_number("YARD_VEC", 0);
    set_number("YARD_WG", 0);
    return m;
}

/* ---- trainers --------------------------------------------------------------------------------------------------- */

struct settings *settings_of(const char *words)
{
    static char text[512];
    char *argv[64];
    int argc = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    struct settings *s = parse_settings(CMD_TRAIN, argc, argv);
    s->warmup = 2;
    s->verify = true;
    return s;
}

/* Room for n more at the end. */
static float *append(struct state *s, size_t n)
{
    s->values = reallocate(s->values, s->n + n, sizeof *s->values);
    s->n += n;
    return s->values + s->n - n;
}

/* All of the model's, of those roles. */
static void append_state(struct state *s, struct model *m, enum kept first, enum kept end)
{
    for (enum kept role = first; role < end; role++)
        for (int i = 0; i < m->params->n; i++)
            read_param(m, i, role, append(s, param_elements(&m->params->param[i])));
}

struct state read_state(struct trainer *t, int rank)
{
    struct state s = {0};
    struct model *m = t->model;
    struct replica *r = &m->replica[rank];
    for (int i = 0; i < m->params->n; i++)
        if (r->by_param[i].value)
            read_tensor(r->by_param[i].value, append(&s, count_elements(r->by_param[i].value)));
    s.n_parameters = s.n;
    append_state(&s, m, KEPT_M, KEPT_ROLES);
    return s;
}

struct state read_whole_state(struct trainer *t)
{
    struct state s = {0};
    append_state(&s, t->model, KEPT_VALUE, KEPT_M);
    s.n_parameters = s.n;
    append_state(&s, t->model, KEPT_M, KEPT_ROLES);
    return s;
}

void expect_equal_replicas(const struct trainer *t, const char *words)
{
    const struct model *m = t->model;
    for (int i = 0; i < m->params->n; i++) {
        float **seen = allocate((size_t)t->mesh.tp, sizeof *seen);
        for (int rank = 0; rank < n_ranks(&t->mesh); rank++) {
            struct weight w = m->replica[rank].by_param[i];
            if (!w.value || !w.value->storage->persistent)
                continue;
            float *values = allocate(count_elements(w.value), sizeof *values);
            float **first = &seen[w.cut.split == SPLIT_NONE ? 0 : tp_of(&t->mesh, rank)];
            read_tensor(w.value, values);
            if (*first)
                expect_same_bits(words, values, *first, count_elements(w.value));
            free(*first);
            *first = values;
        }
        for (int k = 0; k < t->mesh.tp; k++)
            free(seen[k]);
        free(seen);
    }
}

/* ---- programs --------------------------------------------------------------------------------------------------- */

static void read_back(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
}

struct ran run_yard(const char *format, ...)
{
    char words[4096];
    const char *program = getenv("YARD"), *out = temp_path("stdout"), *err = temp_path("stderr");
    struct ran ran = {.code = -1, .stdout_path = out};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    char *line = format_string("%s %s >'%s' 2>'%s' </dev/null", program ? program : "./yard", words, out, err);
    int status = system(line); /* NOLINT: a test's own words */
    if (WIFEXITED(status))
        ran.code = WEXITSTATUS(status);
    read_back(out, ran.out, sizeof ran.out);
    read_back(err, ran.err, sizeof ran.err);
    free(line);
    return ran;
}

struct outcome run_self(const char *name)
{
    struct outcome o = {.code = -1};
    const char *err = temp_path("case.stderr");
    char *line = format_string("'%s' '%s' >/dev/null 2>'%s' </dev/null", this_test, name, err);
    int status = system(line); /* NOLINT */
    if (WIFEXITED(status))
        o.code = WEXITSTATUS(status);
    read_back(err, o.text, sizeof o.text);
    free(line);
    return o;
}

void expect_case(const char *name, int code, const char *part, ...)
{
    struct outcome o = run_self(name);
    va_list parts;
    va_start(parts, part);
    for (; part; part = va_arg(parts, const char *))
        if (o.code != code || !strstr(o.text, part))
            test_failed("case %s: expected exit code %d and \"%s\"; got code %d and:\n%s\n", name, code, part, o.code,
                        o.text);
    va_end(parts);
}
