/* snapshot_pass.h - what the options of snapshot ask for, and the folder's module: snapshot_pass.c. */
#ifndef SNAPSHOT_PASS_H
#define SNAPSHOT_PASS_H

enum { MOST_EVERY = 1000 }; /* the largest --snapshot-every */
enum snapshot_place { IN_HOST, IN_DEVICE };
struct snapshot_options {
    const char *file; /* NULL: nothing is stored */
    int every;        /* iterations from one that is stored to the next */
    int slots;        /* iterations for which there is room */
    int iterations;   /* how many of them `yard plan` looks at to report the commits */
    enum snapshot_place
        place; /* where the first copy of an update's result goes; the next update waits for this copy */
};
extern struct snapshot_options snapshot_options;
extern const struct module module_snapshot;

#endif
