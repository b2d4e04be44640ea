/* links.c - the links of a described machine, which have speeds of their own. */
#include "driver.h"

const enum lane_kind lane_of_direction[DIRECTIONS] = {[LINK_UP] = LANE_UPLOAD, [LINK_DOWN] = LANE_DOWNLOAD};

struct link *add_link(struct machine *machine, double rate, double latency)
{
    struct link *link = allocate(1, sizeof *link);
    *link = (struct link){.index = machine->n_links, .rate = rate, .latency = latency};
    GROW(machine->links, machine->cap_links, machine->n_links + 1);
    machine->links[machine->n_links++] = link;
    return link;
}

void drop_links(struct machine *machine)
{
    for (int i = 0; i < machine->n_links; i++)
        free(machine->links[i]);
    for (int i = 0; i <= machine->n_devices; i++) {
        machine->devices[i].extra.described.links[LINK_UP] = NULL;
        machine->devices[i].extra.described.links[LINK_DOWN] = NULL;
    }
    machine->host->extra.described.disk = NULL;
    machine->n_links = 0;
}
