/* foreign.h - words and files of other programs: what they are, and the way on. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "trainer/base/additions.h"
#include "trainer/base/base.h"
#include "trainer/file/file.h"

extern const struct foreign_lookup foreign_lookup; /* known.c: words */

/* The kind of a file that is expected to be text or token numbers; NULL: it is not known. */
const struct file_kind *kind_of_others(const struct glimpse *glimpse); /* data_files.c */

extern const struct formats formats; /* models.c: files */

#endif
