/* archive.h - what the trainer asks of the folder that writes whole runs and reads them again.
 *
 * Without such a folder, a run saves its model alone, and none goes on.  The folder is found by find_archive() of
 * base/additions.h; the trainer itself knows only what a run is (struct resumed_run) and where it would be.
 */
#ifndef ARCHIVE_H
#define ARCHIVE_H

#include "settings.h"
#include "trainer/base/additions.h"
#include "trainer/mesh/mesh.h"

struct trainer;

/* A run that another one goes on from. */
struct resumed_run {
    const char *given_path; /* the path that the user gave */
    const char *kept_by;    /* the option that goes on keeping runs there, "--save" */
    const char *path;       /* the path of what was found there */
    uint32_t step;          /* its last one */
    int64_t samples;        /* how many sequences it has trained on */
    json_t *options;        /* the options that it was trained with, by name, as texts */
    const char *options_in; /* the file that has these options, as messages name it */
    struct source source;   /* its model */
    bool elsewhere;         /* --save's folder does not have this step */
};

enum loaded_state { LOAD_PARAMETERS, LOAD_ALL_STATE }; /* the latter: Adam's m and v too */

/* The functions of that folder. */
struct archive {
    const char *option; /* the one that names the run to go on from: "--resume" */
    /* The run that the options name; NULL: they name none.  It is there until the program ends, and nobody frees it. */
    const struct resumed_run *(*find_run)(void);
    /* The mesh of the run that goes on, on that number of devices, where --mesh does not say. */
    struct mesh (*mesh)(const struct settings *settings, int devices);
    /* Is `path` a run, or a folder of runs?  Then *source becomes the run's model, from which training or sampling
     * starts. */
    bool (*open)(const char *path, struct source *source);
    void (*close)(struct source *source);
    /* Reads the parameters, or all state. */
    void (*load)(struct model *model, const struct source *source, enum loaded_state what);
    /* Ends the program where `path` lies in a run, so that nothing may be written there.  who: the option that would,
     * such as "--trace". */
    void (*expect_outside)(const char *who, const char *path);
    /* Ends the program where `folder` has a run of a model of other sizes. */
    void (*expect_sizes)(const char *folder, const struct config *config);
    /* Writes the run as it is after that step to --save's folder.  first: it is this process's first save. */
    void (*save)(struct trainer *trainer, uint32_t step, bool first);
};

#endif
