/* meshes.h - yard plan --search: its parts, for tests. */
#ifndef MESHES_H
#define MESHES_H

#include "bounds.h"

struct planned { /* a candidate that was simulated */
    struct candidate candidate;
    double seconds, bytes; /* of a step; on the fullest device */
};
enum pruned {
    BY_MEMORY = TIME_BOUNDS, /* after the bounds on time */
    BY_PLACE,                /* its list was built and placed, but not simulated */
    PRUNED
};
struct mesh_search {
    const struct settings *asked;
    struct settings settings; /* the same without mesh, devices and limits of memory */
    struct config config;
    int devices;
    double budget, link_rate; /* bytes of a device; bytes per second of all links together */
    bool prunes;              /* false: all candidates are simulated */
    struct sketch **sketch;
    size_t n_sketches, cap_sketches;
    struct mesh *mesh;
    size_t n_meshes, cap_meshes;
    struct candidate *candidate;
    size_t n_candidates, cap_candidates;
    struct planned *planned; /* after search_meshes() by time */
    size_t n, cap;
    size_t pruned[PRUNED]; /* how many candidates each bound has ruled out */
};
struct mesh_search new_mesh_search(const struct settings *s, int devices);
void search_meshes(struct mesh_search *x);
/* Those that fit, by time, each in less memory than those before it: moved to the front of the array.  Returns
 * how many there are. */
size_t find_front(struct mesh_search *x);
void free_mesh_search(struct mesh_search *x);

#endif
