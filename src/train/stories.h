/* stories.h - a text whose best possible loss is known: stories drawn from a grammar, data/stories.txt or one's own.
 *
 * A grammar is a Markov chain.  A *scene* has choices, each a phrase and the scene that follows, and remembers rows of
 * tables, such as the hero's name.  What phrase comes next depends on the scene and on what it remembers, and on
 * nothing else; no phrase of a scene begins another one, so a reader always knows where the chain is.  Therefore
 *
 *     rate = sum over scenes of visits * entropy of its choice / sum of visits * mean length of its phrases
 *
 * in nats per byte, exactly (Shannon, "A Mathematical Theory of Communication", 1948, section 7).  No model can have a
 * lower loss on the long run.  A model that sees windows of T bytes begins somewhere within a phrase and must first
 * find out where it is; the best that it can do is the *floor*, by the forward algorithm (Rabiner 1989).
 */
#ifndef STORIES_H
#define STORIES_H

#include "../base/base.h"

struct stories;

/* `text` is that of a grammar, and belongs to what is returned; messages call it `path`.  Ends the program with a
 * sentence when it is none, or when its entropy could not be told. */
struct stories *read_stories(const char *path, char *text);
void free_stories(struct stories *s);
/* Nats per byte. */
double stories_rate(const struct stories *s);
/* n bytes of stories, the same ones every time.  The caller frees them. */
char *tell_stories(const struct stories *s, size_t n);
/* Mean loss, in nats per byte, of the best model on windows of `seq_len` bytes side by side in (n) bytes of stories: it
 * is told the first byte and predicts those behind it, as validation does. */
double stories_floor(const struct stories *s, const uint16_t *bytes, size_t n, int seq_len);

#endif
