/* describe.c - what a user is told of a machine: its devices, cores and vectors. */
#include "device.h"

/* Cores that are used by CPU devices, each counted once. */
static unsigned count_cores(const struct machine *machine)
{
    unsigned cores = 0;
    for (int i = 0; i < machine->n_devices; i++) {
        const struct device *device = &machine->devices[i];
        if (device->is_cpu && (i == 0 || device->cl != device[-1].cl)) /* the shares of one device are neighbours */
            cores += device->units;
    }
    return cores;
}

unsigned spare_cores(const struct machine *machine)
{
    return machine->host->units - MIN(count_cores(machine), machine->host->units);
}

unsigned vector_width(const struct machine *machine)
{
    for (int i = 1; i < machine->n_devices; i++)
        if (machine->devices[i].shape.vector != machine->devices[0].shape.vector)
            return 0;
    return machine->devices[0].shape.vector;
}

char *describe_machine(const struct machine *machine)
{
    const struct device *device = &machine->devices[0], *last = &machine->devices[machine->n_devices - 1];
    const char *shared = device->extra.is_logical ? ", shared: the devices take turns" : "";
    unsigned used = count_cores(machine), width = vector_width(machine);
    char *text = NULL;
    if (machine->n_devices == 1)
        append_text(&text, "%s (%s, %u unit%s", device->name, device->id, device->units, PLURAL(device->units));
    else
        append_text(&text, "%d devices, %s to %s: %s (%u unit%s each%s", machine->n_devices, device->id, last->id,
                    device->name, device->units, PLURAL(device->units), shared);
    if (used)
        append_text(&text, "; %u of the host's %u cores compute", used, machine->host->units);
    if (width)
        append_text(&text, "; vectors of %u float%s)", width, PLURAL(width));
    else /* the user is told, since the same bits need the same width */
        append_text(&text, "; vectors of unlike widths)");
    return text;
}
