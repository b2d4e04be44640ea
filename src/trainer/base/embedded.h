/* embedded.h - the files that travel inside the program, so that `./yard` runs from any folder and needs no download.
 *
 * The Makefile writes their text as string literals to build/embedded.c (src/make/embed.awk does it): the
 * OpenCL kernels of cl/, used when no cl/ folder is found at run time, and what --data stories and --data self read.
 */
#ifndef EMBEDDED_H
#define EMBEDDED_H

#include <stddef.h>

struct embedded_file {
    const char *name; /* "gemm.cl", without a folder; NULL ends the table */
    const char *text; /* 0-terminated */
    size_t size;      /* without the 0 */
};
extern const struct embedded_file embedded_kernels[]; /* cl/ *.cl, sorted by name */

extern const char embedded_stories[]; /* data/stories.txt, 0-terminated */

/* The project's README, kernels, sources and tutorials, sorted by path; each file follows a line `==== path ====`. */
extern const unsigned char embedded_text[]; /* also 0-terminated */
extern const size_t embedded_text_size;     /* without the 0 */

#endif
