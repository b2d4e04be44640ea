/* debug.c - the search for the first value that is not finite. */
#include "run.h"

static uint32_t *words_of(struct tensor *t)
{
    uint32_t *words = allocate(count_elements(t), sizeof *words);
    read_tensor(t, words);
    return words;
}

static bool is_written(const struct access *a) { return (a->mode & ACCESS_WRITE) && a->tensor->element == FLOAT32; }

/* Is what task t reads of parameters and optimizer state finite, or what it has written?  Of `out` only those elements
 * count that are not the same as in `stale`. */
static bool look_at(const struct task *t, bool after, const struct tensor *out, const uint32_t *stale,
                    struct first_nan *b)
{
    for (const struct access *a = t->access; a < t->access + t->n_access; a++) {
        bool state = a->tensor->class == MEM_PARAMETERS || a->tensor->class == MEM_OPTIMIZER;
        if (!(after ? is_written(a) : state && (a->mode & ACCESS_READ)))
            continue;
        size_t n = count_elements(a->tensor), i = 0;
        uint32_t *words = words_of(a->tensor), exponent = 0x7F800000;
        while (i < n && ((words[i] & exponent) != exponent || (stale && a->tensor == out && words[i] == stale[i])))
            i++;
        free(words);
        *b = (struct first_nan){t, a->tensor, i, !after};
        if (i < n)
            return true;
    }
    return false;
}

/* AdamW changes nothing in a step whose gradient is not finite (see cl/norm.cl), and everything else of a step follows
 * from its number: so the step is run again, one task at a time.  A task that writes only part of a tensor leaves stale
 * bytes in the rest: there, only what has changed counts. */
bool find_not_finite(struct step *s, uint32_t number, struct first_nan *b)
{
    bool found = false;
    for (size_t i = 0; i < s->n && !found; i++) {
        const struct task *t = s->task[i];
        struct tensor *out = NULL;
        if (!runs(t, number) || t->condition.member || !has_needed(t))
            continue;
        for (int k = 0; t->partial && k < t->n_access && !out; k++)
            out = is_written(&t->access[k]) ? t->access[k].tensor : NULL;
        uint32_t *stale = out ? words_of(out) : NULL;
        found = look_at(t, false, out, stale, b);
        if (!found) {
            run_alone(s, number, i, &(struct task_flight){.number = number});
            found = look_at(t, true, out, stale, b);
        }
        free(stale);
    }
    return found;
}
