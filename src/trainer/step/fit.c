/* fit.c - how much an arena takes, and why a tensor does not fit: which task needs it, how many bytes are short, and
 * which option would make room.  The options that are named here are the trainer's own; what other folders can do, they
 * say themselves (ways_to_make_room()).
 */
#include "step_parts.h"
#include "trainer/base/additions.h"

size_t arena_bytes(const struct arena *arena)
{
    size_t sum = arena->bytes_before;
    for (size_t i = 0; i < arena->n_slabs; i++)
        sum += round_up(arena->slab_bytes[i], arena->device->alignment) + guard_bytes(arena->device);
    return sum;
}

/* What the user would set to give the device a larger budget. */
static const char *budget_option(const struct device *device)
{
    if (device->extra.limited && device->budget == default_budget(device))
        return "limit";
    return device->is_host ? "--host-mem" : "--device-mem";
}

/* Names what would make room in the budget for a tensor that `task` is the first to touch; NULL: it persists. */
static char *advice_on_budget(const struct device *device, const struct task *task)
{
    const char *option = budget_option(device);
    if (!task)
        return format_string("a smaller model, or a larger %s", option);
    char *advice = ways_to_make_room(device->is_host);
    append_text(&advice, ", or a larger %s", option);
    return advice;
}

/* Names what would make a tensor smaller that is larger than any that the device allows; the caller frees the text. */
static char *advice_on_piece(const struct task *task, const struct tensor *tensor)
{
    if (!task)
        return copy_string("a smaller model");
    bool is_of_attention = tensor->shape.n_dims == 4; /* (B, H, T, T) */
    return format_string("%s%s", is_of_attention ? "--attention flash, " : "", ways_to_shrink);
}

/* Names what would make room for the tensor; the caller frees it.  task: the first that touches it; NULL: it
 * persists. */
static char *advice_on_room(const struct device *device, const struct task *task, const struct tensor *tensor,
                            enum limit limit)
{
    if (device->extra.described.by_hand)
        return format_string("smaller tensors, or a larger memory= or %s", budget_option(device));
    if (limit == LIMIT_OF_SLAB)
        return advice_on_piece(task, tensor);
    return advice_on_budget(device, task);
}

/* The first task that touches a tensor of its list; NULL: the tensor persists. */
static const struct task *first_task(const struct tensor *tensor)
{
    if (tensor->persistent)
        return NULL;
    for (size_t i = (size_t)tensor->held_from; i < tensor->list->n; i++) {
        const struct task *task = tensor->list->tasks[i];
        for (int k = 0; k < task->n_accesses; k++)
            if (task->accesses[k].tensor->storage == tensor)
                return task;
    }
    return NULL;
}

static char *describe_piece(const struct device *device)
{
    char most[NUMBER_TEXT];
    return format_string("the device allows %s in one piece", format_bytes(most, (double)slab_limit(device)));
}

static char *describe_needs(const struct arena *arena)
{
    char need[NUMBER_TEXT], more[NUMBER_TEXT], have[BUDGET_TEXT];
    const struct device *device = arena->device;
    /* what lies in the arena already, with this tensor; or what the whole list needs */
    size_t least = MAX(arena_bytes(arena), arena->least_bytes);
    format_bytes(need, (double)least);
    format_bytes(more, (double)(least - device->budget));
    format_budget(have, device);
    return format_string("all tensors need at least %s, %s more than the budget of %s", need, more, have);
}

struct problem *fit_problem(const struct arena *arena, const struct tensor *tensor, enum limit limit)
{
    char where[LAYER_AND_MICRO], size[NUMBER_TEXT];
    const struct device *device = arena->device;
    const struct task *task = first_task(tensor);
    char *user = NULL; /* what needs the tensor */
    if (task)
        user =
            format_string("of task %s%s of the %s list", task->name, layer_and_micro(where, task), tensor->list->name);
    else
        user = copy_string("of the state that is kept from step to step");
    char *reason = limit == LIMIT_OF_SLAB ? describe_piece(device) : describe_needs(arena);
    char *advice = advice_on_room(device, task, tensor, limit);
    struct problem *problem = new_problem(EXIT_USAGE, "device %s: tensor %s (%s, %s) %s does not fit: %s; use %s",
                                          device->id, tensor->name, memory_class_name[counted_as(tensor)],
                                          format_bytes(size, (double)tensor->bytes), user, reason, advice);
    free(advice);
    free(reason);
    free(user);
    return problem;
}
