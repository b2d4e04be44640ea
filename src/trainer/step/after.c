/* after.c - which tasks wait for which because the list says so, though no tensor does: `after=` of step files.
 *
 *     the list says        b after a            of origins, so that passes need not know of it
 *     the list has         a  b.0  c  b.1       b was cut into two pieces
 *     find_after_pairs()        a -> b.0, a -> b.1
 *
 * Pieces, repeats and stand-ins have the origin of their original.  So if the original waits, all of them wait, and if
 * another task waits for the original, it waits for all of them.  Within the step a task waits only for those before it
 * in the list; across the step's end it waits for all.
 */
#include "step.h"

static bool comes_before(const struct after *a, const struct after *b)
{
    if (a->origin != b->origin)
        return a->origin < b->origin;
    if (a->previous != b->previous)
        return b->previous;
    return a->waits_for < b->waits_for;
}

/* The place of x in s->after, or, if it is not there, the place where it belongs. */
static size_t find_after(const struct step *s, const struct after *x)
{
    size_t i;
    FIND_FIRST(i, s->n_after, comes_before(&s->after[i], x));
    return i;
}

void add_after(struct step *s, const struct task *t, const struct task *first, enum step_waited which)
{
    struct after new = {.origin = t->origin, .waits_for = first->origin, .previous = which == STEP_BEFORE};
    size_t i = find_after(s, &new);
    (void)APPEND(s->after, s->n_after, s->cap_after);
    memmove(&s->after[i + 1], &s->after[i], (s->n_after - 1 - i) * sizeof *s->after);
    s->after[i] = new;
}

bool is_after(const struct step *s, const struct task *t, const struct task *first, enum step_waited which)
{
    struct after x = {.origin = t->origin, .waits_for = first->origin, .previous = which == STEP_BEFORE};
    size_t i = find_after(s, &x);
    return i < s->n_after && !comes_before(&x, &s->after[i]);
}

/* The tasks of each origin, the last of the list first. */
struct origins {
    int *last;   /* by origin: the position of its last task, or NONE */
    int *before; /* by position: that of the task of the same origin before it, or NONE */
};

static struct origins find_origins(const struct step *s)
{
    struct origins o = {.last = allocate(s->last_origin + 1, sizeof *o.last),
                        .before = allocate(s->n, sizeof *o.before)};
    fill_none(o.last, s->last_origin + 1);
    for (size_t i = 0; i < s->n; i++) {
        int *last = &o.last[s->task[i]->origin];
        o.before[i] = *last;
        *last = (int)i;
    }
    return o;
}

COMPARISON(by_second, struct after_pair,
           BY(a->second, b->second, BY(a->previous, b->previous, COMPARE(a->first, b->first))))

struct after_pair *find_after_pairs(const struct step *s, size_t *n)
{
    struct origins origins = find_origins(s);
    struct after_pair *pairs = NULL;
    size_t cap = 0;
    *n = 0;
    for (const struct after *a = s->after; a < s->after + s->n_after; a++)
        for (int k = origins.last[a->origin]; k != NONE; k = origins.before[k])
            for (int i = origins.last[a->waits_for]; i != NONE; i = origins.before[i])
                if (i < k || a->previous)
                    *APPEND(pairs, *n, cap) = (struct after_pair){.first = i, .second = k, .previous = a->previous};
    SORT(pairs, *n, by_second);
    free(origins.last);
    free(origins.before);
    return pairs;
}
