/* other_form.h - another form of a checkpoint: one file, in which a run writes one state over another.  Implemented in
 * other_form.c, and by the folder that has such files (techniques/snapshot).
 *
 * A folder of src that has such files registers how they are read (struct module).  To all others what it opens is a
 * checkpoint.
 *
 * The manifest in such a file is written once and describes every state.  So it lacks what changes from state to state:
 * "step", "session", "samples", "run", "files", and the pieces' "file" and "hash"; and "offset" counts from where a
 * state begins.  open() fills in what belongs to the state that it chose.
 */
#ifndef OTHER_FORM_H
#define OTHER_FORM_H

#include "trainer/base/json.h"

struct checkpoint; /* checkpoint.h */

struct checkpoint_form {
    const char *name;   /* the form's name, as `yard ckpt ls --json` has it */
    const char *option; /* the option of yard train that writes it, "--snapshot" */
    const char *place;  /* what has room for a state, "a slot" */
    const char *advice; /* what to do when bytes do not have the hash of their piece */
    bool (*is_ours)(const char *path);
    /* The newest state that is whole, all of it read and its hashes compared.  Fails when there is none. */
    struct checkpoint *(*open)(const char *path);
    json_t *(*to_json)(const struct checkpoint *checkpoint); /* for `yard ckpt ls`: facts that only this form has */
    void (*print)(const struct checkpoint *checkpoint);      /* the same facts as a line */
};

/* What another form adds to a checkpoint: the first member of a struct of the form's own, allocated with that. */
struct other_form {
    const struct checkpoint_form *form;
    size_t n;       /* pieces of all tensors */
    uint64_t bytes; /* size of the place for one state */
    char **damage;  /* sentences: what is not as it was written */
    size_t n_damage, cap_damage;
};

/* The form that this file has; NULL: no other form, or no folder that reads it. */
const struct checkpoint_form *find_checkpoint_form(const char *path);
void free_other_form(struct other_form *other_form);

#endif
