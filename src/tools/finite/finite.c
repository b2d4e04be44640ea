/* finite.c - a loss or a norm is not finite: the step is run again, to name the first task that made such a value.
 *
 * Without this folder the program ends all the same, but names no task.
 */
#include "trainer/run/run.h"
#include "trainer/train/hooks.h"

#include <math.h>

struct first_nan {
    const struct task *task;
    const struct tensor *tensor;
    size_t element;
    bool before; /* it was not finite before the task ran */
};

static uint32_t *bits_of(struct tensor *t)
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
        uint32_t *words = bits_of(a->tensor), exponent = 0x7F800000;
        while (i < n && ((words[i] & exponent) != exponent || (stale && a->tensor == out && words[i] == stale[i])))
            i++;
        free(words);
        *b = (struct first_nan){t, a->tensor, i, !after};
        if (i < n)
            return true;
    }
    return false;
}

/* Runs iteration `number` again, one task at a time, until one writes something that is not finite, or reads a
 * parameter or optimizer state that is not.  false: nothing is found.
 *
 * AdamW changes nothing in a step whose gradient is not finite (see cl/norm.cl), and everything else of a step follows
 * from its number.  So it is the same step.  A task that writes only part of a tensor leaves stale bytes in the rest:
 * there, only what has changed counts. */
static bool find_not_finite(struct step *s, uint32_t number, struct first_nan *b)
{
    bool found = false;
    for (size_t i = 0; i < s->n && !found; i++) {
        const struct task *t = s->task[i];
        struct tensor *out = NULL;
        if (!runs(t, number) || t->condition.member || !has_needed(t))
            continue;
        for (int k = 0; t->partial && k < t->n_access && !out; k++)
            out = is_written(&t->access[k]) ? t->access[k].tensor : NULL;
        uint32_t *stale = out ? bits_of(out) : NULL;
        found = look_at(t, false, out, stale, b);
        if (!found) {
            run_alone(s, number, i, &(struct task_flight){.number = number});
            found = look_at(t, true, out, stale, b);
        }
        free(stale);
    }
    return found;
}

/* AdamW changes nothing where the norm or a loss is not finite.  So the parameters are those from before the bad step,
 * which can be run again.  Without clipping AdamW waits for the losses alone.  If these are finite and the norm is not,
 * AdamW has changed the parameters. */
static void name_first(struct trainer *t, uint32_t number, const struct result *r)
{
    struct first_nan b;
    bool changed = !r->halted || (t->settings->clip == 0 && isfinite(r->loss));
    write_tensor(t->model->replica[t->model->norm_rank].state, (float[STATE_SIZE]){0});
    if (!find_not_finite(t->train, number, &b))
        fail(EXIT_FAILED, "step %u: the loss or the gradient's norm is not finite, but running it again both are; %s",
             number, not_finite_advice);
    this_life->not_finite = true;
    char *layer = b.task->layer < 0 ? copy_string("") : format_string(", layer %d", b.task->layer);
    if (b.before)
        fail(EXIT_FAILED,
             "step %u%s, task %s: reads element %zu of tensor %s, which was not finite before the step%s; %s", number,
             layer, b.task->name, b.element, b.tensor->name,
             r->halted && changed ? " ran again (with --clip 0 no update waits for the norm)" : "", not_finite_advice);
    fail(EXIT_FAILED, "step %u%s, task %s: element %zu of tensor %s is the first that is not finite;%s %s", number,
         layer, b.task->name, b.element, b.tensor->name, changed ? "" : " no parameter was changed by this step;",
         not_finite_advice);
}

static const struct hooks hooks = {.not_finite = name_first};
const struct module module_finite = {.name = "finite", .place = 6, .hooks = &hooks};
