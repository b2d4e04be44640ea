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
 * The repeat's tasks are the forward's, of the same origin: on the same values they give the same bits.  A layer whose
 * values have changed by then, in place or by an update, keeps all.
 */
#include "pass.h"

#include <stdlib.h>

enum { NO_GROUP = -1, NOT_MADE = -2 };
struct group { /* the tasks of one layer, micro-batch and device, in list order */
    struct task **forward, **backward;
    size_t n_forward, cap_forward, n_backward, cap_backward;
};
struct activation {                          /* a root tensor, by id */
    int maker;                               /* group whose forward writes it first */
    bool shared;                             /* touched outside of that group */
    bool wanted;                             /* must be made again */
    size_t *written, n_written, cap_written; /* positions of the tasks that write to it */
    struct tensor *twin;
};
struct key { /* of a group */
    int device, micro, layer;
};
struct survey {
    struct step *step;
    bool full;
    struct key *keys; /* of each group, sorted */
    struct group *groups;
    size_t n_groups;
    struct activation *activations;
    size_t n_tensors;           /* of before: the twins come behind them */
    size_t repeated, concerned; /* tasks; groups */
    double bytes;               /* no longer kept */
};

bool wants_recompute(const struct wishes *w) { return w->recompute != RECOMPUTE_OFF; }

/* ---- the list as it is ------------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->device != y->device)
        return COMPARE(x->device, y->device);
    return x->micro != y->micro ? COMPARE(x->micro, y->micro) : COMPARE(x->layer, y->layer);
}

static bool is_grouped(const struct task *t)
{
    return t->layer >= 0 && (t->role == ROLE_FORWARD || t->role == ROLE_BACKWARD);
}

static struct key key_of(const struct task *t) { return (struct key){t->lane->device->index, t->micro, t->layer}; }

static void find_groups(struct survey *v)
{
    struct step *s = v->step;
    size_t n = 0;
    v->keys = allocate(s->n + 1, sizeof *v->keys);
    for (size_t i = 0; i < s->n; i++)
        if (is_grouped(s->task[i]))
            v->keys[n++] = key_of(s->task[i]);
    qsort(v->keys, n, sizeof *v->keys, by_key);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_key(&v->keys[i], &v->keys[i - 1]) != 0)
            v->keys[v->n_groups++] = v->keys[i];
    v->groups = allocate(v->n_groups, sizeof *v->groups);
}

static int group_of(const struct survey *v, const struct task *t)
{
    if (!is_grouped(t))
        return NO_GROUP;
    const struct key key = key_of(t), *found = bsearch(&key, v->keys, v->n_groups, sizeof key, by_key);
    return (int)(found - v->keys);
}

static void note_access(struct survey *v, const struct task *t, const struct access *a)
{
    struct activation *x = &v->activations[a->tensor->root->id];
    int group = group_of(v, t);
    if (x->maker == NOT_MADE)
        x->maker = t->role == ROLE_FORWARD && !a->tensor->root->persistent ? group : NO_GROUP;
    x->shared |= x->maker != group;
    if (a->mode & ACCESS_WRITE)
        *APPEND(x->written, x->n_written, x->cap_written) = t->index;
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
    find_groups(&v);
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
    for (size_t i = 0; i < v->n_tensors; i++)
        free(v->activations[i].written);
    free(v->groups), free(v->keys);
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

static bool is_written_between(const struct activation *x, size_t begin, size_t end)
{
    bool yes = false;
    for (size_t i = 0; i < x->n_written; i++)
        yes |= x->written[i] >= begin && x->written[i] < end;
    return yes;
}

/* Right before `where`, does the task still find what it read?  What is wanted is made again for it. */
static bool can_repeat(const struct survey *v, const struct task *t, const struct task *where)
{
    bool can = t->index < where->index;
    for (int k = 0; k < t->n_access; k++) {
        const struct tensor *x = t->access[k].tensor->root;
        const struct activation *a = &v->activations[x->id];
        if (t->access[k].mode & ACCESS_READ)
            can &= a->wanted || !is_written_between(a, t->index, where->index);
        if (t->access[k].mode & ACCESS_WRITE)
            can &= !x->persistent;
    }
    return can;
}

/* From the backward's reads back through the forward: a task that makes what is wanted is repeated, and wants what it
 * reads in turn; the others leave the group's list.  False: nothing, or nothing that could be, is made again. */
static bool choose_repeats(struct survey *v, struct group *g, int group)
{
    size_t bytes = 0, n = 0;
    bool can = g->n_backward > 0;
    for (size_t i = 0; i < g->n_backward; i++)
        bytes += want(v, group, g->backward[i]);
    for (size_t i = g->n_forward; can && i-- > 0;)
        if (makes_wanted(v, g->forward[i]))
            want(v, group, g->forward[i]);
        else
            g->forward[i] = NULL;
    for (size_t i = 0; i < g->n_forward && can; i++)
        if (g->forward[i]) {
            can = can_repeat(v, g->forward[i], g->backward[0]);
            g->forward[n++] = g->forward[i];
        }
    g->n_forward = can ? n : 0;
    v->bytes += can ? (double)bytes : 0;
    return g->n_forward > 0;
}

/* ---- making it again --------------------------------------------------------------------------------------------- */

/* All that a repeated task writes is new, its work space too; it, and backward, read of that what is wanted. */
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
        const struct activation *a = (size_t)x->id < v->n_tensors ? &v->activations[x->id] : NULL;
        if (a && a->twin && (a->wanted || (t->role == ROLE_FORWARD && (t->access[k].mode & ACCESS_WRITE))))
            repoint(e, t, x, a->twin);
    }
}

static void repeat_group(struct survey *v, struct edit *e, int group)
{
    struct group *g = &v->groups[group];
    if (!choose_repeats(v, g, group))
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
