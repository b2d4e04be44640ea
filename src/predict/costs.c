/* costs.c - how long tasks take: profiles (measured) and hardware descriptions (modelled).  The formats are in
 * predict.h; a person can edit both.
 */
#include "../file/file.h"
#include "predict.h"

#include <errno.h>
#include <math.h>

const char *const cost_source_name[COST_SOURCES] = {"measured", "scaled", "modelled", "given"};

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* What numbers may be: so far apart that any machine fits, and near enough that no time overflows. */
struct range {
    double low, high;
};
static const struct range per_second = {1, 1e30}, some_time = {1e-300, 1e3}, seconds = {0, 1e3}, share = {1e-6, 1},
                          factors = {1e-6, 1e6}, some = {1e-300, 1e30}, amount = {0, 1e30};
enum { MOST = 1000000 /* devices, units ... */ };

#define AT(member) offsetof(struct costs, member)
#define ONE(range) {range}, NULL, 0
#define NO_RANGE ONE(NULL)
enum field_type { TEXT, WHOLE, BYTES, NUMBERS };
static const struct field {
    const char *name;
    enum field_type type;
    size_t offset;
    char needed_by;               /* 'p'rofile, 'h'ardware, or neither: ' ' */
    const struct range *range[2]; /* of NUMBERS, one or two of them */
    const char *const *of;        /* a line for each of these kinds: "link upload = ..." */
    int kinds;
} fields[] = {
    {"device", TEXT, AT(device), 'p', NO_RANGE},
    {"driver", TEXT, AT(driver), 'p', NO_RANGE},
    {"engine", TEXT, AT(engine), 'p', NO_RANGE},
    {"shape", TEXT, AT(shape), 'p', NO_RANGE},
    {"units", WHOLE, AT(units), 'p', NO_RANGE},
    {"vector", WHOLE, AT(vector), 'p', NO_RANGE},
    {"issue", NUMBERS, AT(issue), ' ', ONE(&some_time)},
    {"hardware", TEXT, AT(name), 'h', NO_RANGE},
    {"devices", WHOLE, AT(devices), 'h', NO_RANGE},
    {"devices_per_link", WHOLE, AT(link_share), 'h', NO_RANGE},
    {"flops", NUMBERS, AT(flops), 'h', ONE(&per_second)},
    {"efficiency", NUMBERS, AT(efficiency), 'h', ONE(&share)},
    {"bandwidth", NUMBERS, AT(bandwidth), 'h', ONE(&per_second)},
    {"launch", NUMBERS, AT(launch), 'h', ONE(&some_time)},
    {"host_bandwidth", NUMBERS, AT(host_bandwidth), 'h', ONE(&per_second)},
    {"host_launch", NUMBERS, AT(host_launch), 'h', ONE(&some_time)},
    {"memory", BYTES, AT(memory), 'h', NO_RANGE},
    {"host_memory", BYTES, AT(host_memory), 'h', NO_RANGE},
    {"link", NUMBERS, AT(link), ' ', {&per_second, &seconds}, lane_kind_name, LANE_KINDS},
    {"gap", NUMBERS, AT(gap), ' ', {&seconds}, lane_kind_name, LANE_KINDS},
    {"memory", NUMBERS, AT(peak_memory), ' ', {&amount}, memory_class_name, MEM_CLASSES},
};

static bool within(double x, const struct range *r) { return x >= r->low && x <= r->high; }

/* Cuts the text into words; their number, `most` of which are kept. */
static int cut_words(char *text, char *word[], int most)
{
    int n = 0;
    for (char *save = NULL, *w = strtok_r(text, " \t", &save); w; w = strtok_r(NULL, " \t", &save), n++)
        if (n < most)
            word[n] = w;
    return n;
}

/* As many numbers as there are ranges. */
static bool read_numbers(char *text, const struct range *const *range, int n, double *number)
{
    char *word[3];
    bool good = cut_words(text, word, n) == n;
    for (int i = 0; good && i < n; i++)
        good = parse_double(word[i], &number[i]) && within(number[i], range[i]);
    return good;
}

static int kind_by_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static bool set_field(struct costs *c, const struct field *f, int kind, char *value)
{
    void *to = (char *)c + f->offset;
    int n = f->range[1] ? 2 : 1;
    switch (f->type) {
    case TEXT:
        free(*(char **)to);
        *(char **)to = make_printable(copy_string(value), false);
        return *value != '\0';
    case WHOLE:
        return parse_int(value, to) && *(int64_t *)to > 0 && *(int64_t *)to <= MOST;
    case BYTES:
        return parse_bytes(value, to) && *(size_t *)to > 0;
    case NUMBERS:
        return read_numbers(value, f->range, n, (double *)to + kind * n);
    }
    return false;
}

/* task NAME LANE [layer=K] = NANOSECONDS FLOPS BYTES */
static bool read_task(struct costs *c, char *const *word, int n, char *value)
{
    int64_t layer = -1;
    int lane = kind_by_name(lane_kind_name, LANE_KINDS, word[2]);
    struct task_cost t = {.lane = (enum lane_kind)lane};
    double number[3];
    bool good = lane >= 0 && strlen(word[1]) < sizeof t.name &&
                read_numbers(value, (const struct range *const[]){&some, &amount, &amount}, 3, number);
    if (n == 4)
        good &= strncmp(word[3], "layer=", 6) == 0 && parse_int(word[3] + 6, &layer) && layer >= 0 && layer <= MOST;
    if (!good || n > 4)
        return false;
    snprintf(t.name, sizeof t.name, "%s", word[1]);
    t.layer = (int)layer;
    t.ns = number[0], t.flops = number[1], t.bytes = number[2];
    *APPEND(c->tasks, c->n_tasks, c->cap_tasks) = t;
    return true;
}

/* What `name = value` says; `seen` has a bit per field.  Both texts are cut up. */
static bool read_setting(struct costs *c, char *name, char *value, uint64_t *seen)
{
    char *word[4] = {""};
    int n = cut_words(name, word, 4);
    if (n >= 3 && strcmp(word[0], "task") == 0)
        return read_task(c, word, n, value);
    for (size_t i = 0; i < COUNT(fields); i++) {
        const struct field *f = &fields[i];
        if (strcmp(f->name, word[0]) != 0 || n != (f->of ? 2 : 1))
            continue;
        int kind = f->of ? kind_by_name(f->of, f->kinds, word[1]) : 0;
        *seen |= UINT64_C(1) << i;
        return kind >= 0 && set_field(c, f, kind, value);
    }
    return false;
}

static void check_complete(const struct costs *c, uint64_t seen)
{
    for (size_t i = 0; i < COUNT(fields); i++)
        if (fields[i].needed_by == (c->measured ? 'p' : 'h') && !(seen >> i & 1))
            fail(EXIT_USAGE, "%s: `%s` is missing", c->path, fields[i].name);
    for (int k = LANE_UPLOAD; k <= LANE_DOWNLOAD; k++)
        if (c->link[k].bytes_per_s <= 0)
            fail(EXIT_USAGE, "%s: `link %s = BYTES_PER_SECOND LATENCY` is missing", c->path, lane_kind_name[k]);
}

struct costs *read_costs(const char *path)
{
    struct costs *c = allocate(1, sizeof *c);
    char *text = read_text(path);
    struct settings_text lines = {.path = path, .rest = text};
    uint64_t seen = 0;
    *c = (struct costs){.path = copy_string(path), .link_share = 1, .scale_link = 1, .scale_device = 1, .scale_cpu = 1};
    while (next_setting(&lines)) {
        char *name = copy_string(lines.name), *value = copy_string(lines.value);
        if (!read_setting(c, name, value, &seen))
            fail(EXIT_USAGE,
                 "%s, line %d: `%.60s = %.60s`: unknown name, or a value that is out of range (counts are whole "
                 "numbers from 1 up); tutorials/reference-predicting.md and data/hardware show the format",
                 path, lines.number, lines.name, lines.value);
        free(name), free(value);
    }
    c->measured = c->name == NULL;
    check_complete(c, seen);
    free(text);
    return c;
}

void free_costs(struct costs *c)
{
    free(c->path), free(c->device), free(c->driver), free(c->engine), free(c->shape), free(c->name), free(c->tasks);
    free(c);
}

/* ---- the fingerprint ------------------------------------------------------------------------------------------- */

static void check_text(const struct costs *c, const char *field, const char *profile, const char *now)
{
    char *copy = copy_string(now);
    bool same = strcmp(profile, trim(copy)) == 0; /* some drivers pad their names with blanks */
    free(copy);
    if (!same)
        fail(EXIT_USAGE, "profile %s was made with %s \"%s\", this run has \"%s\": make a new one with yard profile -o",
             c->path, field, profile, now);
}

static void check_number(const struct costs *c, const char *field, int64_t profile, unsigned now)
{
    char a[32], b[32];
    snprintf(a, sizeof a, "%lld", (long long)profile);
    snprintf(b, sizeof b, "%u", now);
    check_text(c, field, a, b);
}

void check_fingerprint(const struct costs *c, const struct device *d, const char *engine)
{
    char driver[128] = "";
    if (!c->measured)
        return;
    if (d->cl)
        clGetDeviceInfo(d->cl, CL_DRIVER_VERSION, sizeof driver - 1, driver, NULL);
    if (d->is_logical)
        warn("logical devices share their cores, but the prediction takes each of them for a whole %s", d->name);
    check_text(c, "device", c->device, d->name);
    check_text(c, "driver", c->driver, driver);
    check_text(c, "engine", c->engine, engine);
    check_number(c, "units", c->units, d->units);
    check_number(c, "vector", c->vector, d->vector);
}

/* ---- a task's time --------------------------------------------------------------------------------------------- */

/* The kind of lane whose speed a task has: a copy that takes its turn on the compute lane is no faster for it. */
static enum lane_kind speed_of(const struct task *t)
{
    if (t->copy && t->lane->kind == LANE_COMPUTE)
        return t->access[1].tensor->device->is_host ? LANE_UPLOAD : LANE_DOWNLOAD;
    return t->lane->kind;
}

static bool is_copy_lane(const struct task *t) { return speed_of(t) == LANE_UPLOAD || speed_of(t) == LANE_DOWNLOAD; }

static double roofline(const struct costs *c, const struct task *t)
{
    bool host = t->lane->device->is_host;
    double flops = c->flops * c->efficiency * c->scale_device, bytes = c->bandwidth * c->scale_device;
    if (host)
        return c->host_launch / c->scale_cpu + (double)t->bytes / (c->host_bandwidth * c->scale_cpu);
    return c->launch + fmax(t->flops / flops, (double)t->bytes / bytes);
}

/* By the speed of its lane's kind: of copies always, of what the host does where one is given. */
static bool has_speed(const struct costs *c, const struct task *t) { return c->link[speed_of(t)].bytes_per_s > 0; }

static double speed_seconds(const struct costs *c, const struct task *t)
{
    const struct lane_speed *s = &c->link[speed_of(t)];
    double bytes = (double)(t->copy ? t->access[0].tensor->bytes : t->bytes);
    double scale = is_copy_lane(t) ? c->scale_link : t->lane->kind == LANE_DISK ? 1 : c->scale_cpu;
    return s->latency + bytes / (s->bytes_per_s * scale);
}

/* The nearest kind of the profile: of the same name and lane, of its own layer before those of no layer, and of these
 * the nearest in size. */
static const struct task_cost *find_kind(const struct costs *c, const struct task *t)
{
    const struct task_cost *best = NULL;
    double best_distance = INFINITY;
    for (size_t i = 0; i < c->n_tasks; i++) {
        const struct task_cost *k = &c->tasks[i];
        if (k->lane != t->lane->kind || strcmp(k->name, t->name) != 0 || (k->layer >= 0 && k->layer != t->layer))
            continue;
        double distance = fabs(log((k->bytes + 1) / ((double)t->bytes + 1)));
        if (!best || k->layer > best->layer || (k->layer == best->layer && distance < best_distance)) {
            best_distance = distance;
            best = k;
        }
    }
    return best;
}

/* A task that the profile has not seen runs at the average speed of its lane. */
static double unseen(const struct costs *c, const struct task *t)
{
    double ns = 0, bytes = 0;
    for (size_t i = 0; i < c->n_tasks; i++)
        if (c->tasks[i].lane == t->lane->kind) {
            ns += c->tasks[i].ns;
            bytes += c->tasks[i].bytes;
        }
    return bytes > 0 ? 1e-9 * ns * (double)t->bytes / bytes : 1e-6;
}

static double profiled(const struct costs *c, const struct task *t, enum cost_source *source)
{
    const struct task_cost *k = find_kind(c, t);
    double scale = is_copy_lane(t) ? c->scale_link : t->lane->device->is_host ? c->scale_cpu : c->scale_device;
    *source = COST_SCALED;
    if (!k)
        return unseen(c, t) / scale;
    bool same = k->flops == t->flops && k->bytes == (double)t->bytes;
    double ratio = t->flops > 0 && k->flops > 0 ? t->flops / k->flops : ((double)t->bytes + 1) / (k->bytes + 1);
    if (same)
        *source = COST_MEASURED;
    return 1e-9 * k->ns * (same ? 1 : ratio) / scale;
}

double task_seconds(const struct costs *c, const struct task *t, enum cost_source *source)
{
    *source = c->measured ? COST_MEASURED : COST_MODELLED;
    if (t->seconds >= 0)
        return t->seconds;
    if (has_speed(c, t) && !(c->measured && find_kind(c, t)))
        return speed_seconds(c, t);
    return c->measured ? profiled(c, t, source) : roofline(c, t);
}

bool has_times(const struct step *s, const struct costs *c)
{
    for (size_t i = 0; i < s->n && !c; i++)
        if (s->task[i]->seconds < 0 && !s->task[i]->copy)
            return false;
    return true;
}

double seconds_alone(const struct costs *c, const struct task *t)
{
    enum cost_source source;
    if (c)
        return task_seconds(c, t, &source);
    return t->seconds < 0 && !t->copy ? 0 : given_seconds(t);
}

/* ---- what if --------------------------------------------------------------------------------------------------- */

static bool apply_word(struct costs *c, struct machine *m, const char *word)
{
    double factor;
    int used = 0;
    size_t bytes;
    bool memory = strncmp(word, "mem=", 4) == 0 && parse_bytes(word + 4, &bytes) && bytes > 0;
    for (int i = 0; memory && i < m->n_devices; i++)
        m->device[i].budget = bytes;
    double *scale = strncmp(word, "link=", 5) == 0     ? &c->scale_link
                    : strncmp(word, "cpu=", 4) == 0    ? &c->scale_cpu
                    : strncmp(word, "device=", 7) == 0 ? &c->scale_device
                                                       : NULL;
    if (!scale)
        return memory;
    const char *number = strchr(word, '=') + 1;
    if (sscanf(number, "%lf%n", &factor, &used) != 1 || (number[used] && strcmp(number + used, "x") != 0))
        return false;
    *scale *= factor;
    return within(factor, &factors) && within(*scale, &factors);
}

void apply_what_if(struct costs *c, struct machine *m, const char *text)
{
    char *words = copy_string(text), *save = NULL;
    for (char *word = strtok_r(words, " ,", &save); word; word = strtok_r(NULL, " ,", &save))
        if (!apply_word(c, m, word))
            fail(EXIT_USAGE,
                 "--what-if: '%s': expected words such as link=2x cpu=0.5x device=1.5x mem=8G, with factors of 1e-6 to "
                 "1e6",
                 word);
    free(words);
}

/* ---- writing a profile ----------------------------------------------------------------------------------------- */

static void write_task(FILE *f, const struct task_cost *t)
{
    fprintf(f, "task %s %s ", t->name, lane_kind_name[t->lane]);
    if (t->layer >= 0)
        fprintf(f, "layer=%d ", t->layer);
    fprintf(f, "= %.0f %.0f %.0f\n", t->ns, t->flops, t->bytes);
}

static void print_profile(FILE *f, const struct costs *c, const char *shape)
{
    fprintf(f, "# A profile of Trainyard: medians of a trial run.  Edit it freely; `yard plan --simulate --profile` "
               "reads it.\n");
    fprintf(f, "device = %s\ndriver = %s\nengine = %s\nunits = %lld\nvector = %lld\nshape = %s\n", c->device, c->driver,
            c->engine, (long long)c->units, (long long)c->vector, shape);
    fprintf(f, "\n# copies: bytes per second, latency in seconds\n");
    for (int k = 0; k < LANE_KINDS; k++)
        if (c->link[k].bytes_per_s > 0)
            fprintf(f, "link %s = %.4g %.3g\n", lane_kind_name[k], c->link[k].bytes_per_s, c->link[k].latency);
    fprintf(f, "\n# seconds from a task's end to the start of the next one behind it; host seconds to issue a task\n");
    for (int k = 0; k < LANE_KINDS; k++)
        if (c->gap[k] > 0)
            fprintf(f, "gap %s = %.3g\n", lane_kind_name[k], c->gap[k]);
    if (c->issue > 0)
        fprintf(f, "issue = %.3g\n", c->issue);
    fprintf(f, "\n# peak memory of a device, bytes\n");
    for (int i = 0; i < MEM_CLASSES; i++)
        fprintf(f, "memory %s = %.0f\n", memory_class_name[i], c->peak_memory[i]);
    fprintf(f, "\n# task NAME LANE = nanoseconds, FLOPs, bytes of one such task\n");
    for (size_t i = 0; i < c->n_tasks; i++)
        write_task(f, &c->tasks[i]);
}

void write_profile(const char *path, const struct costs *c, const char *shape)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (f)
        print_profile(f, c, shape);
    if (!f || fclose(f))
        fail(EXIT_IO, "cannot write %s: %s", path, strerror(errno));
    struct writer *w = open_writer(path);
    write_bytes(w, text, n);
    publish(w);
    free(text);
}
