/* costs.c - how long tasks take: by a profile's measured times, by the roofline of a hardware description, or by what a
 * step file says; and what --what-if changes in that.
 */
#include "costs.h"
#include "forecast.h" /* defines: set_budgets() */

#include <math.h>

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
    /* Copies always have a speed, work of the host may have one. */
    const struct lane_speed *speed = &c->speed[speed_kind(t)];
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
        if (t->on_host.seconds > 0)
            t->on_host.seconds /= c.scale_cpu;
    }
    for (size_t i = 0; i < m->n_links; i++) {
        struct link *link = m->link[i];
        if (link == m->host->described.disk)
            continue;
        link->rate *= c.scale_link;
        link->queue_rate *= c.scale_link;
    }
}
