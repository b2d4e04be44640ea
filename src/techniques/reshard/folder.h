/* folder.h - a folder that appears whole.  Implemented in folder.c. */
#ifndef FOLDER_H
#define FOLDER_H

#include "trainer/file/file.h"

/* A folder that is being written: its files go, each by a writer, into `<path>.tmp-<pid>`, which publishing
 * renames.  A folder of that name is replaced: the two change places in one go where the system can do that, else the
 * new one is whole as `<path>.new` before the old one goes. */
struct folder {
    char *path, *temporary;
    char **files; /* the paths that file_in() gave out: a clean-up removes these files */
    size_t n, cap;
    struct cleanup cleanup;
};
/* Makes the temporary folder, for at most most_files files.  publish_folder() gives it its name.  What the system
 * refuses ends the program (EXIT_IO) in both, and then the temporary folder is removed. */
struct folder *open_folder(const char *path, size_t most_files);
/* The path under which to write this file of the folder.  It is the folder's, and lives until publish_folder(). */
const char *file_in(struct folder *folder, const char *name);
/* Gives the folder its name, and frees `folder`. */
void publish_folder(struct folder *folder);
/* Renames the folder, so that it is gone at once; then removes the files in it that yard writes, one by one.  Other
 * files stay, in `<path>.kept-<pid>`, and a warning says so.  A link to a folder is removed, what it leads to stays. */
void remove_folder(const char *path);
/* Removes the folders `<begin>*.tmp-<pid>` in `parent` of processes that are no more. */
void remove_stray_folders(const char *parent, const char *begin);

#endif
