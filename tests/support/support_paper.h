/* support_paper.h - lists that are never run: on devices that exist only as a description of hardware. */
#ifndef SUPPORT_PAPER_H
#define SUPPORT_PAPER_H

#include "support.h"

/* ---- hardware ---------------------------------------------------------------------------------------------------- */

struct speeds {
    int per_link; /* devices that share a link */
    double bytes_per_s, launch, link, latency;
};

/* A byte takes a millisecond wherever it goes, and nothing else takes time: a tensor of 4 bytes is 4 ms of work. */
extern const struct speeds slow_speeds;

/* Like a machine of today, but for links so slow that copies count. */
extern const struct speeds plausible_speeds;
char *hardware_text(const struct speeds *speeds); /* describes eight devices; the caller frees it */

/* The same in a file of this test's folder; valid until four more are made. */
const char *write_hardware(const char *name, const struct speeds *speeds);

/* ---- lists ------------------------------------------------------------------------------------------------------- */

struct paper {
    struct costs *costs;
    struct machine *machine;
    struct pool *pool;
    struct list *list;
    struct device *device, *host; /* the machine's first device, and its host */
};
struct paper new_paper(int n_devices, const struct speeds *speeds);
void end_paper(struct paper *p);
struct tensor *new_words(struct paper *p, struct device *device, const char *name, int64_t words,
                         enum lifetime lifetime);

/* Nothing on paper is run, so any lane will do.  The task writes one tensor and reads up to two; NULL: none. */
struct task *add_paper(struct paper *p, struct lane *lane, const char *name, struct tensor *writes,
                       struct tensor *reads, struct tensor *reads_too);

/* Gives addresses and edges to the list, which must then be sound. */
void finish_paper(struct paper *p);

/* A tiny model on `ranks` devices of the description at `path`, planned only; two micro-batches on each. */
struct trainer *plan_tiny(const char *path, int ranks);

/* A simulation with these durations (seconds, per task), no links and no time to issue. */
struct simulation *simulate_durations(const struct list *list, const double *seconds);

/* Fails unless the list has tasks of these names, with a space between two, each at the position that it says. */
void expect_order(const struct list *list, const char *names);

/* All bytes of the list, its tasks and its pool's tensors as one number, but not where tasks stand in an open edit. */
uint64_t fingerprint(const struct list *list);

/* Fails unless |found - expected| is at most 1e-9 of expected. */
void expect_number(const char *what, double found, double expected);

/* ---- lists that are written as texts ----------------------------------------------------------------------------- */

#define GPU "device gpu memory=1000\n"
#define A_AND_B "device a memory=1000\ndevice b memory=1000\n"

/* The list of this step file, with addresses and edges; verify_list() must find nothing wrong. */
struct list *read_text_list(const char *text);
struct simulation *simulate_text(const char *text); /* of that list; end_simulation() frees both */
void end_simulation(struct simulation *simulation);

/* Fails unless the simulation settles in this pattern of steps, with this mean time of a step in seconds. */
void expect_period(const char *text, double period, int pattern);

/* The step file that is written of a list with these durations (seconds, per task); the caller frees it. */
char *list_as_text(const struct list *list, const double *seconds);

/* The file that is written of a list is simulated to the same times, and written again to the same bytes. */
void expect_round_trip(const struct list *list, const struct simulation *simulation);

#endif
