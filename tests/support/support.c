#include "support.h"

#include "tools/lists/lists.h"

#include <math.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------------------------------------------- */

struct lasting {
    struct lasting *next;
    char *text;
};

static char *last(const char *format, va_list arguments)
{
    static struct lasting *all; /* reachable: the leak checker takes them for no leaks */
    struct lasting *lasting = allocate(1, sizeof *lasting);
    assert_true(vasprintf(&lasting->text, format, arguments) >= 0);
    lasting->next = all;
    all = lasting;
    return lasting->text;
}

char *lasting(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = last(format, arguments);
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
    char *text = last(format, arguments);
    va_end(arguments);
    return write_file(name, text, strlen(text));
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

size_t draw_below(struct draws *draws, size_t below)
{
    double u = random_uniform(draws->seed, STREAM_TEST, draws->row, draws->drawn);
    draws->drawn++;
    return (size_t)(u * (double)below);
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

/* ---- devices ---------------------------------------------------------------------------------------------------- */

const char *two_devices(void)
{
    static const char *found;
    if (found)
        return found;
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0"});
    cl_uint most = 0;
    clGetDeviceInfo(machine->device[0].cl, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof most, &most, NULL);
    bool can_be_cut = most >= 2 && machine->device[0].units >= 2;
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

void contexts_joined(void)
{
    contexts_apart(false);
    unsetenv("YARD_SEPARATE_CONTEXTS");
}

void need_own_products(void)
{
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0"});
    bool short_loops = machine->device[0].quirks.short_loops;
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

/* ---- trainers --------------------------------------------------------------------------------------------------- */

struct settings *settings_of(const char *words)
{
    static char text[512];
    char *argv[64];
    int argc = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    struct settings *settings = parse_settings(&train_page, argc, argv);
    settings->warmup = 2;
    proof_options.verify = true;
    return settings;
}

/* Room for n more at the end. */
static float *append(struct state *state, size_t n)
{
    state->values = reallocate(state->values, state->n + n, sizeof *state->values);
    state->n += n;
    return state->values + state->n - n;
}

/* All of the model's, of those roles. */
static void append_state(struct state *state, struct model *model, enum kept first, enum kept end)
{
    for (enum kept role = first; role < end; role++)
        for (int i = 0; i < model->params->n; i++)
            read_param(model, i, role, append(state, param_elements(&model->params->param[i])));
}

static void clear(struct tensor *tensor)
{
    void *zeros = tensor ? allocate(tensor->bytes, 1) : NULL;
    if (tensor)
        write_tensor(tensor, zeros);
    free(zeros);
}

void begin_anew(struct trainer *trainer)
{
    init_random(trainer->model, 1337);
    for (const struct replica *replica = trainer->model->replica;
         replica < trainer->model->replica + n_ranks(trainer->model->mesh); replica++) {
        clear(replica->state);
        for (int unit = 0; unit < trainer->model->params->n_units; unit++) {
            clear(replica->m[unit]);
            clear(replica->v[unit]);
        }
    }
}

struct state read_state(struct trainer *trainer, int rank)
{
    struct state state = {0};
    struct model *model = trainer->model;
    struct replica *replica = &model->replica[rank];
    for (int i = 0; i < model->params->n; i++)
        if (replica->by_param[i].value)
            read_tensor(replica->by_param[i].value, append(&state, count_elements(replica->by_param[i].value)));
    state.n_parameters = state.n;
    append_state(&state, model, KEPT_M, KEPT_ROLES);
    return state;
}

struct state read_whole_state(struct trainer *trainer)
{
    struct state state = {0};
    append_state(&state, trainer->model, KEPT_VALUE, KEPT_M);
    state.n_parameters = state.n;
    append_state(&state, trainer->model, KEPT_M, KEPT_ROLES);
    return state;
}

void expect_sound(const char *what, const struct list *list, const struct values *plain)
{
    char *wrong = verify(list, plain);
    if (wrong)
        test_failed("%s: %s\n", what, wrong);
}

void expect_wrong(const char *what, char *wrong, const char *part)
{
    if (!wrong || !strstr(wrong, part))
        test_failed("%s: expected \"%s\", got: %s\n", what, part, wrong ? wrong : "nothing wrong");
    free(wrong);
}

size_t expect_waits_needed(struct list *list, size_t nth)
{
    size_t waits = 0;
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < list->task[i]->n_edges; k++) {
            struct edge *edge = &list->task[i]->edges[k];
            if (!edge->wait)
                continue;
            waits++;
            if ((waits - 1) % nth != 0)
                continue;
            edge->wait = false;
            expect_wrong(list->task[i]->name, verify(list, NULL), "nothing orders them");
            edge->wait = true;
        }
    return waits;
}

void finish_list(struct list *list)
{
    must(place(list->pool, &list, 1, PLACE_TO_CHECK));
    depend(list, ALL_EDGES);
}

struct list *list_of(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = last(format, arguments);
    va_end(arguments);
    return read_list(write_file("list.txt", text, strlen(text)));
}

struct trainer *open_training(struct settings *settings, unsigned lists)
{
    struct trainer *trainer = new_trainer(settings, lists | OPEN_DATA);
    init_random(trainer->model, 1337);
    expect_sound("the train list", trainer->train, values_of(trainer, trainer->train));
    return trainer;
}

void run_steps(struct trainer *trainer, uint32_t from, uint32_t to)
{
    for (uint32_t number = from; number <= to; number++)
        run_step(trainer, number);
    step_result(trainer, to);
    drain(trainer->train);
}

void check_training(struct trainer *trainer, uint32_t last_step)
{
    assert_true(isfinite(step_result(trainer, last_step)->loss));
    expect_equal_replicas(trainer, "replica");
    for (int i = 0; i <= trainer->machine->n_devices; i++)
        assert_int_equal(damaged_guards(&trainer->machine->device[i]), 0);
}

struct state train(struct settings *settings, uint32_t steps)
{
    struct trainer *trainer = open_training(settings, LIST_TRAIN);
    run_steps(trainer, 1, steps);
    check_training(trainer, steps);
    struct state all = read_whole_state(trainer);
    free_trainer(trainer);
    return all;
}

void expect_equal_replicas(const struct trainer *trainer, const char *words)
{
    const struct model *model = trainer->model;
    for (int i = 0; i < model->params->n; i++) {
        float **seen = allocate((size_t)trainer->mesh.tp, sizeof *seen);
        for (int rank = 0; rank < n_ranks(&trainer->mesh); rank++) {
            struct weight weight = model->replica[rank].by_param[i];
            if (!weight.value || !weight.value->storage->persistent)
                continue;
            float *values = allocate(count_elements(weight.value), sizeof *values);
            float **first = &seen[weight.cut.split == SPLIT_NONE ? 0 : tp_of(&trainer->mesh, rank)];
            read_tensor(weight.value, values);
            for (size_t k = param_elements(&params_of(model, rank)->param[i]); k < count_elements(weight.value); k++)
                if (values[k] != 0)
                    test_failed("%s: %s of rank %d: element %zu, padding, is %g\n", words, weight.value->name, rank, k,
                                (double)values[k]);
            if (*first)
                expect_same_bits(words, values, *first, count_elements(weight.value));
            free(*first);
            *first = values;
        }
        for (int k = 0; k < trainer->mesh.tp; k++)
            free(seen[k]);
        free(seen);
    }
}

/* ---- programs --------------------------------------------------------------------------------------------------- */

static void read_back(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static struct ran run_words(const char *format, va_list arguments)
{
    char words[4096];
    const char *program = getenv("YARD");
    const char *out = temp_path("stdout");
    const char *err = temp_path("stderr");
    struct ran ran = {.code = -1, .stdout_path = out};
    vsnprintf(words, sizeof words, format, arguments);
    char *line = format_string("%s %s >'%s' 2>'%s' </dev/null", program ? program : "./yard", words, out, err);
    int status = system(line); /* NOLINT: a test's own words */
    if (WIFEXITED(status))
        ran.code = WEXITSTATUS(status);
    read_back(out, ran.out, sizeof ran.out);
    read_back(err, ran.err, sizeof ran.err);
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
        test_failed("yard %s...: exit code %d, expected %d and \"%s\":\n%s\n%s\n", format, ran.code, code, part,
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
        test_failed("yard %s...: exit code %d, and stdout is no JSON object: %s\n%s\n", format, ran.code, error.text,
                    ran.err);
    return object;
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

void expect_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        test_failed("expected \"%s\" in:\n%s\n", part, text);
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
    read_back(err, outcome.text, sizeof outcome.text);
    free(line);
    return outcome;
}

void expect_case(const char *name, int code, const char *part, ...)
{
    struct outcome outcome = run_self(name);
    va_list parts;
    va_start(parts, part);
    for (; part; part = va_arg(parts, const char *))
        if (outcome.code != code || !strstr(outcome.text, part))
            test_failed("case %s: expected exit code %d and \"%s\"; got code %d and:\n%s\n", name, code, part,
                        outcome.code, outcome.text);
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
