/* shortage.c - if a list does not fit, says where, and which budgets would do. */
#include "forecast.h"
#include "trainer/train/train.h"

char *describe_shortage(const struct device *before, const struct forecast *forecast)
{
    char where[LAYER_AND_MICRO], budget[BUDGET_TEXT];
    const struct device *device = before;
    while (!device->is_host && forecast->needed_bytes[device->index] <= device->budget)
        device++;
    const struct task *task = forecast->tasks[forecast->peak_position[device->index]];
    return format_string("device %s: task %s%s does not fit in the budget of %s", device->id, task->name,
                         layer_and_micro(where, task), format_budget(budget, device));
}

/* Is the budget this device's alone?  Those that --device-mem limits have one budget for all. */
static bool has_own_budget(const struct device *device) { return device->extra.described.by_hand || device->is_host; }

/* Devices that --device-mem limits all get the largest budget that one of them needs, since it is one number. */
void raise_budgets(struct machine *machine, const struct forecast *forecast)
{
    size_t most = 0;
    for (int i = 0; i < machine->n_devices; i++)
        most = MAX(most, forecast->needed_bytes[i]);
    for (int i = 0; i <= machine->n_devices; i++) {
        struct device *device = &machine->devices[i];
        raise_budget(device, has_own_budget(device) ? forecast->needed_bytes[device->index] : most);
    }
}

/* The lists for evaluation and samples use the same memory, one list at a time.  On the host they may need more than
 * the list for training; on a device they need less. */
static void raise_for_other_lists(struct machine *machine, const struct trainer *trainer)
{
    struct list *all[MOST_LISTS];
    size_t n = lists_of(trainer, all);
    for (size_t i = 0; i < n; i++)
        if (all[i] != trainer->train_list)
            raise_budget(machine->host, host_bytes_of(all[i]));
}

/* The owner of the budget, as the user names it. */
static const char *owner_of(const struct device *device)
{
    if (device->extra.described.by_hand)
        return device->id;
    return device->is_host ? "the host" : "each device";
}

/* The first device whose budget was raised; NULL: none was. */
static const struct device *first_raised(const struct machine *machine, const struct device *before)
{
    for (int i = 0; i <= machine->n_devices; i++)
        if (machine->devices[i].budget != before[i].budget)
            return &machine->devices[i];
    return NULL;
}

/* The budgets that were raised, that of --device-mem once: "2048 bytes (2.00 KiB) for each device, ...".  The caller
 * frees it. */
static char *name_raised_budgets(const struct machine *machine, const struct device *before, const struct device *first)
{
    char *named = NULL;
    char text[NUMBER_TEXT];
    for (int i = first->index; i <= machine->n_devices; i++) {
        const struct device *device = &machine->devices[i];
        bool is_raised = device->budget != before[i].budget;
        bool is_named = device != first && !has_own_budget(device); /* it was named with the first one */
        if (is_raised && !is_named)
            append_text(&named, "%s%zu bytes (%s) for %s", named ? ", " : "", device->budget,
                        format_bytes(text, (double)device->budget), owner_of(device));
    }
    return named;
}

_Noreturn void refuse_and_name_budgets(struct machine *machine, const struct device *before, const char *shortage,
                                       const char *option, const struct run_facts *facts, enum replanning replans)
{
    if (facts->trainer)
        raise_for_other_lists(machine, facts->trainer);
    const struct device *first = first_raised(machine, before);
    CHECK(first, "%s: memory is short, but no budget has been raised", option);
    const char *enough = name_raised_budgets(machine, before, first);
    const char *raised = first->is_host ? "--host-mem" : "--device-mem";
    char *verdict = NULL, *advice = NULL;
    if (replans == SAME_LIST)
        verdict = format_string("enough would be %s", enough);
    else
        verdict = format_string("%s are needed, or more if a pass then chooses anew", enough);
    if (first->extra.described.by_hand)
        advice = format_string("raise memory= or %s, or use smaller tensors", raised);
    else
        advice = format_string("raise %s, or use %s", raised, ways_to_make_room(first->is_host));
    fail(EXIT_USAGE, "%s: %s; %s: %s", option, shortage, verdict, advice);
}

_Noreturn void fail_too_large(struct machine *machine, const struct forecast *forecast, const char *option,
                              const struct run_facts *facts, enum replanning replans)
{
    struct device *before = copy_bytes(machine->devices, ((size_t)machine->n_devices + 1) * sizeof *before);
    if (forecast->problem) /* no budget would give the list a place */
        must(forecast->problem);
    raise_budgets(machine, forecast);
    refuse_and_name_budgets(machine, before, describe_shortage(before, forecast), option, facts, replans);
}
