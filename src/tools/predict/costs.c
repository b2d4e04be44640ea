/* costs.c - how long tasks take: profiles (measured) and hardware descriptions (modelled).  The formats are in
 * costs.h; a person can edit both.
 */
#include "costs.h"
#include "forecast.h" /* defines: set_budgets() */
#include "trainer/file/file.h"

#include <math.h>

/* ---- reading --------------------------------------------------------------------------------------------------- */

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

/* Is the line's name `first` and another word?  That word goes to `second`. */
static bool has_words(const char *name, const char *first, char second[32])
{
    char word[32];
    return sscanf(name, "%31s %31s", word, second) == 2 && strcmp(word, first) == 0;
}

/* Each of the next four functions reads one kind of line, and returns false if the line is of another kind, or
 * wrong. */

/* link LANE = BYTES_PER_SECOND LATENCY_SECONDS */
static bool read_link(struct costs *c, const char *name, char *value)
{
    char lane[32];
    double number[2];
    if (!has_words(name, "link", lane))
        return false;
    int kind = choice_number(lane_kind_name, lane);
    if (kind < 0 || !read_numbers(value, 2, number) || number[0] < 1)
        return false;
    c->speed[kind] = (struct lane_speed){.bytes_per_s = number[0], .latency = number[1]};
    return true;
}

/* gap LANE = SECONDS */
static bool read_gap(struct costs *c, const char *name, char *value)
{
    char lane[32];
    double seconds;
    if (!has_words(name, "gap", lane))
        return false;
    int kind = choice_number(lane_kind_name, lane);
    if (kind < 0 || !read_numbers(value, 1, &seconds) || seconds > 1e3)
        return false;
    c->gap_seconds[kind] = seconds;
    return true;
}

/* memory CLASS = BYTES */
static bool read_memory(struct costs *c, const char *name, char *value)
{
    char word[32];
    double bytes;
    if (!has_words(name, "memory", word))
        return false;
    int class = choice_number(memory_class_name, word);
    if (class < 0 || !read_numbers(value, 1, &bytes))
        return false;
    c->peak_memory[class] = bytes;
    return true;
}

/* task NAME LANE [layer=K] = NANOSECONDS FLOPS BYTES */
static bool read_task(struct costs *c, const char *name, char *value)
{
    struct task_cost t = {.layer = -1};
    char lane[16];
    double number[3];
    int end = 0; /* how much of the name has been read */
    int n = sscanf(name, "task %39s %15s%n layer=%9d%n", t.name, lane, &end, &t.layer, &end);
    if (n < 2 || name[end] || (n == 3 && t.layer < 0))
        return false;
    int kind = choice_number(lane_kind_name, lane);
    if (kind < 0 || !read_numbers(value, 3, number) || number[0] <= 0)
        return false;
    t.lane = (enum lane_kind)kind;
    t.ns = number[0];
    t.flops = number[1];
    t.bytes = number[2];
    *APPEND(c->tasks, c->n_tasks, c->cap_tasks) = t;
    return true;
}

static const char shown[] = "tutorials/reference-predicting.md and data/hardware show the format";

/* Reads a line whose name is no option's. */
static void read_line(struct costs *c, const struct settings_text *line, char *value)
{
    if (read_link(c, line->name, value) || read_gap(c, line->name, value))
        return;
    if (read_memory(c, line->name, value) || read_task(c, line->name, value))
        return;
    fail(EXIT_USAGE, "%s, line %d: `%.60s = %.60s`: unknown name, or a value that is out of range; %s", line->path,
         line->number, line->name, line->value, shown);
}

static void read_lines(struct costs *c, struct option_table *table)
{
    char *text = read_text(c->path);
    struct settings_text line = {.path = c->path, .unread = text};
    while (next_setting(&line)) {
        const struct option *o = find_option(table, line.name);
        char *value = make_printable(copy_string(line.value), ONE_LINE);
        char *where = format_string("%s, line %d: %s", c->path, line.number, line.name);
        if (o && *value)
            set_option(table, o, where, value);
        else
            read_line(c, &line, value);
        if (!o || o->type != OPT_TEXT) /* the variable of an OPT_TEXT points to `value` */
            free(value);
        free(where);
    }
    free(text);
}

enum { PROFILE = 1, HARDWARE = 2 }; /* the kinds of files, as bits of an option's `commands` */

static void expect_all(const struct costs *c, const struct option_table *table)
{
    unsigned needed = c->measured ? PROFILE : HARDWARE;
    for (size_t i = 0; i < table->n; i++)
        if ((table->options[i].commands & needed) && !table->given[i])
            fail(EXIT_USAGE, "%s: `%s` is missing; %s", c->path, table->options[i].name, shown);
    for (int k = LANE_UPLOAD; k <= LANE_DOWNLOAD; k++)
        if (c->speed[k].bytes_per_s <= 0)
            fail(EXIT_USAGE, "%s: `link %s = BYTES_PER_SECOND LATENCY` is missing; %s", c->path, lane_kind_name[k],
                 shown);
}

struct costs *read_costs(const char *path)
{
    enum { MOST = 1000000 /* devices, units ... */ };
    struct costs *c = allocate(1, sizeof *c);
    *c = (struct costs){.path = copy_string(path), .link_share = 1, .scale_link = 1, .scale_device = 1, .scale_cpu = 1};
    const struct option options[] = {
        /* a profile needs all of PROFILE, a description all of HARDWARE */
        {"device", .type = OPT_TEXT, .value = &c->device, .commands = PROFILE},
        {"driver", .type = OPT_TEXT, .value = &c->driver, .commands = PROFILE},
        {"engine", .type = OPT_TEXT, .value = &c->engine, .commands = PROFILE},
        {"shape", .type = OPT_TEXT, .value = &c->shape, .commands = PROFILE},
        {"units", .type = OPT_LONG, .value = &c->units, .low = 1, .high = MOST, .commands = PROFILE},
        {"vector", .type = OPT_LONG, .value = &c->vector, .low = 1, .high = 16, .commands = PROFILE},
        {"issue", .type = OPT_DOUBLE, .value = &c->issue_seconds, .low = 0, .high = 1e3},
        {"hardware", .type = OPT_TEXT, .value = &c->name, .commands = HARDWARE},
        {"devices", .type = OPT_LONG, .value = &c->devices, .low = 1, .high = MOST, .commands = HARDWARE},
        {"devices_per_link", .type = OPT_LONG, .value = &c->link_share, .low = 1, .high = MOST, .commands = HARDWARE},
        {"flops", .type = OPT_DOUBLE, .value = &c->flops, .low = 1, .high = 1e30, .commands = HARDWARE},
        {"efficiency", .type = OPT_DOUBLE, .value = &c->efficiency, .low = 1e-6, .high = 1, .commands = HARDWARE},
        {"bandwidth", .type = OPT_DOUBLE, .value = &c->bandwidth, .low = 1, .high = 1e30, .commands = HARDWARE},
        {"launch", .type = OPT_DOUBLE, .value = &c->launch, .low = 1e-300, .high = 1e3, .commands = HARDWARE},
        {"host_bandwidth", .type = OPT_DOUBLE, .value = &c->host_bandwidth, .low = 1, .high = 1e30,
         .commands = HARDWARE},
        {"host_launch", .type = OPT_DOUBLE, .value = &c->host_launch, .low = 1e-300, .high = 1e3, .commands = HARDWARE},
        {"memory", .type = OPT_BYTES, .value = &c->memory, .low = 1, .high = NO_LIMIT, .commands = HARDWARE},
        {"host_memory", .type = OPT_BYTES, .value = &c->host_memory, .low = 1, .high = NO_LIMIT, .commands = HARDWARE},
    };
    struct option_table table = {.options = options, .n = COUNT(options)};
    read_lines(c, &table);
    c->measured = c->name == NULL;
    expect_all(c, &table);
    return c;
}

void free_costs(struct costs *c)
{
    free(c->path);
    free(c->device);
    free(c->driver);
    free(c->engine);
    free(c->shape);
    free(c->name);
    free(c->tasks);
    free(c);
}

void check_fingerprint(const struct costs *c, const struct device *d, const char *engine)
{
    char driver[128] = "";
    char units[32], units_now[32], vector[32], vector_now[32];
    if (!c->measured)
        return;
    if (d->cl)
        clGetDeviceInfo(d->cl, CL_DRIVER_VERSION, sizeof driver - 1, driver, NULL);
    if (d->is_logical)
        warn("logical devices share their cores, but the prediction takes each of them for a whole %s", d->name);
    const struct {
        const char *name, *profile, *now;
    } fields[] = {{"device", c->device, d->name},
                  {"driver", c->driver, driver},
                  {"engine", c->engine, engine},
                  {"units", format_exactly(units, (double)c->units), format_exactly(units_now, d->units)},
                  {"vector", format_exactly(vector, (double)c->vector), format_exactly(vector_now, d->shape.vector)}};
    for (size_t i = 0; i < COUNT(fields); i++) {
        char *now = copy_string(fields[i].now);
        if (strcmp(fields[i].profile, trim(now)) != 0) /* some drivers pad their names with blanks */
            fail(EXIT_USAGE,
                 "profile %s was made with %s \"%s\", this run has \"%s\": make a new one with yard profile -o",
                 c->path, fields[i].name, fields[i].profile, fields[i].now);
        free(now);
    }
}

/* ---- a task's time --------------------------------------------------------------------------------------------- */

/* The kind of lane whose speed a task has.  This is the task's own lane, but a copy between two devices on a compute
 * lane is as slow as on an upload or download lane. */
static enum lane_kind speed_kind(const struct task *t)
{
    if (is_copy(t) && t->lane->kind == LANE_COMPUTE && copy_target(t)->device != copy_source(t)->device)
        return copy_source(t)->device->is_host ? LANE_UPLOAD : LANE_DOWNLOAD;
    return t->lane->kind;
}

/* The factor that --what-if gives for the speed of the task. */
static double scale_of(const struct costs *c, const struct task *t)
{
    enum lane_kind kind = speed_kind(t);
    if (kind == LANE_UPLOAD || kind == LANE_DOWNLOAD)
        return c->scale_link;
    if (kind == LANE_DISK)
        return 1;
    return t->lane->device->is_host ? c->scale_cpu : c->scale_device;
}

/* The profile's line that is nearest to the task: a line of the same name and lane, best one for the task's layer, else
 * one for no layer; of several such lines, the one whose bytes are nearest. */
static const struct task_cost *find_task_cost(const struct costs *c, const struct task *t)
{
    const struct task_cost *best = NULL;
    double best_distance = INFINITY;
    for (size_t i = 0; i < c->n_tasks; i++) {
        const struct task_cost *k = &c->tasks[i];
        if (k->lane != t->lane->kind || strcmp(k->name, t->name) != 0)
            continue;
        if (k->layer >= 0 && k->layer != t->layer)
            continue;
        double distance = fabs(log((k->bytes + 1) / ((double)t->bytes + 1)));
        if (!best || k->layer > best->layer || (k->layer == best->layer && distance < best_distance)) {
            best_distance = distance;
            best = k;
        }
    }
    return best;
}

/* Seconds of a task that the profile has not seen, at the average speed of its lane. */
static double seconds_on_lane(const struct costs *c, const struct task *t)
{
    double ns = 0, bytes = 0;
    for (size_t i = 0; i < c->n_tasks; i++)
        if (c->tasks[i].lane == t->lane->kind) {
            ns += c->tasks[i].ns;
            bytes += c->tasks[i].bytes;
        }
    if (bytes > 0)
        return 1e-9 * ns * (double)t->bytes / bytes;
    return 1e-6;
}

static double profiled_seconds(const struct costs *c, const struct task *t, enum cost_source *source)
{
    const struct task_cost *k = find_task_cost(c, t);
    double scale = scale_of(c, t);
    *source = COST_SCALED;
    if (!k)
        return seconds_on_lane(c, t) / scale;
    if (k->flops == t->flops && k->bytes == (double)t->bytes)
        *source = COST_MEASURED;
    double larger = ((double)t->bytes + 1) / (k->bytes + 1);
    if (t->flops > 0 && k->flops > 0)
        larger = t->flops / k->flops;
    return 1e-9 * k->ns * larger / scale;
}

void links_of(const struct task *t, const struct link *link[2])
{
    link[0] = NULL;
    link[1] = NULL;
    if (t->lane->kind == LANE_DISK && (is_copy(t) || t->seconds < 0))
        link[0] = t->lane->device->described.disk;
    else if (is_copy(t) && copy_target(t)->device != copy_source(t)->device) {
        const struct device *to = copy_target(t)->device;
        const struct device *from = copy_source(t)->device;
        link[0] = from->described.link[LINK_DOWN]; /* the host has none */
        link[1] = to->described.link[LINK_UP];
    }
}

double link_rate(const struct link *const link[2], const size_t *copies)
{
    double rate = INFINITY;
    for (int i = 0; i < 2; i++) {
        if (!link[i])
            continue;
        rate = fmin(rate, link[i]->rate / (copies ? (double)copies[i] : 1));
        if (link[i]->queue_rate > 0)
            rate = fmin(rate, link[i]->queue_rate);
    }
    return rate;
}

double link_latency(const struct link *const link[2])
{
    double seconds = 0;
    for (int i = 0; i < 2; i++)
        if (link[i])
            seconds += link[i]->latency;
    return seconds;
}

double given_seconds(const struct task *t)
{
    const struct link *link[2];
    links_of(t, link);
    if (t->seconds >= 0)
        return t->seconds;
    return link_latency(link) + (double)copy_target(t)->bytes / link_rate(link, NULL);
}

/* Seconds by the roofline: what takes longer, computing or reading and writing. */
static double modelled_seconds(const struct costs *c, const struct task *t)
{
    double scale = scale_of(c, t);
    if (t->lane->device->is_host)
        return c->host_launch / scale + (double)t->bytes / (c->host_bandwidth * scale);
    double computing = t->flops / (c->flops * c->efficiency * scale);
    double moving = (double)t->bytes / (c->bandwidth * scale);
    double seconds = fmax(computing, moving);
    /* A kernel of few work-groups leaves units idle.  Products do not count here: `efficiency` tells what they
     * reach. */
    if (c->units && t->file && t->flops == 0) {
        double groups = (double)(t->grid.global[0] / t->grid.local[0]);
        seconds /= fmin(groups / (double)c->units, 1);
    }
    return c->launch + seconds;
}

double task_seconds(const struct costs *c, const struct task *t, enum cost_source *source)
{
    *source = COST_GIVEN;
    if (!c)
        return given_seconds(t);
    *source = c->measured ? COST_MEASURED : COST_MODELLED;
    if (t->seconds >= 0)
        return given_seconds(t);
    const struct lane_speed *speed =
        &c->speed[speed_kind(t)]; /* copies always have a speed, work of the host may have one */
    if (speed->bytes_per_s > 0 && !(c->measured && find_task_cost(c, t))) {
        size_t bytes = is_copy(t) ? copy_target(t)->bytes : t->bytes;
        return speed->latency + (double)bytes / (speed->bytes_per_s * scale_of(c, t));
    }
    return c->measured ? profiled_seconds(c, t, source) : modelled_seconds(c, t);
}

static bool has_time(const struct task *t, const struct costs *c) { return c || t->seconds >= 0 || is_copy(t); }

bool has_times(const struct step *s, const struct costs *c)
{
    for (size_t i = 0; i < s->n; i++)
        if (!has_time(s->task[i], c))
            return false;
    return true;
}

double seconds_alone(const struct costs *c, const struct task *t)
{
    enum cost_source source;
    return has_time(t, c) ? task_seconds(c, t, &source) : 0;
}

double seconds_of_copy(const struct costs *c, const char *name, struct lane *lane, struct device *to,
                       struct device *from, size_t bytes)
{
    struct tensor there = {.device = to, .bytes = bytes};
    struct tensor here = {.device = from, .bytes = bytes};
    struct access access[] = {{&there, ACCESS_WRITE}, {&here, ACCESS_READ}};
    struct task copy = {.lane = lane, .layer = -1, .micro = -1, .action = ACT_COPY, .access = access, .n_access = 2};
    snprintf(copy.name, sizeof copy.name, "%s", name);
    copy.bytes = 2 * bytes;
    copy.seconds = -1;
    return seconds_alone(c, &copy);
}

/* ---- what if --------------------------------------------------------------------------------------------------- */

static bool is_factor(double x) { return x >= 1e-6 && x <= 1e6; }

/* Applies "link=2x", or the same without x.  Returns false if the word is another one, or its factor out of range. */
static bool scale_speed(struct costs *c, const char *word)
{
    const struct {
        const char *name;
        double *scale;
    } speeds[] = {{"link", &c->scale_link}, {"cpu", &c->scale_cpu}, {"device", &c->scale_device}};
    char name[8] = "";
    double factor;
    int end = 0;
    if (sscanf(word, "%7[a-z]=%lf%n", name, &factor, &end) != 2)
        return false;
    if (word[end] && strcmp(word + end, "x") != 0)
        return false;
    for (size_t i = 0; i < COUNT(speeds); i++)
        if (strcmp(name, speeds[i].name) == 0) {
            *speeds[i].scale *= factor;
            return is_factor(factor) && is_factor(*speeds[i].scale);
        }
    return false;
}

/* Applies "mem=8G".  Returns false if the word is another one. */
static bool change_budget(struct machine *m, const char *word)
{
    size_t bytes;
    if (strncmp(word, "mem=", 4) != 0 || !parse_bytes(word + 4, &bytes) || bytes == 0)
        return false;
    set_budgets(m, bytes, 0);
    return true;
}

void apply_what_if(struct costs *c, struct machine *m, const char *text)
{
    static const char blanks[] = " \t\r\n,";
    char *words = copy_string(text), *rest = NULL;
    for (char *word = strtok_r(words, blanks, &rest); word; word = strtok_r(NULL, blanks, &rest))
        if (!change_budget(m, word) && !scale_speed(c, word))
            fail(EXIT_USAGE,
                 "--what-if: '%s': expected words such as link=2x cpu=0.5x device=1.5x mem=8G, factors of 1e-6 to 1e6",
                 word);
    free(words);
}

void apply_what_if_to_list(struct step *s, const char *text)
{
    struct costs c = {.scale_link = 1, .scale_device = 1, .scale_cpu = 1};
    struct machine *m = s->pool->machine;
    apply_what_if(&c, m, text);
    for (size_t i = 0; i < s->n; i++) {
        struct task *t = s->task[i];
        if (t->seconds > 0)
            t->seconds /= scale_of(&c, t);
        if (t->host_seconds > 0)
            t->host_seconds /= c.scale_cpu;
    }
    for (size_t i = 0; i < m->n_links; i++) {
        struct link *link = m->link[i];
        if (link == m->host->described.disk)
            continue;
        link->rate *= c.scale_link;
        link->queue_rate *= c.scale_link;
    }
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

void write_profile(const char *path, const struct costs *c, const char *shape)
{
    char *text = format_string("# A profile of Trainyard: medians of a trial run.  Edit it freely; `yard plan "
                               "--simulate --profile` reads it.\n");
    append_text(&text, "device = %s\ndriver = %s\nengine = %s\nunits = %lld\nvector = %lld\nshape = %s\nissue = %.3g\n",
                c->device, c->driver, c->engine, (long long)c->units, (long long)c->vector, shape, c->issue_seconds);
    for (int k = 0; k < LANE_KINDS; k++) {
        if (c->speed[k].bytes_per_s > 0)
            append_text(&text, "link %s = %.4g %.3g\n", lane_kind_name[k], c->speed[k].bytes_per_s,
                        c->speed[k].latency);
        if (c->gap_seconds[k] > 0)
            append_text(&text, "gap %s = %.3g\n", lane_kind_name[k], c->gap_seconds[k]);
    }
    for (int i = 0; i < MEM_CLASSES; i++)
        append_text(&text, "memory %s = %.0f\n", memory_class_name[i], c->peak_memory[i]);
    for (const struct task_cost *t = c->tasks; t < c->tasks + c->n_tasks; t++) {
        append_text(&text, "task %s %s ", t->name, lane_kind_name[t->lane]);
        if (t->layer >= 0)
            append_text(&text, "layer=%d ", t->layer);
        append_text(&text, "= %.0f %.0f %.0f\n", t->ns, t->flops, t->bytes);
    }
    publish_text(path, text);
    free(text);
}
