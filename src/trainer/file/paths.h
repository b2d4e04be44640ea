/* paths.h - what is at a path: paths.c. */
#ifndef PATHS_H
#define PATHS_H

#include "trainer/base/base.h"

const char *last_part(const char *path);               /* the name after the last slash, within `path` */
char *join_path(const char *folder, const char *name); /* FOLDER/NAME; the caller frees it */
char *file_beside(const char *path, const char *name); /* NAME in the folder of PATH; the caller frees it */
bool is_folder(const char *path);
bool exists(const char *path); /* true also for a link that leads nowhere: opening it says so */

/* Makes `path` and its parents.  fail(EXIT_IO) names what is in the way. */
void make_folder(const char *path);

/* The path of the file itself, if `path` is a link to it, so that not the link, such as /dev/stdout, is replaced.  The
 * caller frees it. */
char *behind_links(const char *path);

#endif
