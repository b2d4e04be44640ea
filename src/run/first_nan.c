/* first_nan.c - which task was the first to make, or to be given, a value that is not finite.
 *
 * AdamW changes nothing in a step whose gradient is not finite (see cl/norm.cl), and everything else of a step follows
 * from its number: so the step is run again, one task at a time, and what each writes is looked at.
 */
#include "run.h"

static bool is_finite(uint32_t word) { return (word & 0x7F800000) != 0x7F800000; }

/* The words of a tensor; the caller frees them. */
static uint32_t *words_of(struct tensor *t)
{
    uint32_t *words = allocate(count_elements(t), sizeof *words);
    read_tensor(t, words);
    return words;
}

/* An element that is not finite and, unless `before` is NULL, was not the same before. */
static bool find_element(struct tensor *t, const uint32_t *before, size_t *element)
{
    uint32_t *words = words_of(t);
    size_t n = count_elements(t), i = 0;
    while (i < n && (is_finite(words[i]) || (before && words[i] == before[i])))
        i++;
    *element = i;
    free(words);
    return i < n;
}

/* Run task i and look at what it writes.  A task that writes only part of a tensor leaves stale bytes in the rest:
 * there, only what has changed counts. */
static bool run_and_look(struct step *s, uint32_t number, size_t i, struct first_nan *b)
{
    struct task *t = s->task[i];
    struct tensor *out = NULL;
    for (int k = 0; k < t->n_access && !out; k++)
        if ((t->access[k].mode & ACCESS_WRITE) && t->access[k].tensor->element == FLOAT32)
            out = t->access[k].tensor;
    uint32_t *before = t->partial ? words_of(out) : NULL;
    bool found = false;
    run_alone(s, number, i, &(struct slot){.number = number});
    b->task = t;
    for (int k = 0; k < t->n_access && !found; k++)
        if ((t->access[k].mode & ACCESS_WRITE) && t->access[k].tensor->element == FLOAT32) {
            b->tensor = t->access[k].tensor;
            found = find_element(t->access[k].tensor, t->access[k].tensor == out ? before : NULL, &b->element);
        }
    free(before);
    return found;
}

/* Does task t read a parameter or optimizer state that is bad already?  (Its own outputs are looked at after it ran.)
 */
static bool reads_bad_state(const struct task *t, struct first_nan *b)
{
    for (int k = 0; k < t->n_access; k++) {
        struct tensor *x = t->access[k].tensor;
        bool state = (x->class == MEM_PARAMETERS || x->class == MEM_OPTIMIZER) && (t->access[k].mode & ACCESS_READ);
        if (state && find_element(x, NULL, &b->element)) {
            *b = (struct first_nan){t, x, b->element, true};
            return true;
        }
    }
    return false;
}

bool find_not_finite(struct step *s, uint32_t number, struct first_nan *b)
{
    drain(s);
    *b = (struct first_nan){NULL, NULL, 0, false};
    bool found = false;
    for (size_t i = 0; i < s->n && !found; i++)
        found = runs(s->task[i], number) && !s->task[i]->slot && has_needed(s->task[i]) &&
                (reads_bad_state(s->task[i], b) || run_and_look(s, number, i, b));
    return found;
}
