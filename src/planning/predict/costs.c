/* costs.c - how long tasks take: by a profile's measured times, by the roofline of a hardware description, or by what a
 * step file says; and what --what-if changes in that.
 */
#include "costs.h"
#include "forecast.h" /* brings: set_budgets() */

#include <math.h>

struct costs *new_costs(const char *label)
{
    struct costs *costs = allocate(1, sizeof *costs);
    *costs = (struct costs){
        .label = copy_string(label), .link_share = 1, .scale_link = 1, .scale_device = 1, .scale_cpu = 1};
    return costs;
}

void add_task_cost(struct costs *costs, struct task_cost cost)
{
    GROW(costs->tasks, costs->cap_tasks, costs->n_tasks + 1);
    costs->tasks[costs->n_tasks++] = cost;
}

void free_costs(struct costs *costs)
{
    free(costs->label);
    free(costs->device);
    free(costs->driver);
    free(costs->engine);
    free(costs->shape);
    free(costs->name);
    free(costs->tasks);
    free(costs);
}

/* ---- a task's time ----------------------------------------------------------------------------------------------- */

/* The kind of lane whose speed a task has.  This is the task's own lane, but a copy between two devices on a compute
 * lane is as slow as on an upload or download lane. */
static enum lane_kind speed_kind(const struct task *task)
{
    if (is_copy(task) && task->lane->kind == LANE_COMPUTE && copy_target(task)->device != copy_source(task)->device)
        return copy_source(task)->device->is_host ? LANE_UPLOAD : LANE_DOWNLOAD;
    return task->lane->kind;
}

/* The factor that --what-if gives for the speed of the task. */
static double scale_of(const struct costs *costs, const struct task *task)
{
    enum lane_kind kind = speed_kind(task);
    if (kind == LANE_UPLOAD || kind == LANE_DOWNLOAD)
        return costs->scale_link;
    if (kind == LANE_DISK)
        return 1;
    return task->lane->device->is_host ? costs->scale_cpu : costs->scale_device;
}

/* The profile's line that is nearest to the task.  It has the task's name and lane.  A line for the task's layer comes
 * before one for no layer, and of several such lines the one whose bytes are nearest is taken. */
static const struct task_cost *find_task_cost(const struct costs *costs, const struct task *task)
{
    const struct task_cost *best = NULL;
    double best_distance = INFINITY;
    for (size_t i = 0; i < costs->n_tasks; i++) {
        const struct task_cost *cost = &costs->tasks[i];
        if (cost->lane != task->lane->kind || strcmp(cost->name, task->name) != 0)
            continue;
        if (cost->layer >= 0 && cost->layer != task->layer)
            continue;
        double distance = fabs(log((cost->bytes + 1) / ((double)task->bytes + 1)));
        if (!best || cost->layer > best->layer || (cost->layer == best->layer && distance < best_distance)) {
            best_distance = distance;
            best = cost;
        }
    }
    return best;
}

/* Seconds of a task that the profile has not seen, at the average speed of its lane. */
static double seconds_on_lane(const struct costs *costs, const struct task *task)
{
    double ns = 0, bytes = 0;
    for (size_t i = 0; i < costs->n_tasks; i++)
        if (costs->tasks[i].lane == task->lane->kind) {
            ns += costs->tasks[i].ns;
            bytes += costs->tasks[i].bytes;
        }
    if (bytes > 0)
        return 1e-9 * ns * (double)task->bytes / bytes;
    return 1e-6; /* a guess: the profile has no task on such a lane */
}

static double profiled_seconds(const struct costs *costs, const struct task *task, enum cost_source *source)
{
    const struct task_cost *cost = find_task_cost(costs, task);
    double scale = scale_of(costs, task);
    *source = COST_SCALED;
    if (!cost)
        return seconds_on_lane(costs, task) / scale;
    if (cost->flops == task->flops && cost->bytes == (double)task->bytes)
        *source = COST_MEASURED;
    double larger = ((double)task->bytes + 1) / (cost->bytes + 1);
    if (task->flops > 0 && cost->flops > 0)
        larger = task->flops / cost->flops;
    return 1e-9 * cost->ns * larger / scale;
}

void links_of(const struct task *task, const struct link *links[2])
{
    links[0] = NULL;
    links[1] = NULL;
    if (task->lane->kind == LANE_DISK && (is_copy(task) || isnan(task->extra.seconds)))
        links[0] = task->lane->device->extra.described.disk;
    else if (is_copy(task) && copy_target(task)->device != copy_source(task)->device) {
        const struct device *to = copy_target(task)->device;
        const struct device *from = copy_source(task)->device;
        links[0] = from->extra.described.links[LINK_DOWN]; /* the host has none */
        links[1] = to->extra.described.links[LINK_UP];
    }
}

double link_rate(const struct link *const links[2], const size_t *copies)
{
    double rate = INFINITY;
    for (int i = 0; i < 2; i++) {
        if (!links[i])
            continue;
        rate = fmin(rate, links[i]->rate / (copies ? (double)copies[i] : 1));
        if (links[i]->queue_rate > 0)
            rate = fmin(rate, links[i]->queue_rate);
    }
    return rate;
}

double link_latency(const struct link *const links[2])
{
    double seconds = 0;
    for (int i = 0; i < 2; i++)
        if (links[i])
            seconds += links[i]->latency;
    return seconds;
}

double given_seconds(const struct task *task)
{
    const struct link *links[2];
    links_of(task, links);
    if (!isnan(task->extra.seconds))
        return task->extra.seconds;
    return link_latency(links) + (double)copy_target(task)->bytes / link_rate(links, NULL);
}

/* Seconds by the roofline: what takes longer, computing or reading and writing. */
static double modelled_seconds(const struct costs *costs, const struct task *task)
{
    double scale = scale_of(costs, task);
    if (task->lane->device->is_host)
        return costs->host_launch / scale + (double)task->bytes / (costs->host_bandwidth * scale);
    double computing = task->flops / (costs->flops * costs->efficiency * scale);
    double moving = (double)task->bytes / (costs->bandwidth * scale);
    double seconds = fmax(computing, moving);
    /* A kernel of few work-groups leaves units idle.  Products do not count here: `efficiency` tells what they
     * reach. */
    if (costs->units && task->file && task->flops == 0) {
        size_t groups = task->grid.global[0] / task->grid.local[0];
        seconds /= fmin((double)groups / (double)costs->units, 1);
    }
    return costs->launch + seconds;
}

double task_seconds(const struct costs *costs, const struct task *task, enum cost_source *source)
{
    *source = COST_GIVEN;
    if (!costs)
        return given_seconds(task);
    *source = costs->measured ? COST_MEASURED : COST_MODELLED;
    if (!isnan(task->extra.seconds))
        return given_seconds(task);
    /* Copies always have a speed, work of the host may have one. */
    const struct lane_speed *speed = &costs->speeds[speed_kind(task)];
    if (speed->bytes_per_s > 0 && !(costs->measured && find_task_cost(costs, task))) {
        size_t bytes = is_copy(task) ? copy_target(task)->bytes : task->bytes;
        return speed->latency + (double)bytes / (speed->bytes_per_s * scale_of(costs, task));
    }
    return costs->measured ? profiled_seconds(costs, task, source) : modelled_seconds(costs, task);
}

static bool has_time(const struct task *task, const struct costs *costs)
{
    return costs || !isnan(task->extra.seconds) || is_copy(task);
}

bool has_times(const struct list *list, const struct costs *costs)
{
    for (size_t i = 0; i < list->n; i++)
        if (!has_time(list->tasks[i], costs))
            return false;
    return true;
}

double seconds_alone(const struct costs *costs, const struct task *task)
{
    enum cost_source source;
    return has_time(task, costs) ? task_seconds(costs, task, &source) : 0;
}

double seconds_of_copy(const struct costs *costs, const char *name, struct lane *lane, struct device *to,
                       struct device *from, size_t bytes)
{
    struct tensor there = {.device = to, .bytes = bytes};
    struct tensor here = {.device = from, .bytes = bytes};
    struct access access[] = {{&there, ACCESS_WRITE}, {&here, ACCESS_READ}};
    struct task copy = {
        .lane = lane, .layer = NONE, .micro = NONE, .action = ACT_COPY, .accesses = access, .n_accesses = 2};
    snprintf(copy.name, sizeof copy.name, "%s", name);
    copy.bytes = 2 * bytes;
    copy.extra.seconds = NAN;
    return seconds_alone(costs, &copy);
}

/* ---- what if ----------------------------------------------------------------------------------------------------- */

static bool is_factor(double number) { return number >= 1e-6 && number <= 1e6; }

/* Applies "link=2x" or "link=2".  Returns false if the word names no speed, or its factor is out of range. */
static bool scale_speed(struct costs *costs, const char *word)
{
    const struct {
        const char *name;
        double *scale;
    } speeds[] = {{"link", &costs->scale_link}, {"cpu", &costs->scale_cpu}, {"device", &costs->scale_device}};
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
static bool change_budget(struct machine *machine, const char *word)
{
    size_t bytes;
    if (strncmp(word, "mem=", 4) != 0 || !parse_bytes(word + 4, &bytes) || bytes == 0)
        return false;
    set_budgets(machine, bytes, 0);
    return true;
}

void apply_what_if(struct costs *costs, struct machine *machine, const char *text)
{
    static const char blanks[] = " \t\r\n,";
    char *words = copy_string(text);
    char *rest = NULL;
    for (char *word = strtok_r(words, blanks, &rest); word; word = strtok_r(NULL, blanks, &rest))
        if (!change_budget(machine, word) && !scale_speed(costs, word))
            fail(EXIT_USAGE,
                 "--what-if takes words such as link=2x cpu=0.5x device=1.5x mem=8G, with factors of 1e-6 to 1e6, not "
                 "\"%s\"",
                 word);
    free(words);
}

void apply_what_if_to_list(struct list *list, const char *text)
{
    struct costs *costs = new_costs("a step file");
    struct machine *machine = list->pool->machine;
    apply_what_if(costs, machine, text);
    for (size_t i = 0; i < list->n; i++) {
        struct task *task = list->tasks[i];
        if (task->extra.seconds > 0)
            task->extra.seconds /= scale_of(costs, task);
        if (task->extra.on_host.seconds > 0)
            task->extra.on_host.seconds /= costs->scale_cpu;
    }
    for (int i = 0; i < machine->n_links; i++) {
        struct link *link = machine->links[i];
        if (link == machine->host->extra.described.disk)
            continue;
        link->rate *= costs->scale_link;
        link->queue_rate *= costs->scale_link;
    }
    free_costs(costs);
}
