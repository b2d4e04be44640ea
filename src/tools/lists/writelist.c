/* writelist.c - writes a list as a step file, from which readlist.c reads a list that is simulated to the same times.
 *
 * Numbers are written with as few digits as bring the same number back.
 */
#include "line.h"
#include "lists.h"
#include "techniques/pass/uses.h"
#include "tools/predict/costs.h"

#include <ctype.h>

/* Characters that no name may have become '_'. */
static char *clean(char name[64], const char *text)
{
    snprintf(name, 64, "%s", text);
    for (char *c = name; *c; c++)
        if (isspace((unsigned char)*c) || strchr("[],=#'", *c))
            *c = '_';
    return name;
}
#define NAME(text) clean((char[64]){0}, (text))

static void write_lane(FILE *out, const char *before, const struct lane *l)
{
    fprintf(out, "%s%s.%s", before, NAME(l->device->id), lane_kind_name[l->kind]);
    if (l->nth)
        fprintf(out, "%d", l->nth);
}

static void write_lane_line(FILE *out, const struct lane *l)
{
    write_lane(out, "lane ", l);
    write_options(out, LINE_LANE, l);
    fputc('\n', out);
}

/* Writes a link with all devices that have it in one direction: "link d0,d1 up ..."; or the disk's. */
static void write_link(FILE *out, const struct machine *m, const struct link *l)
{
    static const char *const ways[DIRECTIONS] = {"up", "down"};
    const char *before = "link ", *way = NULL;
    for (int direction = LINK_UP; direction < DIRECTIONS; direction++)
        for (int d = 0; d < m->n_devices; d++)
            if (m->device[d].described.link[direction] == l) {
                fprintf(out, "%s%s", before, NAME(m->device[d].id));
                before = ",";
                way = ways[direction];
            }
    char number[32];
    if (way)
        fprintf(out, " %s", way);
    else
        fprintf(out, "disk");
    fprintf(out, " %s", format_exactly(number, l->rate));
    if (l->latency > 0)
        fprintf(out, " %s", format_exactly(number, l->latency));
    write_options(out, LINE_LINK, l);
    fputc('\n', out);
}

static void write_device(FILE *out, const struct machine *m, const struct device *d)
{
    struct device line = *d;
    line.max_allocation = 0; /* no slab= */
    if (slab_limit(d) < d->budget - guard_bytes(d))
        line.max_allocation = slab_limit(d);
    if (!d->described.by_hand)
        line.described.shares_bytes = true;
    fprintf(out, "device %s", NAME(d->id));
    write_options(out, LINE_DEVICE, &line);
    if (d->is_host)
        write_options(out, LINE_HOST, m);
    fputc('\n', out);
}

static void write_machine(FILE *out, const struct machine *m)
{
    for (int i = 0; i <= m->n_devices; i++)
        write_device(out, m, &m->device[i]);
    for (int d = 0; d <= m->n_devices; d++)
        for (int kind = 0; kind < LANE_KINDS; kind++) {
            const struct lane *l = m->device[d].lane[kind];
            if (l && l->gap_seconds > 0)
                write_lane_line(out, l);
        }
    for (int i = 0; i < m->n_lanes; i++) /* in the machine's order, in which events of one time are simulated */
        if (m->lane[i]->nth)
            write_lane_line(out, m->lane[i]);
    for (size_t i = 0; i < m->n_links; i++)
        write_link(out, m, m->link[i]);
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

/* The name, or, where another one has it already, the name with a number: "grad~2", of at most `most` characters.
 * `taken` keeps for each name the last number that was given with it. */
static char *own_name(json_t *taken, const char *name, int most)
{
    char own[64];
    json_t *last = json_object_get(taken, clean(own, name));
    while (json_object_get(taken, own)) {
        char end[16];
        json_integer_set(last, json_integer_value(last) + 1);
        int length = snprintf(end, sizeof end, "~%d", (int)json_integer_value(last));
        int kept = MIN((int)strlen(name), most - length); /* characters of the name */
        clean(own, name);
        snprintf(own + kept, sizeof end, "%s", end);
    }
    json_object_set_new_nocheck(taken, own, json_integer(1));
    return copy_string(own);
}

/* In a step file parameters and optimizer state persist without a word.  So a tensor of these classes that does not
 * persist is written as work, and one that does needs no `keep`. */
static void write_tensor_line(FILE *out, const struct tensor *t, const char *name)
{
    struct tensor line = *t;
    if (t->class == MEM_PARAMETERS || t->class == MEM_OPTIMIZER) {
        line.persistent = false;
        if (!t->persistent)
            line.class = MEM_WORK;
    }
    if (t->exclusive) /* `keep` is the nearest word */
        line.persistent = true;
    fprintf(out, "tensor %s %s %zu %s", name, NAME(t->device->id), t->bytes, memory_class_name[line.class]);
    write_options(out, LINE_TENSOR, &line);
    fputc('\n', out);
}

/* Writes the tensors that the list uses, and those that are kept from step to step without being touched, in the pool's
 * order, in which place() gives addresses.  Returns their names, by id. */
static char **write_tensors(FILE *out, const struct step *s)
{
    json_t *taken = json_object();
    char **names = allocate(s->pool->n, sizeof *names);
    struct uses *uses = find_uses(s->task, s->n, s->pool);
    for (size_t i = 0; i < s->pool->n; i++) {
        const struct tensor *t = s->pool->tensors[i];
        if (t->storage != t || !(t->persistent || uses->count[i]))
            continue;
        names[i] = own_name(taken, t->name, sizeof t->name - 1);
        write_tensor_line(out, t, names[i]);
    }
    free_uses(uses);
    json_decref(taken);
    return names;
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

/* What `after=` says in the file.  A name there means the last task of that name above.  Where that would be the wrong
 * task, the right one gets a name of its own. */
struct afters {
    struct after_pair *pairs;
    size_t n;
    char **name; /* by task */
};

/* Notes that the name means the task at that position, from here on. */
static void note_name(json_t *means, const char *name, size_t position)
{
    json_object_set_new_nocheck(means, NAME(name), json_integer((json_int_t)position));
}

/* By task: would its name in an after= of the list mean another task? */
static bool *find_mistaken(const struct step *s, const struct afters *a)
{
    bool *mistaken = allocate(s->n, sizeof *mistaken);
    json_t *means = json_object();
    const struct after_pair *p = a->pairs, *end = a->pairs + a->n;
    for (size_t i = 0; i < s->n; i++) {
        for (; p < end && p->second == (int)i; p++) {
            const json_t *found = json_object_get(means, NAME(s->task[p->first]->name));
            mistaken[p->first] |= !p->previous && json_integer_value(found) != p->first;
        }
        note_name(means, s->task[i]->name, i);
    }
    for (p = a->pairs; p < end; p++) {
        const json_t *found = json_object_get(means, NAME(s->task[p->first]->name));
        mistaken[p->first] |= p->previous && json_integer_value(found) != p->first;
    }
    json_decref(means);
    return mistaken;
}

/* The tasks' names as the file is to have them: where `after=` would find too many of a name, the task gets its own. */
static struct afters find_afters(const struct step *s)
{
    struct afters a = {.name = allocate(s->n, sizeof *a.name)};
    json_t *taken = json_object();
    a.pairs = find_after_pairs(s, &a.n);
    bool *mistaken = find_mistaken(s, &a);
    for (size_t i = 0; i < s->n; i++)
        json_object_set_new_nocheck(taken, NAME(s->task[i]->name), json_integer(1));
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        a.name[i] = mistaken[i] ? own_name(taken, t->name, sizeof t->name - 1) : copy_string(NAME(t->name));
    }
    free(mistaken);
    json_decref(taken);
    return a;
}

static void free_afters(struct afters *a, size_t n_tasks)
{
    for (size_t i = 0; i < n_tasks; i++)
        free(a->name[i]);
    free(a->name);
    free(a->pairs);
}

/* " after=a,b'": *next is the first pair of the task at that position, if it has one. */
static void write_after(FILE *out, const struct afters *a, size_t position, size_t *next)
{
    const char *before = " after=";
    for (; *next < a->n && a->pairs[*next].second == (int)position; (*next)++) {
        const struct after_pair *p = &a->pairs[*next];
        fprintf(out, "%s%s%s", before, a->name[p->first], p->previous ? "'" : "");
        before = ",";
    }
}

static void write_operand(FILE *out, const char *before, char **names, const struct tensor *x)
{
    fprintf(out, "%s%s", before, names[x->storage->id]);
    if (x->bytes < x->storage->bytes)
        fprintf(out, "[%zu:%zu]", x->offset, x->offset + x->bytes);
}

/* The tensors that the task touches in one of these modes, from access `first` on. */
static void write_operands(FILE *out, const char *before, char **names, const struct task *t, int first,
                           enum access_mode mode)
{
    for (int i = first; i < t->n_access; i++)
        if (t->access[i].mode & mode) {
            write_operand(out, before, names, t->access[i].tensor);
            before = ",";
        }
}

/* All of the task's line but its reads= and writes=. */
static void write_work(FILE *out, char **names, const struct task *t, const char *name, double seconds)
{
    struct task line = *t;
    char number[32];
    if (t->role >= ROLES_BY_HAND)
        line.role = ROLE_OTHER;
    if (t->role != ROLE_BROADCAST) /* only of broadcasts a pass asks for the message */
        line.message = 0;
    line.seconds = -1;
    fprintf(out, "%s %s", is_copy(t) ? "copy" : "task", name);
    if (is_copy(t)) {
        write_operand(out, " ", names, copy_target(t));
        write_operand(out, " ", names, copy_source(t));
        write_lane(out, " lane=", t->lane);
        if (given_seconds(&line) != seconds)
            line.seconds = seconds;
    } else {
        write_lane(out, " ", t->lane);
        fprintf(out, " %s", format_exactly(number, seconds));
    }
    write_options(out, LINE_TASK, &line);
    write_options(out, is_copy(t) ? LINE_COPY : LINE_WORK, &line);
}

static void write_accesses(FILE *out, char **names, const struct task *t)
{
    write_operands(out, " reads=", names, t, is_copy(t) ? 2 : 0, ACCESS_READ);
    write_operands(out, " writes=", names, t, is_copy(t) ? t->n_access : 0, ACCESS_WRITE);
    fputc('\n', out);
}

void write_list(FILE *out, const struct step *s, const double *seconds)
{
    fprintf(out, "# A step file: `yard plan --list FILE` reads it.  Times are seconds.\n");
    write_machine(out, s->pool->machine);
    char **names = write_tensors(out, s);
    struct afters afters = find_afters(s);
    size_t next = 0;
    for (size_t i = 0; i < s->n; i++) {
        write_work(out, names, s->task[i], afters.name[i], seconds[i]);
        write_after(out, &afters, i, &next);
        write_accesses(out, names, s->task[i]);
    }
    free_afters(&afters, s->n);
    for (size_t i = 0; i < s->pool->n; i++)
        free(names[i]);
    free(names);
}
