/* writelist.c - a list as a step file: what readlist.c reads, such that the same times are simulated from it.
 *
 * Numbers are written with as few digits as bring the same number back.
 */
#include "step.h"

#include <ctype.h>

enum { MOST_OF_NAME = sizeof((struct tensor *)0)->name - 1 };
struct writing {
    FILE *out;
    const struct step *step;
    char **name; /* of each tensor of the pool that the list uses, else NULL */
};

#define NUMBER(x) format_exactly((char[32]){0}, (x))

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

static void print_lane(FILE *out, const char *before, const struct lane *l)
{
    fprintf(out, "%s%s.%s", before, NAME(l->device->id), lane_kind_name[l->kind]);
    if (l->nth)
        fprintf(out, "%d", l->nth);
}

/* ---- the machine ----------------------------------------------------------------------------------------------- */

static void print_device(FILE *out, const struct device *d, double issue)
{
    size_t slab = slab_limit(d);
    fprintf(out, "device %s memory=%zu", NAME(d->id), d->budget);
    if (d->alignment > 1)
        fprintf(out, " align=%zu", d->alignment);
    if (slab < d->budget - guard_bytes(d))
        fprintf(out, " slab=%zu", slab);
    if (issue > 0)
        fprintf(out, " issue=%s", NUMBER(issue));
    if (d->shares || !d->by_hand)
        fputs(" share", out);
    fputc('\n', out);
}

/* Only what the standard lanes are not. */
static void print_lane_line(FILE *out, const struct lane *l)
{
    if (!l->nth && l->gap == 0)
        return;
    print_lane(out, "lane ", l);
    if (l->gap > 0)
        fprintf(out, " gap=%s", NUMBER(l->gap));
    fputc('\n', out);
}

static void print_speed(FILE *out, const struct link *l)
{
    fprintf(out, " %s", NUMBER(l->rate));
    if (l->latency > 0)
        fprintf(out, " %s", NUMBER(l->latency));
    if (l->queues)
        fprintf(out, " queues=%d", l->queues);
    if (l->queue > 0)
        fprintf(out, " queue=%s", NUMBER(l->queue));
    fputc('\n', out);
}

static void print_link(FILE *out, const struct machine *m, const struct link *l)
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
    if (way)
        fprintf(out, " %s", way);
    else
        fprintf(out, "disk");
    print_speed(out, l);
}

static void print_machine(FILE *out, const struct machine *m)
{
    for (int d = 0; d <= m->n_devices; d++)
        print_device(out, &m->device[d], d == m->n_devices ? m->issue : 0);
    for (int d = 0; d <= m->n_devices; d++)
        for (int kind = 0; kind < LANE_KINDS; kind++)
            if (m->device[d].lane[kind])
                print_lane_line(out, m->device[d].lane[kind]);
    for (int i = 0; i < m->n_lanes; i++) /* in their order: what happens at one time is simulated in it */
        if (m->lane[i]->nth)
            print_lane_line(out, m->lane[i]);
    for (size_t i = 0; i < m->n_links; i++)
        print_link(out, m, m->link[i]);
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

/* The tensor's name, or that with a number behind it where others have it already: the last one is kept in `taken`. */
static char *own_name(json_t *taken, const char *name)
{
    char own[64];
    json_t *last = json_object_get(taken, clean(own, name));
    while (json_object_get(taken, own)) {
        char end[16];
        json_integer_set(last, json_integer_value(last) + 1);
        int length = snprintf(end, sizeof end, "~%d", (int)json_integer_value(last));
        snprintf(clean(own, name) + MIN((int)strlen(name), MOST_OF_NAME - length), sizeof end, "%s", end);
    }
    json_object_set_new_nocheck(taken, own, json_integer(1));
    return copy_string(own);
}

/* In the pool's order, in which place() gives addresses; what is kept from step to step without being touched, too. */
static void print_tensors(struct writing *w)
{
    const struct step *s = w->step;
    json_t *taken = json_object();
    bool *used = allocate(s->pool->n, sizeof *used);
    for (size_t i = 0; i < s->n; i++)
        for (int a = 0; a < s->task[i]->n_access; a++)
            used[s->task[i]->access[a].tensor->storage->id] = true;
    for (size_t i = 0; i < s->pool->n; i++) {
        const struct tensor *t = s->pool->tensors[i];
        if (!used[i] && !(t->persistent && t->storage == t))
            continue;
        w->name[i] = own_name(taken, t->name);
        bool state = t->class == MEM_PARAMETERS || t->class == MEM_OPTIMIZER, always = state && t->persistent;
        fprintf(w->out, "tensor %s %s %zu %s%s%s\n", w->name[i], NAME(t->device->id), t->bytes,
                memory_class_name[state && !always ? MEM_WORK : t->class], /* a file's parameters stay for good */
                (t->persistent && !always) || t->exclusive ? " keep" : "", /* (the nearest word to apart) */
                t->choice ? " choice" : "");
    }
    free(used);
    json_decref(taken);
}

static void print_operand(const struct writing *w, const char *before, const struct tensor *t)
{
    fprintf(w->out, "%s%s", before, w->name[t->storage->id]);
    if (t->bytes < t->storage->bytes)
        fprintf(w->out, "[%zu:%zu]", t->offset, t->offset + t->bytes);
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

static void print_stamp(FILE *out, const struct task *t)
{
    if (t->layer >= 0)
        fprintf(out, " layer=%d", t->layer);
    if (t->micro >= 0)
        fprintf(out, " micro=%d", t->micro);
    if (t->role != ROLE_OTHER && t->role < ROLES_BY_HAND)
        fprintf(out, " role=%s", role_name[t->role]);
    if (t->when.every > 1)
        fprintf(out, " every=%u", t->when.every);
    if (t->when.rest)
        fprintf(out, " rest=%u", t->when.rest);
}

static void print_operands(const struct writing *w, const struct task *t, int from, const char *key,
                           enum access_mode mode)
{
    for (int i = from; i < t->n_access; i++)
        if (t->access[i].mode & mode)
            print_operand(w, key, t->access[i].tensor), key = ",";
}

static void print_copy(const struct writing *w, const struct task *t, double seconds)
{
    struct task by_links = *t;
    by_links.seconds = -1;
    fprintf(w->out, "copy %s", NAME(t->name));
    print_operand(w, " ", t->access[0].tensor);
    print_operand(w, " ", t->access[1].tensor);
    print_lane(w->out, " lane=", t->lane);
    if (given_seconds(&by_links) != seconds)
        fprintf(w->out, " time=%s", NUMBER(seconds));
    print_stamp(w->out, t);
    print_operands(w, t, 2, " reads=", ACCESS_READ);
}

static void print_work(const struct writing *w, const struct task *t, double seconds)
{
    fprintf(w->out, "task %s", NAME(t->name));
    print_lane(w->out, " ", t->lane);
    fprintf(w->out, " %s", NUMBER(seconds));
    print_stamp(w->out, t);
    if (t->host_seconds >= 0)
        fprintf(w->out, " cpu=%s", NUMBER(t->host_seconds));
    print_operands(w, t, 0, " reads=", ACCESS_READ);
    print_operands(w, t, 0, " writes=", ACCESS_WRITE);
}

void write_list(FILE *out, const struct step *s, const double *seconds)
{
    struct writing w = {out, s, allocate(s->pool->n, sizeof *w.name)};
    fprintf(out, "# A step file: `yard plan --list FILE` reads it.  Times are seconds.\n");
    print_machine(out, s->pool->machine);
    print_tensors(&w);
    for (size_t i = 0; i < s->n; i++) {
        if (s->task[i]->copy)
            print_copy(&w, s->task[i], seconds[i]);
        else
            print_work(&w, s->task[i], seconds[i]);
        fputc('\n', out);
    }
    for (size_t i = 0; i < s->pool->n; i++)
        free(w.name[i]);
    free(w.name);
}
