/* costs_file.c - reads and writes the files that say how long tasks take: profiles (measured) and hardware descriptions
 * (modelled).  The formats are in costs.h; a person can edit both.
 */
#include "costs.h"
#include "trainer/device/driver.h"
#include "trainer/file/file.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Reads n numbers, each from 0 to 1e30.  Returns false if the text has anything else, or more or fewer of them.  The
 * text is cut into words. */
static bool read_numbers(char *text, int n, double *number)
{
    char *rest = NULL;
    int found = 0;
    for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (found == n || !parse_double(word, &number[found]))
            return false;
        if (!(number[found] >= 0 && number[found] <= 1e30))
            return false;
        found++;
    }
    return found == n;
}

/* The number among the choices of the name's second word; -1 if it is none of them. */
static int second_choice(const char *name, const char *const *choices)
{
    char word[32];
    return sscanf(name, "%*s %31s", word) == 1 ? choice_number(choices, word) : -1;
}

/* Each of the next four functions reads one kind of line, and returns false if it is wrong. */

/* link LANE = BYTES_PER_SECOND LATENCY_SECONDS */
static bool read_link_speed(struct costs *costs, const char *name, char *value)
{
    double number[2];
    int kind = second_choice(name, lane_kind_name);
    if (kind < 0 || !read_numbers(value, 2, number) || number[0] < 1)
        return false;
    costs->speeds[kind] = (struct lane_speed){.bytes_per_s = number[0], .latency = number[1]};
    return true;
}

/* gap LANE = SECONDS */
static bool read_gap(struct costs *costs, const char *name, char *value)
{
    double seconds;
    int kind = second_choice(name, lane_kind_name);
    if (kind < 0 || !read_numbers(value, 1, &seconds) || seconds > 1e3)
        return false;
    costs->gap_seconds[kind] = seconds;
    return true;
}

/* memory CLASS = BYTES */
static bool read_memory(struct costs *costs, const char *name, char *value)
{
    double bytes;
    int class = second_choice(name, memory_class_name);
    if (class < 0 || !read_numbers(value, 1, &bytes))
        return false;
    costs->peak_memory[class] = bytes;
    return true;
}

/* task NAME LANE [layer=K] = NANOSECONDS FLOPS BYTES */
static bool read_task_cost(struct costs *costs, const char *name, char *value)
{
    struct task_cost cost = {.layer = NONE};
    _Static_assert(TASK_NAME == 40, "sscanf() reads a name of at most 39 characters");
    char lane[16];
    double number[3];
    int end = 0; /* how much of the name has been read */
    int n = sscanf(name, "task %39s %15s%n layer=%9d%n", cost.name, lane, &end, &cost.layer, &end);
    if (n < 2 || name[end] || (n == 3 && cost.layer < 0))
        return false;
    int kind = choice_number(lane_kind_name, lane);
    if (kind < 0 || !read_numbers(value, 3, number) || number[0] <= 0)
        return false;
    cost.lane = (enum lane_kind)kind;
    cost.ns = number[0];
    cost.flops = number[1];
    cost.bytes = number[2];
    add_task_cost(costs, cost);
    return true;
}

static const char shown[] = "tutorials/reference-predicting.md and data/hardware show the format";

static const struct {
    const char *word; /* the first of the name */
    bool (*read)(struct costs *costs, const char *name, char *value);
    const char *form;
} line_kinds[] = {{"link", read_link_speed, "link LANE = BYTES_PER_SECOND LATENCY_SECONDS"},
                  {"gap", read_gap, "gap LANE = SECONDS"},
                  {"memory", read_memory, "memory CLASS = BYTES"},
                  {"task", read_task_cost, "task NAME LANE [layer=K] = NANOSECONDS FLOPS BYTES"}};

/* Reads a line whose name has several words, the first of which says what is read. */
static void read_costs_line(struct costs *costs, const struct settings_text *line, char *value)
{
    char word[32] = "";
    sscanf(line->name, "%31s", word);
    for (size_t i = 0; i < COUNT(line_kinds); i++) {
        if (strcmp(line_kinds[i].word, word) != 0)
            continue;
        if (!line_kinds[i].read(costs, line->name, value))
            fail(EXIT_USAGE, "%s, line %d: `%.60s = %.60s`: expected `%s`; %s", line->path, line->number, line->name,
                 line->value, line_kinds[i].form, shown);
        return;
    }
    if (strcmp(word, "device") == 0 && strcmp(word, line->name) != 0)
        fail(EXIT_USAGE,
             "%s is not a profile or a hardware description: its line %d, `%.60s=%.60s`, is one of a step "
             "file, which --list takes",
             line->path, line->number, line->name, line->value);
    fail(EXIT_USAGE, "%s, line %d: `%.60s = %.60s`: unknown name; %s", line->path, line->number, line->name,
         line->value, shown);
}

static void read_lines(struct costs *costs, const char *path, struct option_table *table)
{
    char *text = read_text(path);
    struct settings_text line = {.path = path, .unread = text};
    while (next_setting(&line)) {
        const struct option *option = find_option(table, line.name);
        char *value = make_printable(copy_string(line.value), ONE_LINE);
        char *where = format_string("%s, line %d: %s", path, line.number, line.name);
        if (option && *value)
            set_option(table, option, where, value);
        else
            read_costs_line(costs, &line, value);
        if (!option || option->type != OPT_TEXT) /* the variable of an OPT_TEXT points to `value` */
            free(value);
        free(where);
    }
    free(text);
}

enum { PROFILE = 1, HARDWARE = 2 }; /* the kinds of files, as bits of an option's `classes` */

static void refuse_if_incomplete(const struct costs *costs, const struct option_table *table)
{
    unsigned needed = costs->measured ? PROFILE : HARDWARE;
    for (size_t i = 0; i < table->n; i++)
        if ((table->options[i].classes & needed) && !table->given[i])
            fail(EXIT_USAGE, "%s: `%s` is missing; %s", costs->label, table->options[i].name, shown);
    for (int k = LANE_UPLOAD; k <= LANE_DOWNLOAD; k++)
        if (costs->speeds[k].bytes_per_s <= 0)
            fail(EXIT_USAGE, "%s: `link %s = BYTES_PER_SECOND LATENCY` is missing; %s", costs->label, lane_kind_name[k],
                 shown);
}

struct costs *read_costs(const char *path)
{
    enum { MOST = 1000000 /* devices, units ... */ };
    refuse_if_other_kind(path, KIND_PROFILE, "a profile or a hardware description");
    struct costs *costs = new_costs(path);
    const struct option options[] = {
        /* a profile needs all of PROFILE, a description all of HARDWARE */
        {"device", .type = OPT_TEXT, .value = &costs->device, .classes = PROFILE},
        {"driver", .type = OPT_TEXT, .value = &costs->driver, .classes = PROFILE},
        {"engine", .type = OPT_TEXT, .value = &costs->engine, .classes = PROFILE},
        {"shape", .type = OPT_TEXT, .value = &costs->shape, .classes = PROFILE},
        {"units", .type = OPT_LONG, .value = &costs->units, .low = 1, .high = MOST, .classes = PROFILE},
        {"vector", .type = OPT_LONG, .value = &costs->vector, .low = 1, .high = 16, .classes = PROFILE},
        {"issue", .type = OPT_DOUBLE, .value = &costs->issue_seconds, .low = 0, .high = 1e3},
        {"hardware", .type = OPT_TEXT, .value = &costs->name, .classes = HARDWARE},
        {"devices", .type = OPT_LONG, .value = &costs->devices, .low = 1, .high = MOST, .classes = HARDWARE},
        {"devices_per_link", .type = OPT_LONG, .value = &costs->link_share, .low = 1, .high = MOST,
         .classes = HARDWARE},
        {"flops", .type = OPT_DOUBLE, .value = &costs->flops, .low = 1, .high = 1e30, .classes = HARDWARE},
        {"efficiency", .type = OPT_DOUBLE, .value = &costs->efficiency, .low = 1e-6, .high = 1, .classes = HARDWARE},
        {"bandwidth", .type = OPT_DOUBLE, .value = &costs->bandwidth, .low = 1, .high = 1e30, .classes = HARDWARE},
        {"launch", .type = OPT_DOUBLE, .value = &costs->launch, .low = 1e-300, .high = 1e3, .classes = HARDWARE},
        {"host_bandwidth", .type = OPT_DOUBLE, .value = &costs->host_bandwidth, .low = 1, .high = 1e30,
         .classes = HARDWARE},
        {"host_launch", .type = OPT_DOUBLE, .value = &costs->host_launch, .low = 1e-300, .high = 1e3,
         .classes = HARDWARE},
        {"memory", .type = OPT_BYTES, .value = &costs->memory, .low = 1, .high = NO_LIMIT, .classes = HARDWARE},
        {"host_memory", .type = OPT_BYTES, .value = &costs->host_memory, .low = 1, .high = NO_LIMIT,
         .classes = HARDWARE},
    };
    struct option_table table = {.options = options, .n = COUNT(options)};
    read_lines(costs, path, &table);
    costs->measured = costs->name == NULL;
    refuse_if_incomplete(costs, &table);
    return costs;
}

void refuse_if_other_fingerprint(const struct costs *costs, const struct device *device, const char *engine)
{
    char driver[128] = "";
    char units[NUMBER_TEXT], units_now[NUMBER_TEXT], vector[NUMBER_TEXT], vector_now[NUMBER_TEXT];
    if (!costs->measured)
        return;
    if (device->cl)
        device_text(device->cl, CL_DRIVER_VERSION, driver, sizeof driver);
    if (device->extra.is_logical)
        warn("logical devices share their cores, but the prediction takes each of them for a whole %s", device->name);
    const struct {
        const char *name, *profile, *now;
    } fields[] = {
        {"device", costs->device, device->name},
        {"driver", costs->driver, driver},
        {"engine", costs->engine, engine},
        {"units", format_exactly(units, (double)costs->units), format_exactly(units_now, device->units)},
        {"vector", format_exactly(vector, (double)costs->vector), format_exactly(vector_now, device->shape.vector)}};
    for (size_t i = 0; i < COUNT(fields); i++) {
        char *now = copy_string(fields[i].now);
        if (strcmp(fields[i].profile, trim_text(now)) != 0) /* some drivers pad their names with blanks */
            fail(EXIT_USAGE,
                 "profile %s was made with %s \"%s\", but this run has \"%s\": make a new one with `yard profile -o "
                 "FILE`",
                 costs->label, fields[i].name, fields[i].profile, fields[i].now);
        free(now);
    }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void write_profile(const char *path, const struct costs *costs, const char *shape)
{
    char *text = format_string("# A profile of Trainyard: medians of a trial run.  Edit it freely; `yard plan "
                               "--simulate --profile` reads it.\n");
    append_text(&text, "device = %s\ndriver = %s\nengine = %s\nunits = %lld\nvector = %lld\nshape = %s\nissue = %.3g\n",
                costs->device, costs->driver, costs->engine, (long long)costs->units, (long long)costs->vector, shape,
                costs->issue_seconds);
    for (int k = 0; k < LANE_KINDS; k++) {
        if (costs->speeds[k].bytes_per_s > 0)
            append_text(&text, "link %s = %.4g %.3g\n", lane_kind_name[k], costs->speeds[k].bytes_per_s,
                        costs->speeds[k].latency);
        if (costs->gap_seconds[k] > 0)
            append_text(&text, "gap %s = %.3g\n", lane_kind_name[k], costs->gap_seconds[k]);
    }
    for (int i = 0; i < MEM_CLASSES; i++)
        append_text(&text, "memory %s = %.0f\n", memory_class_name[i], costs->peak_memory[i]);
    for (const struct task_cost *cost = costs->tasks; cost < costs->tasks + costs->n_tasks; cost++) {
        append_text(&text, "task %s %s ", cost->name, lane_kind_name[cost->lane]);
        if (cost->layer >= 0)
            append_text(&text, "layer=%d ", cost->layer);
        append_text(&text, "= %.0f %.0f %.0f\n", cost->ns, cost->flops, cost->bytes);
    }
    publish_text(path, text);
    free(text);
}
