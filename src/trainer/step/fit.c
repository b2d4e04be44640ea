/* fit.c - how much an arena takes, and why a tensor does not fit: which task needs it, how many bytes are short, and
 * which option would make room.
 */
#include "place.h"
#include "trainer/base/module.h" /* defines: modules, whose passes make room */

size_t arena_bytes(const struct arena *arena)
{
    size_t sum = arena->bytes_before;
    for (int i = 0; i < arena->n_slabs; i++)
        sum += round_up(arena->slab_bytes[i], arena->device->alignment) + guard_bytes(arena->device);
    return sum;
}

/* Names what would make room for tensor x; the caller frees it.  task: the first that touches x; NULL: x persists. */
static char *advice_on_room(const struct device *d, const struct task *task, const struct tensor *x, enum limit limit)
{
    const bool in_one_piece = limit == LIMIT_OF_SLAB;
    char *advice = NULL;
    if (d->described.by_hand)
        return copy_string("smaller tensors, or a larger memory= or ");
    if (in_one_piece && !task)
        return copy_string("a smaller model");
    if (in_one_piece && x->shape.n_dims == 4) /* (B, H, T, T) */
        return copy_string("--attention flash, a smaller --micro-batch or --seq-len");
    if (in_one_piece)
        return copy_string("a smaller --micro-batch or --seq-len");
    if (!task)
        return copy_string("a smaller model, or a larger ");
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->makes_room)
            append_text(&advice, "%s, ", modules[i]->makes_room);
    append_text(&advice, "a smaller --micro-batch or --seq-len, or a larger ");
    return advice;
}

/* The first task that touches a tensor of its list; NULL: the tensor persists. */
static const struct task *first_task(const struct tensor *x)
{
    if (x->persistent)
        return NULL;
    for (size_t i = (size_t)x->held_from; i < x->step->n; i++) {
        const struct task *task = x->step->task[i];
        for (int k = 0; k < task->n_access; k++)
            if (task->access[k].tensor->storage == x)
                return task;
    }
    return NULL;
}

static char *why_not_in_one_piece(const struct device *d, const struct tensor *x)
{
    char size[32], have[32];
    format_bytes(size, (double)x->bytes);
    format_bytes(have, (double)slab_limit(d));
    return format_string("tensor %s needs %s in one piece, the device allows %s", x->name, size, have);
}

static char *why_not_in_budget(const struct arena *arena, const struct tensor *x)
{
    char need[32], more[32], have[128], size[32];
    const struct device *d = arena->device;
    /* what lies in the arena already, with x; or what the whole list needs */
    const size_t least = MAX(arena_bytes(arena), arena->least_bytes);
    format_bytes(size, (double)x->bytes);
    format_bytes(need, (double)least);
    format_bytes(more, (double)(least - d->budget));
    format_budget(have, d);
    return format_string("with tensor %s (%s, %s) the budget is full, and at least %s are needed, %s more than the "
                         "budget of %s",
                         x->name, memory_class_name[counted_as(x)], size, need, more, have);
}

/* What the user would set to give the device a larger budget. */
static const char *budget_option(const struct device *d)
{
    if (d->limited && d->budget == default_budget(d))
        return "limit";
    return d->is_host ? "--host-mem" : "--device-mem";
}

struct problem *does_not_fit(const struct arena *arena, const struct tensor *x, enum limit limit)
{
    const bool in_one_piece = limit == LIMIT_OF_SLAB;
    char where[64];
    const struct device *device = arena->device;
    const struct task *task = first_task(x);
    char *holder = NULL; /* what needs the tensor */
    if (task)
        holder = format_string("task %s%s of the %s list", task->name, layer_and_micro(where, task), x->step->name);
    else
        holder = copy_string("the state that is kept from step to step");
    char *why = in_one_piece ? why_not_in_one_piece(device, x) : why_not_in_budget(arena, x);
    char *advice = advice_on_room(device, task, x, limit);
    const char *option = !in_one_piece || device->described.by_hand ? budget_option(device) : "";
    struct problem *p =
        new_problem(EXIT_USAGE, "device %s: %s does not fit: %s; use %s%s", device->id, holder, why, advice, option);
    free(advice);
    free(holder);
    free(why);
    return p;
}
