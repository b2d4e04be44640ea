/* reshard_options.h - the folder's options, and its module: reshard_options.c. */
#ifndef RESHARD_OPTIONS_H
#define RESHARD_OPTIONS_H

struct reshard_options {
    const char *resume; /* the path that --resume names; NULL: the run begins from nothing, or from a model */
    int keep;           /* how many checkpoints stay; or KEEP_ALL of find_checkpoint.h */
};
extern struct reshard_options reshard_options;
extern const struct module module_reshard;

#endif
