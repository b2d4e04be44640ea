/* finite.c - a loss or a norm is not finite: the step is run again, to name the first task that made such a value.
 *
 * Without this folder the program ends all the same, but names no task.
 */
#include "trainer/run/run.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

#include <math.h>

struct first_bad {
    const struct task *task;
    const struct tensor *tensor;
    size_t element;
    bool before; /* it was not finite before the task ran */
};

static uint32_t *read_bits(struct tensor *tensor)
{
    uint32_t *words = allocate(count_elements(tensor), sizeof *words);
    read_tensor(tensor, words);
    return words;
}

static bool writes_floats(const struct access *access)
{
    return (access->mode & ACCESS_WRITE) && access->tensor->type == FLOAT32;
}

static bool reads_state(const struct access *access)
{
    return (access->tensor->class == MEM_PARAMETERS || access->tensor->class == MEM_OPTIMIZER) &&
           (access->mode & ACCESS_READ);
}

/* The first element of the tensor that is not finite; the number of elements: all are finite.  stale: elements that
 * have the same bits as in this array do not count; NULL: all count. */
static size_t first_not_finite(struct tensor *tensor, const uint32_t *stale)
{
    size_t n = count_elements(tensor), i = 0;
    uint32_t *words = read_bits(tensor);
    for (; i < n; i++) {
        bool is_stale = stale && words[i] == stale[i];
        if (!is_finite_word(words[i]) && !is_stale)
            break;
    }
    free(words);
    return i;
}

/* Looks for an element of the access's tensor that is not finite, and notes it. */
static bool find_bad_element(const struct access *access, const uint32_t *stale, struct first_bad *bad)
{
    bad->tensor = access->tensor;
    bad->element = first_not_finite(access->tensor, stale);
    return bad->element < count_elements(access->tensor);
}

/* Looks at the parameters and the optimizer state that the task is about to read.  `out`: the tensor that it writes a
 * part of, which does not count. */
static bool reads_bad(const struct task *task, const struct tensor *out, struct first_bad *bad)
{
    for (int i = 0; i < task->n_accesses; i++) {
        const struct access *access = &task->accesses[i];
        bool counts = reads_state(access) && access->tensor != out;
        if (counts && find_bad_element(access, NULL, bad)) {
            bad->task = task;
            bad->before = true;
            return true;
        }
    }
    return false;
}

/* Looks at what the task has written.  Elements of `out` that are the same as in `stale` do not count. */
static bool wrote_bad(const struct task *task, const struct tensor *out, const uint32_t *stale, struct first_bad *bad)
{
    for (int i = 0; i < task->n_accesses; i++) {
        const struct access *access = &task->accesses[i];
        if (!writes_floats(access))
            continue;
        if (find_bad_element(access, access->tensor == out ? stale : NULL, bad)) {
            bad->task = task;
            bad->before = false;
            return true;
        }
    }
    return false;
}

/* The tensor that a task writes only a part of; NULL: it writes all of its tensors. */
static struct tensor *partly_written(const struct task *task)
{
    if (!task->extra.partial)
        return NULL;
    const struct access *access = find_access(task, writes_floats);
    return access ? access->tensor : NULL;
}

/* Runs that iteration again, one task at a time, until a task writes something that is not finite, or reads a
 * parameter or optimizer state that is not.  Returns false if nothing is found.
 *
 * AdamW changes nothing in a step whose norm or loss is not finite (see cl/norm.cl), and everything else in a step
 * follows from its number.  So the step computes the same values again.  A task that writes only a part of a tensor
 * leaves stale bytes in the rest of it, so of this tensor only what has changed counts. */
static bool run_until_not_finite(struct list *list, uint32_t iteration, struct first_bad *bad)
{
    bool found = false;
    for (size_t i = 0; i < list->n && !found; i++) {
        const struct task *task = list->tasks[i];
        if (!is_due(task, iteration) || task->extra.slot.needed || !word_allows(task))
            continue;
        struct tensor *out = partly_written(task);
        uint32_t *stale = NULL;
        if (out)
            stale = read_bits(out);
        found = reads_bad(task, out, bad);
        if (!found) {
            struct task_flight flight = {.iteration = iteration};
            run_alone(list, task, iteration, &flight);
            found = wrote_bad(task, out, stale, bad);
        }
        free(stale);
    }
    return found;
}

/* Ends the program: the task reads a value that was not finite before the step.  ran_again: the step had changed the
 * parameters, so what ran again began from others. */
static _Noreturn void fail_read_bad(struct trainer *trainer, uint32_t step, const struct first_bad *bad, bool ran_again)
{
    char where[LAYER_AND_MICRO];
    const char *when = ran_again ? " ran again (with --clip 0 no update waits for the norm)" : "";
    fail(EXIT_FAILED, "step %u: task %s%s reads element %zu of tensor %s, which was not finite before the step%s; %s",
         step, bad->task->name, layer_and_micro(where, bad->task), bad->element, bad->tensor->name, when,
         not_finite_advice(trainer));
}

/* Ends the program: the task is the first that writes such a value.  changed: the step had changed the parameters. */
static _Noreturn void fail_wrote_bad(struct trainer *trainer, uint32_t step, const struct first_bad *bad, bool changed)
{
    char where[LAYER_AND_MICRO];
    const char *consequence = changed ? "" : " no parameter was changed by this step;";
    fail(EXIT_FAILED, "step %u, task %s%s: element %zu of tensor %s is the first that is not finite;%s %s", step,
         bad->task->name, layer_and_micro(where, bad->task), bad->element, bad->tensor->name, consequence,
         not_finite_advice(trainer));
}

/* Without clipping AdamW waits for the losses alone.  If these are finite and the norm is not, AdamW has changed the
 * parameters. */
static _Noreturn void fail_with_first(struct trainer *trainer, uint32_t step, const struct result *result)
{
    struct first_bad bad;
    const float zeros[VERDICT_SIZE] = {0};
    bool changed = !result->halted || (trainer->settings->clip == 0 && isfinite(result->loss));
    /* Else adamw and its gate would still see the halt. */
    write_tensor(trainer->model->replicas[trainer->model->norm_rank].verdict, zeros);
    if (!run_until_not_finite(trainer->train_list, step, &bad))
        fail(EXIT_FAILED,
             "step %u: the loss or the gradient's norm is not finite, but both are finite when the step is run again; "
             "%s",
             step, not_finite_advice(trainer));
    this_process->not_finite = true;
    if (bad.before)
        fail_read_bad(trainer, step, &bad, result->halted && changed);
    fail_wrote_bad(trainer, step, &bad, changed);
}

static const struct hooks hooks = {
    .step_not_finite = fail_with_first,
};
static const struct training_parts training = {.hooks = &hooks};
const struct module module_finite = {
    .name = "finite",
    .training = &training,
};
