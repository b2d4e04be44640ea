/* budgets.c - sets the budgets of devices, and lifts them while a list is looked at that may not fit. */
#include "forecast.h"

/* In a step file's machine a tensor may be as large as all memory, unless slab= says less: so that limit follows the
 * budget. */
static void set_budget(struct device *device, size_t bytes)
{
    if (device->extra.described.by_hand && device->max_allocation == device->budget)
        device->max_allocation = bytes;
    device->budget = bytes;
}

void set_budgets(struct machine *machine, size_t each, size_t host)
{
    for (int i = 0; i <= machine->n_devices; i++) {
        struct device *device = &machine->devices[i];
        size_t bytes = device->is_host ? host : each;
        if (bytes == 0)
            continue;
        set_budget(device, bytes);
        if (device->extra.described.by_hand)
            device->memory = bytes;
    }
}

void raise_budget(struct device *device, size_t bytes)
{
    if (bytes > device->budget)
        set_budget(device, bytes);
}

struct device *lift_limits(struct machine *machine, int n)
{
    struct device *before = copy_bytes(machine->devices, (size_t)n * sizeof *before);
    for (int i = 0; i < n; i++)
        set_budget(&machine->devices[i], NO_LIMIT);
    return before;
}

void restore_limits(struct machine *machine, const struct device *before, int n)
{
    for (int i = 0; i < n; i++) {
        machine->devices[i].budget = before[i].budget;
        machine->devices[i].max_allocation = before[i].max_allocation;
    }
}
