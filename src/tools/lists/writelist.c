/* writelist.c - a list as a step file: what readlist.c reads, such that the same times are simulated from it.
 *
 * Numbers are written with as few digits as bring the same number back.
 */
#include "lists.h"
#include "techniques/pass/uses.h"
#include "tools/predict/predict.h"
#include "words.h"

#include <ctype.h>

/* What would end a name becomes '_'. */
static char *clean(char name[64], const char *text)
{
    snprintf(name, 64, "%s", text);
    for (char *c = name; *c; c++)
        if (isspace((unsigned char)*c) || strchr("[],=#", *c))
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
    write_options(out, A_LANE, l);
    fputc('\n', out);
}

static void write_link(FILE *out, const struct machine *m, const struct link *l)
{
    static const char *const ways[DIRECTIONS] = {"up", "down"};
    const char *before = "link ", *way = NULL;
    for (int direction = LINK_UP; direction < DIRECTIONS; direction++)
        for (int d = 0; d < m->n_devices; d++)
            if (m->device[d].link[direction] == l) {
                fprintf(out, "%s%s", before, NAME(m->device[d].id));
                before = ",";
                way = ways[direction];
            }
    fprintf(out, way ? " %s" : "disk", way);
    fprintf(out, " %s", format_exactly((char[32]){0}, l->rate));
    if (l->latency > 0)
        fprintf(out, " %s", format_exactly((char[32]){0}, l->latency));
    write_options(out, A_LINK, l);
    fputc('\n', out);
}

static void write_machine(FILE *out, const struct machine *m)
{
    for (int i = 0; i <= m->n_devices; i++) {
        const struct device *d = &m->device[i];
        struct device line = *d;
        line.max_allocation = slab_limit(d) < d->budget - guard_bytes(d) ? slab_limit(d) : 0;
        line.shares |= !d->by_hand;
        fprintf(out, "device %s", NAME(d->id));
        write_options(out, A_DEVICE, &line);
        if (d->is_host)
            write_options(out, THE_HOST, m);
        fputc('\n', out);
    }
    for (int d = 0; d <= m->n_devices; d++)
        for (int kind = 0; kind < LANE_KINDS; kind++)
            if (m->device[d].lane[kind] && m->device[d].lane[kind]->gap > 0)
                write_lane_line(out, m->device[d].lane[kind]);
    for (int i = 0; i < m->n_lanes; i++) /* in their order: what happens at one time is simulated in it */
        if (m->lane[i]->nth)
            write_lane_line(out, m->lane[i]);
    for (size_t i = 0; i < m->n_links; i++)
        write_link(out, m, m->link[i]);
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

/* The tensor's name, or that with a number behind it where others have it already: the last one is kept in `taken`. */
static char *own_name(json_t *taken, const char *name)
{
    const int most = sizeof((struct tensor *)0)->name - 1;
    char own[64];
    json_t *last = json_object_get(taken, clean(own, name));
    while (json_object_get(taken, own)) {
        char end[16];
        json_integer_set(last, json_integer_value(last) + 1);
        int length = snprintf(end, sizeof end, "~%d", (int)json_integer_value(last));
        snprintf(clean(own, name) + MIN((int)strlen(name), most - length), sizeof end, "%s", end);
    }
    json_object_set_new_nocheck(taken, own, json_integer(1));
    return copy_string(own);
}

/* All that the list uses, and what is kept from step to step without being touched, in the pool's order, in which
 * place() gives addresses.  A file's parameters stay for good: others of that class are written as work. */
static char **write_tensors(FILE *out, const struct step *s)
{
    json_t *taken = json_object();
    char **names = allocate(s->pool->n, sizeof *names);
    struct uses *uses = find_uses(s->task, s->n, s->pool);
    for (size_t i = 0; i < s->pool->n; i++) {
        struct tensor t = *s->pool->tensors[i];
        if (t.storage->id != t.id || !(t.persistent || uses->count[i]))
            continue;
        names[i] = own_name(taken, t.name);
        bool state = t.class == MEM_PARAMETERS || t.class == MEM_OPTIMIZER, always = state && t.persistent;
        fprintf(out, "tensor %s %s %zu %s", names[i], NAME(t.device->id), t.bytes,
                memory_class_name[state && !always ? MEM_WORK : t.class]);
        t.persistent = (t.persistent && !always) || t.exclusive; /* the nearest word to exclusive */
        write_options(out, A_TENSOR, &t);
        fputc('\n', out);
    }
    free_uses(uses);
    json_decref(taken);
    return names;
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

static void write_operand(FILE *out, const char *before, char **names, const struct tensor *x)
{
    fprintf(out, "%s%s", before, names[x->storage->id]);
    if (x->bytes < x->storage->bytes)
        fprintf(out, "[%zu:%zu]", x->offset, x->offset + x->bytes);
}

/* What the task touches in one of these modes, from access `first` on. */
static void write_operands(FILE *out, const char *before, char **names, const struct task *t, int first,
                           enum access_mode mode)
{
    for (int i = first; i < t->n_access; i++)
        if (t->access[i].mode & mode) {
            write_operand(out, before, names, t->access[i].tensor);
            before = ",";
        }
}

static void write_task(FILE *out, char **names, const struct task *t, double seconds)
{
    struct task line = *t;
    line.role = t->role < ROLES_BY_HAND ? t->role : ROLE_OTHER;
    if (t->role != ROLE_BROADCAST) /* no pass asks for the messages of others */
        line.message = 0;
    line.seconds = -1;
    fprintf(out, "%s %s", t->copy ? "copy" : "task", NAME(t->name));
    if (t->copy) {
        write_operand(out, " ", names, t->access[0].tensor);
        write_operand(out, " ", names, t->access[1].tensor);
        write_lane(out, " lane=", t->lane);
        line.seconds = given_seconds(&line) == seconds ? -1 : seconds;
    } else {
        write_lane(out, " ", t->lane);
        fprintf(out, " %s", format_exactly((char[32]){0}, seconds));
    }
    write_options(out, A_TASK, &line);
    write_options(out, t->copy ? A_COPY : WORK, &line);
    write_operands(out, " reads=", names, t, t->copy ? 2 : 0, ACCESS_READ);
    write_operands(out, " writes=", names, t, t->copy ? t->n_access : 0, ACCESS_WRITE);
    fputc('\n', out);
}

void write_list(FILE *out, const struct step *s, const double *seconds)
{
    fprintf(out, "# A step file: `yard plan --list FILE` reads it.  Times are seconds.\n");
    write_machine(out, s->pool->machine);
    char **names = write_tensors(out, s);
    for (size_t i = 0; i < s->n; i++)
        write_task(out, names, s->task[i], seconds[i]);
    for (size_t i = 0; i < s->pool->n; i++)
        free(names[i]);
    free(names);
}
