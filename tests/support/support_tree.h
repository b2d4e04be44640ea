/* support_tree.h - a folder on a disk that may lose its power: what was changed in it and not synced is then there, in
 * part, or not.
 *
 *     struct tree *tree = new_tree();
 *     apply_call(tree, &call);                       what a program does to the folder, one call after another
 *     cut_tree(tree, &draws, path);                  the power goes: the folder `path` gets what the disk then has
 *     free_tree(tree);
 *
 * Of what was written to a file and not synced, the disk has what cut_file() of support_disk.h draws.  A new name, a
 * name that is gone, and two names that a call changes at once, are changes of the folder that holds them: the sync of
 * that folder makes them sure, and of those that are not sure the disk has any.
 */
#ifndef SUPPORT_TREE_H
#define SUPPORT_TREE_H

#include "support.h"

enum call_kind {
    CALL_CREATE, /* makes a file */
    CALL_MKDIR,  /* makes a folder */
    CALL_WRITE,  /* writes to the end of a file */
    CALL_SYNC,   /* brings a file, or a folder's names, to the disk */
    CALL_REMOVE, /* takes a name away, of a file or of a folder */
    CALL_RENAME,
    CALL_EXCHANGE, /* two names change places */
};

/* Paths are below the tree's folder, as in "step-3/weights"; "" is that folder itself. */
struct call {
    enum call_kind kind;
    const char *path;
    const char *new_path; /* of CALL_RENAME, and the second name of CALL_EXCHANGE: both are in the folder of `path` */
    const char *bytes;    /* n of them: what CALL_WRITE writes */
    size_t n;
};

struct tree *new_tree(void);
void apply_call(struct tree *tree, const struct call *call);

/* path: a folder that is not there yet.  A tree is cut once. */
void cut_tree(struct tree *tree, struct draws *draws, const char *path);
void free_tree(struct tree *tree);

#endif
