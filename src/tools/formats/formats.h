/* formats.h - files of other programs: named for what they say that they are, with the way on. */
#ifndef FORMATS_H
#define FORMATS_H

#include "trainer/file/file.h"

const struct file_kind *kind_of_others(const struct glimpse *glimpse); /* data_files.c; NULL: its kind is not known */

#endif
