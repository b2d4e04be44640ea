/* stories.h - a text whose best possible loss is known. */
#ifndef STORIES_H
#define STORIES_H

#include <stddef.h>
#include <stdint.h>

struct stories;

/* ---- grammar.c --------------------------------------------------------------------------------------------------- */

/* `text` is that of a grammar, and belongs to what is returned; messages call it `path`.  A text that is no grammar, or
 * one whose entropy could not be told, ends the program with a sentence. */
struct stories *read_stories(const char *path, char *text);
void free_stories(struct stories *stories);

/* ---- stories.c --------------------------------------------------------------------------------------------------- */

/* Nats per byte. */
double stories_rate(const struct stories *stories);

/* n bytes of stories, the same ones every time.  The caller frees them. */
char *tell_stories(const struct stories *stories, size_t n);

/* Mean loss, in nats per byte, of the best model on windows of `seq_len` bytes side by side in (n) bytes of stories: it
 * is told the first byte and predicts those after it, as validation does. */
double stories_floor(const struct stories *stories, const uint16_t *bytes, size_t n, int seq_len);

#endif
