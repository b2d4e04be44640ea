/* folder.h - a folder that appears whole. */
#ifndef FOLDER_H
#define FOLDER_H

#include "trainer/file/file.h"

/* A folder that appears whole: its files are written, each by a writer, into `<path>.tmp-<pid>`, which publishing
 * renames.  A folder of that name is replaced: the two change places in one go where the system can do that, else the
 * new one is whole as `<path>.new` before the old one goes. */
struct folder {
    char *path, *temporary;
    char **files; /* that were announced: a clean-up removes them */
    size_t n, cap;
    struct cleanup cleanup;
};
struct folder *open_folder(const char *path, size_t most_files);
const char *file_in(struct folder *f, const char *name); /* its path, to be written */
void publish_folder(struct folder *f);                   /* frees f */
/* It is gone at once, by a rename; then the files that we write are removed, one by one.  What else it holds stays, in
 * `<path>.kept-<pid>`, and that is said.  Of a link to one the link goes. */
void remove_folder(const char *path);
/* Remove the folders `<begin>*.tmp-<pid>` in `parent` of processes that are no more. */
void remove_stray_folders(const char *parent, const char *begin);

#endif
