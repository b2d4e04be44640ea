/* mesh_search.h - yard plan --search: its parts.
 *
 *     struct mesh_search search = make_mesh_search(settings, devices);
 *     search_meshes(&search);                                   all candidates are made, and simulated or ruled out
 *     size_t n = sort_front(&search, search.budget);            search.outcomes[0 .. n) are the front
 *     free_mesh_search(&search);
 */
#ifndef MESH_SEARCH_H
#define MESH_SEARCH_H

#include "bounds.h"

struct mesh_outcome { /* a candidate that was simulated */
    struct mesh_candidate candidate;
    double seconds, bytes; /* the time of a step, and what the fullest device holds */
};

struct mesh_search {
    const struct settings *given;
    struct settings settings; /* a copy of *given without mesh, devices and limits of memory */
    struct config config;
    int devices;
    double budget; /* bytes of a device */
    bool prunes;   /* false: all candidates are simulated */
    size_t limit;  /* how many candidates are simulated at most */
    int processes; /* how many candidates are simulated at the same time at most */
    struct sketch **sketches;
    size_t n_sketches, cap_sketches;
    struct mesh *meshes;
    size_t n_meshes, cap_meshes;
    struct mesh_candidate *candidates;
    size_t n_candidates, cap_candidates;
    struct mesh_outcome *outcomes; /* after search_meshes() by time */
    size_t n_outcomes, cap_outcomes;
    struct problem *problem;    /* why the first candidate could not be planned; NULL: all could */
    size_t too_large, too_slow; /* how many candidates each bound has ruled out: memory, and time */
    size_t left;                /* how many others were not simulated, since the search was ended before */
    double left_seconds;        /* the least bound of the time of these; INFINITY: there are none */
};

/* ---- mesh_search.c ----------------------------------------------------------------------------------------------- */

/* A search for the way to train by these settings on `devices` devices of --hardware, without candidates yet.
 * The caller frees it with free_mesh_search().  Ends the program (EXIT_USAGE) where the hardware has fewer devices. */
struct mesh_search make_mesh_search(const struct settings *settings, int devices);

/* Makes the candidates, and simulates those that no bound rules out.  Ends the program (EXIT_USAGE) where there is
 * none. */
void search_meshes(struct mesh_search *search);
void free_mesh_search(struct mesh_search *search);

/* ---- front.c ----------------------------------------------------------------------------------------------------- */

/* Is something that was simulated faster in no more bytes, or as fast in fewer? */
bool is_beaten(const struct mesh_search *search, double bytes, double seconds);

/* Moves the front to the array's beginning: of those within `budget` bytes, by time, each in less memory than
 * those before it.  Returns how many there are. */
size_t sort_front(struct mesh_search *search, double budget);

/* ---- candidates.c ------------------------------------------------------------------------------------------------ */

/* Simulates the candidates that no bound rules out, from the least bound of time on, until the search is
 * ended.  Sets the counts of the others. */
void simulate_candidates(struct mesh_search *search);

/* Simulates the fastest of the front again: with recomputation, and, if they do not fit, with swap. */
void simulate_with_techniques(struct mesh_search *search);

#endif
