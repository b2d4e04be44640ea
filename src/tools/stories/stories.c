/* stories.c - reads a grammar, tells stories by it, and knows how well they can be predicted.
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
 *     table hero  name  he           # a table and its columns; below, its rows
 *         Tom      he
 *         Old_Ann  she
 *     scene start                    # the first scene remembers nothing: every story begins there
 *         1  One day {hero} was sad.  -> end
 *     scene end hero                 # remembers which row of hero was drawn
 *         2  So {hero.he} sang.      -> end
 *         1  So {hero.he} slept./    -> start
 *
 * A choice is a weight, a phrase and the scene that follows.  {hero.he} is a cell of the row that the scene remembers;
 * if it remembers none, one is drawn, each equally likely; {hero} is the first column.  In a phrase _ is a blank and /
 * a line break.  It ends in a line break, or a blank is put behind it.
 *
 * A scene together with the rows that it remembers is a state of the chain.  States are made when they are reached.
 */
#include "stories.h"
#include "trainer/base/embedded.h"
#include "trainer/base/module.h"
#include "trainer/file/file.h"
#include "trainer/train/data.h"

#include <math.h>

enum { TABLES = 16, NO_ROW = 255, MOST_PHRASES = 100000, LONGEST_LINE = 1000, STORY_SEED = 1948 };

struct source_line {
    int number;
    const char **word; /* [n], and NULL behind them */
    size_t n;
};
struct block { /* a table: its head "hero name he", its rows; or a scene: "end hero", its choices */
    struct source_line head, *items;
    size_t n, cap;
};
struct blocks {
    struct block *block;
    size_t n, cap;
};
struct phrase { /* what a state says, and where that leads */
    char *bytes;
    size_t n;
    double share;
    size_t next;
};
struct state {
    const struct block *scene;
    unsigned char row[TABLES];
    size_t first, end; /* its phrases */
    double visits;     /* in a story, on average */
};
struct stories {
    const char *path;
    char *text; /* of the grammar, which `words` point into, and lines into these */
    const char **words;
    struct blocks tables, scenes;
    struct phrase *phrases;
    struct state *states;
    size_t n_phrases, cap_phrases, n_states, cap_states;
};

/* ---- reading --------------------------------------------------------------------------------------------------- */

#define refuse(s, line, format, ...) fail(EXIT_USAGE, "%s:%d: " format, (s)->path, (line).number, __VA_ARGS__)

/* The block whose name, the first word of its head, that is; `blocks->n`: there is none. */
static size_t find_block(const struct blocks *blocks, const char *name)
{
    size_t i = 0;
    while (i < blocks->n && strcmp(blocks->block[i].head.word[0], name) != 0)
        i++;
    return i;
}

static size_t need_table(const struct stories *s, struct source_line line, const char *name)
{
    const size_t t = find_block(&s->tables, name);
    if (t == s->tables.n)
        refuse(s, line, "there is no table '%s'", name);
    return t;
}

static void read_lines(struct stories *s)
{
    struct block *last = NULL;
    int number = 0;
    const char **words = s->words = allocate(strlen(s->text) + 2, sizeof *words);
    for (char *rest = s->text, *text; (text = strsep(&rest, "\n"));) {
        struct source_line line = {++number, words, 0};
        const bool indented = *text == ' ' || *text == '\t';
        for (char *word; (word = strtok_r(text, " \t\r", &text)) && *word != '#';)
            words[line.n++] = word;
        if (line.n == 0)
            continue;
        const char *last_word = words[line.n - 1];
        if (last_word + strlen(last_word) - words[0] > LONGEST_LINE)
            refuse(s, line, "a line can have %d bytes", LONGEST_LINE);
        words += line.n + 1;
        const bool table = strcmp(line.word[0], "table") == 0;
        if (indented && last)
            *APPEND(last->items, last->n, last->cap) = line;
        else if (!indented && line.n > 1 && (table || strcmp(line.word[0], "scene") == 0)) {
            struct blocks *to = table ? &s->tables : &s->scenes;
            last = APPEND(to->block, to->n, to->cap);
            last->head = (struct source_line){number, line.word + 1, line.n - 1};
        } else
            refuse(s, line, "expected 'table NAME COLUMN...' or 'scene NAME TABLE...', not '%s'", line.word[0]);
    }
}

static void check_heads(const struct stories *s)
{
    for (size_t k = 0; k < 2; k++) {
        const struct blocks *all = k ? &s->scenes : &s->tables;
        for (const struct block *b = all->block; b < all->block + all->n; b++) {
            const char **word = b->head.word;
            if (find_block(all, word[0]) < (size_t)(b - all->block))
                refuse(s, b->head, "there is a %s of that name above", k ? "scene" : "table");
            if (b->n == 0)
                refuse(s, b->head, "there is nothing below '%s'", word[0]);
            for (size_t i = 1; k && i < b->head.n; i++)
                need_table(s, b->head, word[i]);
            for (size_t i = 0; !k && i < b->n; i++)
                if (b->items[i].n != b->head.n - 1)
                    refuse(s, b->items[i], "expected a word for each column of '%s'; write _ for a blank in a word",
                           word[0]);
            if (b->n >= NO_ROW || all->n > (k ? MOST_PHRASES : TABLES))
                refuse(s, b->head, "there can be %d tables, and %d lines below the head of a table or scene", TABLES,
                       NO_ROW - 1);
        }
    }
    if (s->scenes.n == 0 || s->scenes.block[0].head.n > 1)
        fail(EXIT_USAGE,
             "%s has no first scene that remembers nothing; data/stories.txt shows how a grammar is written", s->path);
}

/* ---- from scenes to states ------------------------------------------------------------------------------------- */

/* The state of scene `name` with what it remembers of `row`, made when it is not there. */
static size_t reach(struct stories *s, struct source_line from, const char *name, const unsigned char *row)
{
    const size_t found = find_block(&s->scenes, name);
    if (found == s->scenes.n)
        refuse(s, from, "there is no scene '%s'", name);
    struct state wanted = {.scene = &s->scenes.block[found]};
    for (size_t t = 0; t < s->tables.n; t++) {
        const char *table = s->tables.block[t].head.word[0];
        const bool remembered = choice_number(wanted.scene->head.word + 1, table) >= 0;
        wanted.row[t] = remembered ? row[t] : NO_ROW;
        if (remembered && row[t] == NO_ROW)
            refuse(s, from, "scene '%s' remembers '%s', which is neither remembered nor drawn here", name, table);
    }
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].scene == wanted.scene && memcmp(s->states[i].row, wanted.row, TABLES) == 0)
            return i;
    *APPEND(s->states, s->n_states, s->cap_states) = wanted;
    return s->n_states - 1;
}

/* The phrases of a choice: one for each row of the tables that it draws.  `done` is what its text begins with, `rest`
 * what follows, with fields. */
static void fill(struct stories *s, struct source_line from, const char *done, const char *rest, const char *next,
                 unsigned char *row, double share)
{
    const char *open = strchr(rest, '{'), *close = open ? strchr(open, '}') : NULL;
    if (!open) {
        const size_t there = reach(s, from, next, row);
        char *bytes = format_string("%s%s", done, rest);
        append_text(&bytes, "%s", *bytes && bytes[strlen(bytes) - 1] == '/' ? "" : " ");
        for (char *c = bytes; *c; c++)
            *c = *c == '_' ? ' ' : *c == '/' ? '\n' : *c;
        if (s->n_phrases == MOST_PHRASES)
            refuse(s, from, "with this the grammar has over %d phrases: let its scenes remember less", MOST_PHRASES);
        *APPEND(s->phrases, s->n_phrases, s->cap_phrases) = (struct phrase){bytes, strlen(bytes), share, there};
        return;
    }
    if (!close)
        refuse(s, from, "'%s' has no }", open);
    char *name = format_string("%.*s", (int)(close - open) - 1, open + 1), *dot = strchr(name, '.');
    if (dot)
        *dot = '\0';
    const size_t t = need_table(s, from, name);
    const struct block *table = &s->tables.block[t];
    const int column = dot ? choice_number(table->head.word + 1, dot + 1) : 0;
    if (column < 0)
        refuse(s, from, "table '%s' has no column '%s'", name, dot + 1);
    free(name);
    const bool drawn = row[t] == NO_ROW;
    for (size_t r = drawn ? 0 : row[t], end = drawn ? table->n : r + 1; r < end; r++) {
        char *more = format_string("%s%.*s%s", done, (int)(open - rest), rest, table->items[r].word[column]);
        row[t] = (unsigned char)r;
        fill(s, from, more, close + 1, next, row, drawn ? share / (double)table->n : share);
        free(more);
    }
    if (drawn)
        row[t] = NO_ROW;
}

ORDER(by_bytes, struct phrase, strcmp(a->bytes, b->bytes))

/* The phrases of state i, in the order of their bytes. */
static void expand(struct stories *s, size_t i)
{
    const struct block *scene = s->states[i].scene;
    const size_t first = s->n_phrases;
    double all = 0;
    unsigned char row[TABLES];
    memcpy(row, s->states[i].row, TABLES);
    for (const struct source_line *l = scene->items; l < scene->items + scene->n; l++) {
        char *end, *phrase = NULL;
        const double weight = strtod(l->word[0], &end);
        if (l->n < 4 || *end || !(weight > 0 && weight < 1e6) || strcmp(l->word[l->n - 2], "->") != 0)
            refuse(s, *l, "expected 'WEIGHT PHRASE -> SCENE', not '%s ...'", l->word[0]);
        for (size_t k = 1; k < l->n - 2; k++)
            append_text(&phrase, k > 1 ? " %s" : "%s", l->word[k]);
        fill(s, *l, "", phrase, l->word[l->n - 1], row, weight);
        all += weight;
        free(phrase);
    }
    s->states[i].first = first;
    s->states[i].end = s->n_phrases;
    for (size_t p = first; p < s->n_phrases; p++)
        s->phrases[p].share /= all;
    SORT(s->phrases + first, s->n_phrases - first, by_bytes);
    for (struct phrase *p = s->phrases + first + 1; p < s->phrases + s->n_phrases; p++)
        if (strncmp(p[-1].bytes, p->bytes, p[-1].n) == 0)
            refuse(s, scene->head,
                   "this scene can say \"%s\", and also \"%s\": where one phrase begins another, nobody can tell which "
                   "it was",
                   make_printable(p[-1].bytes, false), make_printable(p->bytes, false));
}

/* How often a story comes to each state.  One story sets out from the first state; what comes back to it has ended. */
static void count_visits(struct stories *s)
{
    double *now = allocate(s->n_states, sizeof *now), *next = allocate(s->n_states, sizeof *next), left = 1;
    now[0] = 1;
    for (int round = 0; left > 1e-15 && round < 100000; round++) {
        left = 0;
        for (size_t i = 0; i < s->n_states; i++) {
            s->states[i].visits += now[i];
            for (size_t p = s->states[i].first; now[i] > 0 && p < s->states[i].end; p++)
                next[s->phrases[p].next] += now[i] * s->phrases[p].share;
        }
        next[0] = 0;
        for (size_t i = 0; i < s->n_states; i++) {
            left += now[i] = next[i];
            next[i] = 0;
        }
    }
    free(now), free(next);
    if (left > 1e-15)
        fail(EXIT_USAGE,
             "%s: some stories never end, or are far too long: from every scene there must be a way back to the first",
             s->path);
}

struct stories *read_stories(const char *path, char *text)
{
    struct stories *s = allocate(1, sizeof *s);
    unsigned char row[TABLES];
    memset(row, NO_ROW, TABLES);
    s->path = path;
    s->text = text;
    read_lines(s);
    check_heads(s);
    reach(s, s->scenes.block[0].head, s->scenes.block[0].head.word[0], row);
    for (size_t i = 0; i < s->n_states; i++)
        expand(s, i);
    count_visits(s);
    return s;
}

void free_stories(struct stories *s)
{
    for (size_t i = 0; i < s->n_phrases; i++)
        free(s->phrases[i].bytes);
    for (size_t i = 0; i < s->scenes.n; i++)
        free(s->scenes.block[i].items);
    for (size_t i = 0; i < s->tables.n; i++)
        free(s->tables.block[i].items);
    free(s->scenes.block), free(s->tables.block), free(s->phrases), free(s->states);
    free(s->text), free(s->words);
    free(s);
}

/* ---- telling --------------------------------------------------------------------------------------------------- */

double stories_rate(const struct stories *s)
{
    double nats = 0, bytes = 0;
    for (const struct state *from = s->states; from < s->states + s->n_states; from++)
        for (const struct phrase *p = s->phrases + from->first; p < s->phrases + from->end; p++) {
            nats -= from->visits * p->share * log(p->share);
            bytes += from->visits * p->share * (double)p->n;
        }
    return nats / bytes;
}

char *tell_stories(const struct stories *s, size_t n)
{
    char *text = allocate(n, 1);
    size_t state = 0, told = 0;
    for (uint64_t i = 0; told < n; i++) {
        double left = random_uniform(STORY_SEED, STREAM_STORY, 0, i);
        size_t p = s->states[state].first;
        while ((left -= s->phrases[p].share) >= 0 && p + 1 < s->states[state].end)
            p++;
        memcpy(text + told, s->phrases[p].bytes, MIN(s->phrases[p].n, n - told));
        told += s->phrases[p].n;
        state = s->phrases[p].next;
    }
    return text;
}

/* ---- the floor: the forward algorithm -------------------------------------------------------------------------- */

/* Where a reader may be: this byte of a phrase comes next, with that probability. */
struct spot {
    size_t phrase, at;
    double weight;
};
struct belief {
    struct spot *places;
    size_t n, cap;
    double total; /* of the weights */
};

static void add_place(struct belief *b, size_t phrase, size_t at, double weight)
{
    *APPEND(b->places, b->n, b->cap) = (struct spot){phrase, at, weight};
    b->total += weight;
}

/* `to` becomes what is believed once `byte` was read: places where it is not the next are out.  Returns its probability
 * before.  sum: (states) zeros; mass that enters a state is summed first, so that each of its phrases comes once. */
static double read_byte(const struct stories *s, const struct belief *from, unsigned char byte, struct belief *to,
                        double *sum)
{
    to->n = 0;
    to->total = 0;
    for (const struct spot *p = from->places; p < from->places + from->n; p++) {
        const struct phrase *phrase = &s->phrases[p->phrase];
        if ((unsigned char)phrase->bytes[p->at] != byte)
            continue;
        if (p->at + 1 < phrase->n)
            add_place(to, p->phrase, p->at + 1, p->weight / from->total);
        else
            sum[phrase->next] += p->weight / from->total;
    }
    for (size_t i = 0; i < s->n_states; i++)
        if (sum[i] > 0) {
            for (size_t p = s->states[i].first; p < s->states[i].end; p++)
                add_place(to, p, 0, sum[i] * s->phrases[p].share);
            sum[i] = 0;
        }
    return to->total;
}

double stories_floor(const struct stories *s, const uint16_t *bytes, size_t n, int seq_len)
{
    struct belief any = {0}, *first = allocate(256, sizeof *first), two[2] = {0};
    double *sum = allocate(s->n_states, sizeof *sum), loss = 0;
    const size_t windows = n ? (n - 1) / (size_t)seq_len : 0;
    for (size_t i = 0; i < s->n_states; i++)
        for (size_t p = s->states[i].first; p < s->states[i].end; p++)
            for (size_t at = 0; at < s->phrases[p].n; at++)
                add_place(&any, p, at, s->states[i].visits * s->phrases[p].share);
    for (size_t w = 0; w < windows; w++) {
        const uint16_t *window = bytes + w * (size_t)seq_len;
        struct belief *now = &first[window[0] & 255];
        if (now->n == 0)
            read_byte(s, &any, (unsigned char)window[0], now, sum);
        for (int t = 1; t <= seq_len; t++, now = &two[t & 1])
            loss -= log(read_byte(s, now, (unsigned char)window[t], &two[(t + 1) & 1], sum));
    }
    for (int c = 0; c < 256; c++)
        free(first[c].places);
    free(two[0].places), free(two[1].places), free(any.places);
    free(first), free(sum);
    return loss / ((double)windows * seq_len);
}

/* ---- as --data stories ------------------------------------------------------------------------------------------- */

static void *open_stories(const char *file)
{
    if (!file)
        return read_stories("data/stories.txt", copy_string(embedded_stories));
    claim_input("--data", file);
    return read_stories(file, read_text(file));
}

static char *make_text(const void *stories, size_t n) { return tell_stories(stories, n); }
static double rate_of(const void *stories) { return stories_rate(stories); }
static double floor_of(const void *stories, const uint16_t *bytes, size_t n, int seq_len)
{
    return stories_floor(stories, bytes, n, seq_len);
}
static void close_stories(void *stories) { free_stories(stories); }

static const struct text_maker maker = {"stories", open_stories, make_text, rate_of, floor_of, close_stories};
const struct module module_stories = {.name = "stories", .text = &maker};
