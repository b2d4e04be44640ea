/* writelist.c - writes a list as a step file, from which readlist.c reads a list that is simulated to the same times.
 *
 * Numbers are written with as few digits as bring the same number back.
 */
#include "line.h"
#include "lists.h"
#include "planning/pass/uses.h"
#include "planning/predict/costs.h"

#include <ctype.h>
#include <math.h>

enum { NAME_BYTES = 64 };

/* The text as a name that a step file may have, in `name`: each character that is not allowed there becomes '_'. */
static char *clean(char name[NAME_BYTES], const char *text)
{
    snprintf(name, NAME_BYTES, "%s", text);
    for (char *character = name; *character; character++)
        if (isspace((unsigned char)*character) || strchr("[],=#'", *character))
            *character = '_';
    return name;
}

static void write_lane(FILE *out, const char *before, const struct lane *lane)
{
    char name[NAME_BYTES];
    fprintf(out, "%s%s.%s", before, clean(name, lane->device->id), lane_kind_name[lane->kind]);
    if (lane->nth)
        fprintf(out, "%d", lane->nth);
}

static void write_lane_line(FILE *out, const struct lane *lane)
{
    write_lane(out, "lane ", lane);
    write_options(out, LINE_LANE, lane);
    fputc('\n', out);
}

/* Writes a link with all devices that have it in one direction: "link d0,d1 up ..."; or the disk's. */
static void write_link(FILE *out, const struct machine *machine, const struct link *link)
{
    static const char *const ways[DIRECTIONS] = {"up", "down"};
    char name[NAME_BYTES];
    const char *before = "link ";
    const char *way = NULL;
    for (int direction = LINK_UP; direction < DIRECTIONS; direction++)
        for (int i = 0; i < machine->n_devices; i++)
            if (machine->devices[i].extra.described.links[direction] == link) {
                fprintf(out, "%s%s", before, clean(name, machine->devices[i].id));
                before = ",";
                way = ways[direction];
            }
    char number[NUMBER_TEXT];
    if (way)
        fprintf(out, " %s", way);
    else
        fprintf(out, "disk");
    fprintf(out, " %s", format_exactly(number, link->rate));
    if (link->latency > 0)
        fprintf(out, " %s", format_exactly(number, link->latency));
    write_options(out, LINE_LINK, link);
    fputc('\n', out);
}

static void write_device(FILE *out, const struct machine *machine, const struct device *device)
{
    char name[NAME_BYTES];
    struct device written = *device;
    written.max_allocation = 0; /* no slab= */
    if (slab_limit(device) < device->budget - guard_bytes(device))
        written.max_allocation = slab_limit(device);
    if (!device->extra.described.by_hand)
        written.extra.described.shares_bytes = true;
    fprintf(out, "device %s", clean(name, device->id));
    write_options(out, LINE_DEVICE, &written);
    if (device->is_host)
        write_options(out, LINE_HOST, machine);
    fputc('\n', out);
}

static void write_machine(FILE *out, const struct machine *machine)
{
    for (int i = 0; i <= machine->n_devices; i++)
        write_device(out, machine, &machine->devices[i]);
    for (int i = 0; i <= machine->n_devices; i++)
        for (int kind = 0; kind < LANE_KINDS; kind++) {
            const struct lane *lane = machine->devices[i].lanes[kind];
            if (lane && lane->gap_seconds > 0)
                write_lane_line(out, lane);
        }
    for (int i = 0; i < machine->n_lanes; i++) /* in the machine's order, in which events of one time are simulated */
        if (machine->lanes[i]->nth)
            write_lane_line(out, machine->lanes[i]);
    for (int i = 0; i < machine->n_links; i++)
        write_link(out, machine, machine->links[i]);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* The name, or, where another one has it already, the name with a number: "grad~2", of at most `most` characters.
 * `taken` keeps for each name the last number that was given with it. */
static char *own_name(json_t *taken, const char *name, int most)
{
    char own[NAME_BYTES];
    json_t *last = json_object_get(taken, clean(own, name));
    while (json_object_get(taken, own)) {
        char end[16];
        json_integer_set(last, json_integer_value(last) + 1);
        int length = snprintf(end, sizeof end, "~%d", (int)json_integer_value(last));
        int length_kept = MIN((int)strlen(name), most - length); /* characters of the name */
        clean(own, name);
        snprintf(own + length_kept, sizeof own - (size_t)length_kept, "%s", end);
    }
    json_object_set_new_nocheck(taken, own, json_integer(1));
    return copy_string(own);
}

/* In a step file parameters and optimizer state persist without a word.  So a tensor of these classes that does not
 * persist is written as work, and one that does needs no `keep`. */
static void write_tensor_line(FILE *out, const struct tensor *tensor, const char *name)
{
    char device[NAME_BYTES];
    struct tensor written = *tensor;
    if (tensor->class == MEM_PARAMETERS || tensor->class == MEM_OPTIMIZER) {
        written.persistent = false;
        if (!tensor->persistent)
            written.class = MEM_WORK;
    }
    if (tensor->extra.exclusive) /* `keep` is the nearest word */
        written.persistent = true;
    fprintf(out, "tensor %s %s %zu %s", name, clean(device, tensor->device->id), tensor->bytes,
            memory_class_name[written.class]);
    write_options(out, LINE_TENSOR, &written);
    fputc('\n', out);
}

/* Writes the tensors that the list uses, and those that are kept from step to step without being touched, in the pool's
 * order, in which place() gives addresses.  Returns their names, by id. */
static char **write_tensors(FILE *out, const struct list *list)
{
    json_t *taken = json_object();
    char **names = allocate(list->pool->n, sizeof *names);
    struct uses *uses = new_uses(list->tasks, list->n, list->pool);
    for (size_t i = 0; i < list->pool->n; i++) {
        const struct tensor *tensor = list->pool->tensors[i];
        if (tensor->storage != tensor || !(tensor->persistent || uses->count[i]))
            continue;
        names[i] = own_name(taken, tensor->name, sizeof tensor->name - 1);
        write_tensor_line(out, tensor, names[i]);
    }
    free_uses(uses);
    json_decref(taken);
    return names;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

/* What `after=` says in the file.  A name there means the last task of that name above.  Where that would be the wrong
 * task, the right one gets a name of its own. */
struct afters {
    struct listed_wait *waits;
    size_t n;
    char **names; /* by task */
};

/* Notes that the task's name means this task, from here on. */
static void note_name(json_t *means, const struct task *task)
{
    char name[NAME_BYTES];
    json_object_set_new_nocheck(means, clean(name, task->name), json_integer((json_int_t)task->index));
}

static int task_meant(const json_t *means, const struct task *task)
{
    char name[NAME_BYTES];
    return (int)json_integer_value(json_object_get(means, clean(name, task->name)));
}

/* Returns an array by task: is it mistaken, that is, would an after= with its name find another task?  The caller frees
 * the array. */
static bool *mark_mistaken(const struct list *list, const struct afters *afters)
{
    bool *mistaken = allocate(list->n, sizeof *mistaken);
    json_t *means = json_object();
    const struct listed_wait *wait = afters->waits;
    const struct listed_wait *end = afters->waits + afters->n;
    for (size_t i = 0; i < list->n; i++) {
        for (; wait < end && wait->consumer == (int)i; wait++) {
            int meant = task_meant(means, list->tasks[wait->producer]);
            mistaken[wait->producer] |= !wait->previous && meant != wait->producer;
        }
        note_name(means, list->tasks[i]);
    }
    for (wait = afters->waits; wait < end; wait++) {
        int meant = task_meant(means, list->tasks[wait->producer]);
        mistaken[wait->producer] |= wait->previous && meant != wait->producer;
    }
    json_decref(means);
    return mistaken;
}

/* The tasks' names as the file is to have them: where `after=` would find too many of a name, the task gets its own. */
static struct afters collect_afters(const struct list *list)
{
    struct afters afters = {.names = allocate(list->n, sizeof *afters.names)};
    json_t *taken = json_object();
    afters.waits = collect_listed_waits(list, &afters.n);
    bool *mistaken = mark_mistaken(list, &afters);
    char name[NAME_BYTES];
    for (size_t i = 0; i < list->n; i++)
        json_object_set_new_nocheck(taken, clean(name, list->tasks[i]->name), json_integer(1));
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (mistaken[i])
            afters.names[i] = own_name(taken, task->name, sizeof task->name - 1);
        else
            afters.names[i] = copy_string(clean(name, task->name));
    }
    free(mistaken);
    json_decref(taken);
    return afters;
}

static void free_afters(struct afters *afters, size_t n_tasks)
{
    for (size_t i = 0; i < n_tasks; i++)
        free(afters->names[i]);
    free(afters->names);
    free(afters->waits);
}

/* " after=a,b'": *next is the first wait of the task at that position, if it has one. */
static void write_after(FILE *out, const struct afters *afters, size_t position, size_t *next)
{
    const char *before = " after=";
    for (; *next < afters->n && afters->waits[*next].consumer == (int)position; (*next)++) {
        const struct listed_wait *wait = &afters->waits[*next];
        fprintf(out, "%s%s%s", before, afters->names[wait->producer], wait->previous ? "'" : "");
        before = ",";
    }
}

static void write_operand(FILE *out, const char *before, char **names, const struct tensor *tensor)
{
    fprintf(out, "%s%s", before, names[tensor->storage->id]);
    if (tensor->bytes < tensor->storage->bytes)
        fprintf(out, "[%zu:%zu]", tensor->offset, tensor->offset + tensor->bytes);
}

/* The tensors that the task touches in one of these modes, from access `first` on. */
static void write_operands(FILE *out, const char *before, char **names, const struct task *task, int first,
                           enum access_mode mode)
{
    for (int i = first; i < task->n_accesses; i++)
        if (task->accesses[i].mode & mode) {
            write_operand(out, before, names, task->accesses[i].tensor);
            before = ",";
        }
}

/* All of the task's line but its reads= and writes=. */
static void write_work(FILE *out, char **names, const struct task *task, const char *name, double seconds)
{
    struct task written = *task;
    char number[NUMBER_TEXT];
    if (task->role >= ROLES_BY_HAND)
        written.role = ROLE_OTHER;
    if (task->role != ROLE_BROADCAST) /* only of broadcasts a pass asks for the message */
        written.extra.message = 0;
    written.extra.seconds = NAN;
    fprintf(out, "%s %s", is_copy(task) ? "copy" : "task", name);
    if (is_copy(task)) {
        write_operand(out, " ", names, copy_target(task));
        write_operand(out, " ", names, copy_source(task));
        write_lane(out, " lane=", task->lane);
        if (given_seconds(&written) != seconds)
            written.extra.seconds = seconds;
    } else {
        write_lane(out, " ", task->lane);
        fprintf(out, " %s", format_exactly(number, seconds));
    }
    write_options(out, LINE_TASK, &written);
    write_options(out, is_copy(task) ? LINE_COPY : LINE_WORK, &written);
}

/* A copy's target and source, its first two accesses, come before its options. */
static void write_accesses(FILE *out, char **names, const struct task *task)
{
    write_operands(out, " reads=", names, task, is_copy(task) ? 2 : 0, ACCESS_READ);
    if (!is_copy(task))
        write_operands(out, " writes=", names, task, 0, ACCESS_WRITE);
    fputc('\n', out);
}

void write_list(FILE *out, const struct list *list, const double *seconds)
{
    fprintf(out, "# A step file: `yard plan --list FILE` reads it.  Times are seconds.\n");
    write_machine(out, list->pool->machine);
    char **names = write_tensors(out, list);
    struct afters afters = collect_afters(list);
    size_t next = 0;
    for (size_t i = 0; i < list->n; i++) {
        write_work(out, names, list->tasks[i], afters.names[i], seconds[i]);
        write_after(out, &afters, i, &next);
        write_accesses(out, names, list->tasks[i]);
    }
    free_afters(&afters, list->n);
    for (size_t i = 0; i < list->pool->n; i++)
        free(names[i]);
    free(names);
}
