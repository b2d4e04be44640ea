/* past_cache.h - files without the page cache between them and the disk: past_cache.c. */
#ifndef PAST_CACHE_H
#define PAST_CACHE_H

#include "trainer/base/base.h"

enum { DIRECT_ALIGNMENT = 4096 }; /* bytes: such reads and writes need memory, offset and length of its multiples */
/* Opens the file so that what is read and written goes past the page cache.  NONE: the system or the file system
 * cannot do that.  The caller closes it. */
int open_past_cache(const char *path, int flags);

#endif
