/* stories.c - tells stories by a grammar, and knows how well they can be predicted.
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
 *
 * grammar.c reads the grammar, data/stories.txt for one, and makes the chain.
 */
#include "grammar.h"
#include "trainer/base/additions.h"
#include "trainer/base/embedded.h"
#include "trainer/data/data.h"
#include "trainer/file/file.h"

#include <math.h>

enum { STORY_SEED = 1948, BYTE_VALUES = 256 };

/* ---- telling ----------------------------------------------------------------------------------------------------- */

double stories_rate(const struct stories *stories)
{
    double nats = 0, bytes = 0;
    for (const struct state *from = stories->states; from < stories->states + stories->n_states; from++)
        for (size_t i = from->first; i < from->end; i++) {
            const struct phrase *phrase = &stories->phrases[i];
            nats -= from->visits * phrase->share * log(phrase->share);
            bytes += from->visits * phrase->share * (double)phrase->n;
        }
    return nats / bytes;
}

/* The phrase that a state says, drawn by a number of [0, 1). */
static const struct phrase *draw_phrase(const struct stories *stories, const struct state *state, double drawn)
{
    size_t p = state->first;
    double left = drawn - stories->phrases[p].share;
    while (left >= 0 && p + 1 < state->end) {
        p++;
        left -= stories->phrases[p].share;
    }
    return &stories->phrases[p];
}

char *tell_stories(const struct stories *stories, size_t n)
{
    char *text = allocate(n, 1);
    size_t state = 0, told = 0;
    for (uint64_t i = 0; told < n; i++) {
        double drawn = random_uniform(STORY_SEED, STREAM_STORY, 0, i);
        const struct phrase *phrase = draw_phrase(stories, &stories->states[state], drawn);
        memcpy(text + told, phrase->bytes, MIN(phrase->n, n - told));
        told += phrase->n;
        state = phrase->next;
    }
    return text;
}

/* ---- the floor: the forward algorithm ---------------------------------------------------------------------------- */

/* A place in the grammar where a reader may be: this byte of a phrase comes next, with that probability. */
struct reader_place {
    size_t phrase, at;
    double weight;
};
struct belief {
    struct reader_place *places;
    size_t n, cap;
    double total; /* sum of the weights */
};

static void add_place(struct belief *belief, size_t phrase, size_t at, double weight)
{
    GROW(belief->places, belief->cap, belief->n + 1);
    belief->places[belief->n++] = (struct reader_place){.phrase = phrase, .at = at, .weight = weight};
    belief->total += weight;
}

/* Adds the places at the beginning of a state, where the story is with the probability `likely`. */
static void add_state(const struct stories *stories, struct belief *belief, const struct state *state, double likely)
{
    for (size_t p = state->first; p < state->end; p++)
        add_place(belief, p, 0, likely * stories->phrases[p].share);
}

/* `to` becomes what is believed when `byte` has been read: only places where this byte came next remain.  Returns how
 * likely the byte was before.  sum: (states), zeros before and after.  In it the probabilities of all ways into a state
 * are summed, so that each phrase of the state gets one place. */
static double read_byte(const struct stories *stories, const struct belief *from, unsigned char byte, struct belief *to,
                        double *sum)
{
    to->n = 0;
    to->total = 0;
    for (const struct reader_place *place = from->places; place < from->places + from->n; place++) {
        const struct phrase *phrase = &stories->phrases[place->phrase];
        if ((unsigned char)phrase->bytes[place->at] != byte)
            continue;
        if (place->at + 1 < phrase->n)
            add_place(to, place->phrase, place->at + 1, place->weight / from->total);
        else
            sum[phrase->next] += place->weight / from->total;
    }
    for (size_t i = 0; i < stories->n_states; i++)
        if (sum[i] > 0) {
            add_state(stories, to, &stories->states[i], sum[i]);
            sum[i] = 0;
        }
    return to->total;
}

/* A reader's belief before the first byte: any place is possible, and as likely as stories come there. */
static struct belief believe_any(const struct stories *stories)
{
    struct belief any = {.n = 0};
    for (const struct state *state = stories->states; state < stories->states + stories->n_states; state++)
        for (size_t p = state->first; p < state->end; p++)
            for (size_t at = 0; at < stories->phrases[p].n; at++)
                add_place(&any, p, at, state->visits * stories->phrases[p].share);
    return any;
}

struct window_reader {        /* what is used again for every window */
    struct belief beliefs[2]; /* after a byte, and after the next one, in turn */
    double *sum;              /* [states], for read_byte() */
    double loss;              /* nats, of all bytes so far */
};

/* Adds the losses of a window's bytes from its second one on.  After the first one the reader believes `first`.
 * window: (seq_len + 1) bytes. */
static void read_window(const struct stories *stories, struct window_reader *reader, const struct belief *first,
                        const uint16_t *window, int seq_len)
{
    const struct belief *now = first;
    for (int t = 1; t <= seq_len; t++) {
        struct belief *next = &reader->beliefs[t % 2];
        reader->loss -= log(read_byte(stories, now, (unsigned char)window[t], next, reader->sum));
        now = next;
    }
}

double stories_floor(const struct stories *stories, const uint16_t *bytes, size_t n, int seq_len)
{
    struct belief any = believe_any(stories);
    struct belief *first = allocate(BYTE_VALUES, sizeof *first); /* by the first byte: what is believed after it */
    struct window_reader reader = {.sum = allocate(stories->n_states, sizeof *reader.sum)};
    size_t windows = n ? (n - 1) / (size_t)seq_len : 0;
    for (size_t w = 0; w < windows; w++) {
        const uint16_t *window = bytes + w * (size_t)seq_len;
        unsigned char byte = (unsigned char)window[0];
        if (first[byte].n == 0)
            read_byte(stories, &any, byte, &first[byte], reader.sum);
        read_window(stories, &reader, &first[byte], window, seq_len);
    }
    for (int byte = 0; byte < BYTE_VALUES; byte++)
        free(first[byte].places);
    free(reader.beliefs[0].places);
    free(reader.beliefs[1].places);
    free(any.places);
    free(first);
    free(reader.sum);
    return reader.loss / ((double)windows * seq_len);
}

/* ---- as --data stories ------------------------------------------------------------------------------------------- */

static void *open_stories(const char *file)
{
    if (!file)
        return read_stories("data/stories.txt", copy_string(embedded_stories));
    claim_input("--data", file);
    refuse_if_folder(file, "a file of stories such as data/stories.txt");
    return read_stories(file, read_text(file));
}

static char *make_text(const void *stories, size_t n) { return tell_stories(stories, n); }
static double nats_per_byte(const void *stories) { return stories_rate(stories); }

static double floor_of(const void *stories, const uint16_t *bytes, size_t n, int seq_len)
{
    return stories_floor(stories, bytes, n, seq_len);
}

static void close_stories(void *stories) { free_stories(stories); }

static const struct text_maker maker = {
    .name = "stories",
    .open = open_stories,
    .make = make_text,
    .nats_per_byte = nats_per_byte,
    .floor = floor_of,
    .close = close_stories,
};
static const struct training_parts training = {.text = &maker};
const struct module module_stories = {
    .name = "stories",
    .training = &training,
};
