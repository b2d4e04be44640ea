/* recompute.c - activations are made again instead of kept.
 *
 * What a layer's forward leaves for its backward lies in memory for most of a step.  Instead, the layer keeps less, and
 * right before its backward so much of its forward is repeated, into new tensors, as backward reads:
 *
 *     full         of each layer only its input is kept.  The forward is computed almost twice, for a third more work;
 *                  what nothing reads again, as the layer's last product, is not repeated.    (Chen et al. 2016)
 *     selective    only what is large and cheap is dropped: the (T, T) matrices of attention and GELU's output.
 *                                                                                          (Korthikanti et al. 2022)
 *
 * The repeat's tasks are the forward's, of the same origin: on the same values they give the same bits.
 */
#include "pass.h"

#include <stdlib.h>

enum { NO_GROUP = -1, NOT_MADE = -2 };
struct group { /* the tasks of one layer, micro-batch and device, in list order */
    struct task **forward, **backward;
    size_t n_forward, cap_forward, n_backward, cap_backward;
};
struct activation { /* a root tensor, by id */
    int maker;      /* group whose forward writes it first */
    bool shared;    /* touched outside of that group */
    bool wanted;    /* must be made again */
    struct tensor *twin;
};
struct survey {
    struct step *step;
    bool full;
    int layers, micros; /* how many; of micro-batches one more, for tasks of none */
    struct group *groups;
    size_t n_groups;
    struct activation *activations;
    size_t n_tensors;           /* of before: the twins come behind them */
    size_t repeated, concerned; /* tasks; groups */
    double bytes;               /* no longer kept */
};

bool wants_recompute(const struct wishes *w) { return w->recompute != RECOMPUTE_OFF; }

/* ---- the list as it is ------------------------------------------------------------------------------------------- */

static int group_of(const struct survey *v, const struct task *t)
{
    if (t->layer < 0 || (t->role != ROLE_FORWARD && t->role != ROLE_BACKWARD))
        return NO_GROUP;
    return (t->lane->device->index * v->micros + t->micro + 1) * v->layers + t->layer;
}

static void note_access(struct survey *v, const struct task *t, const struct access *a)
{
    struct activation *x = &v->activations[a->tensor->root->id];
    int group = group_of(v, t);
    if (x->maker == NOT_MADE)
        x->maker = t->role == ROLE_FORWARD && !a->tensor->root->persistent ? group : NO_GROUP;
    x->shared |= x->maker != group;
}

static void note_task(struct survey *v, struct task *t)
{
    int group = group_of(v, t);
    for (int k = 0; k < t->n_access; k++)
        note_access(v, t, &t->access[k]);
    if (group == NO_GROUP)
        return;
    struct group *g = &v->groups[group];
    if (t->role == ROLE_FORWARD)
        *APPEND(g->forward, g->n_forward, g->cap_forward) = t;
    else
        *APPEND(g->backward, g->n_backward, g->cap_backward) = t;
}

static struct survey look_at(struct step *s, bool full)
{
    struct survey v = {.step = s, .full = full};
    for (size_t i = 0; i < s->n; i++) {
        v.layers = MAX(v.layers, s->task[i]->layer + 1);
        v.micros = MAX(v.micros, s->task[i]->micro + 2);
    }
    v.n_groups = (size_t)(s->pool->machine->n_devices + 1) * (size_t)(v.micros * v.layers);
    v.groups = allocate(v.n_groups, sizeof *v.groups);
    v.n_tensors = s->pool->n;
    v.activations = allocate(v.n_tensors, sizeof *v.activations);
    for (size_t i = 0; i < v.n_tensors; i++)
        v.activations[i].maker = NOT_MADE;
    for (size_t i = 0; i < s->n; i++)
        note_task(&v, s->task[i]);
    return v;
}

static void free_survey(struct survey *v)
{
    for (size_t i = 0; i < v->n_groups; i++)
        free(v->groups[i].forward), free(v->groups[i].backward);
    free(v->groups);
    free(v->activations);
}

/* ---- what is made again ------------------------------------------------------------------------------------------ */

/* The group's own tensors among what the task touches are wanted, as far as they are to be dropped; their bytes. */
static size_t want(struct survey *v, int group, const struct task *t)
{
    size_t bytes = 0;
    for (int k = 0; k < t->n_access; k++) {
        const struct tensor *x = t->access[k].tensor->root;
        struct activation *a = &v->activations[x->id];
        if (a->maker == group && !a->shared && (v->full || x->cheap) && !a->wanted) {
            a->wanted = true;
            bytes += x->bytes;
        }
    }
    return bytes;
}

static bool makes_wanted(const struct survey *v, const struct task *t)
{
    for (int k = 0; k < t->n_access; k++)
        if ((t->access[k].mode & ACCESS_WRITE) && v->activations[t->access[k].tensor->root->id].wanted)
            return true;
    return false;
}

/* From the backward's reads back through the forward: a task that makes what is wanted is repeated, and wants what it
 * reads in turn.  Returns how many; the others leave the group's list. */
static size_t choose_repeats(struct survey *v, int group)
{
    struct group *g = &v->groups[group];
    for (size_t i = 0; i < g->n_backward; i++)
        v->bytes += (double)want(v, group, g->backward[i]);
    for (size_t i = g->n_forward; i-- > 0;) {
        if (makes_wanted(v, g->forward[i]))
            want(v, group, g->forward[i]);
        else
            g->forward[i] = NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < g->n_forward; i++)
        if (g->forward[i])
            g->forward[n++] = g->forward[i];
    return g->n_forward = n;
}

/* ---- making it again --------------------------------------------------------------------------------------------- */

/* All that a repeated task writes is new, its work space too. */
static void make_twins(struct survey *v, const struct task *t)
{
    for (int k = 0; k < t->n_access; k++) {
        const struct tensor *x = t->access[k].tensor->root;
        struct activation *a = &v->activations[x->id];
        if ((t->access[k].mode & ACCESS_WRITE) && !a->twin)
            a->twin = new_twin(v->step->pool, x->device, x);
    }
}

static void take_twins(struct survey *v, struct edit *e, struct task *t)
{
    for (int k = 0; k < t->n_access; k++) {
        const struct tensor *x = t->access[k].tensor->root;
        struct tensor *twin = (size_t)x->id < v->n_tensors ? v->activations[x->id].twin : NULL;
        if (twin)
            repoint(e, t, x, twin);
    }
}

static void repeat_group(struct survey *v, struct edit *e, int group)
{
    struct group *g = &v->groups[group];
    if (!g->n_backward || !choose_repeats(v, group))
        return;
    insert_before(e, g->backward[0]);
    for (size_t i = 0; i < g->n_forward; i++) {
        struct task *again = repeat(e, g->forward[i]);
        make_twins(v, g->forward[i]);
        take_twins(v, e, again);
    }
    for (size_t i = 0; i < g->n_backward; i++)
        take_twins(v, e, g->backward[i]);
    v->repeated += g->n_forward;
    v->concerned++;
}

bool run_recompute(struct step *s, const struct costs *c, const struct wishes *w, struct pass_report *r)
{
    if (w->recompute == RECOMPUTE_AUTO)
        return run_recompute_auto(s, c, w, r);
    char bytes[32];
    struct survey v = look_at(s, w->recompute == RECOMPUTE_FULL);
    struct edit *e = open_edit(s);
    for (int group = 0; group < (int)v.n_groups; group++)
        repeat_group(&v, e, group);
    if (v.repeated) {
        commit(e);
        r->reason =
            format_string("%s: %zu tasks repeated for %zu backward passes of a layer; %s of activations not kept",
                          v.full ? "full" : "selective", v.repeated, v.concerned, format_bytes(bytes, v.bytes));
    } else {
        undo(e);
        r->reason = copy_string("the list keeps no activation of a layer for its backward that could be made again");
    }
    free_survey(&v);
    return v.repeated > 0;
}
