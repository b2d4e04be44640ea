/* grammar.c - reads a grammar, and makes a Markov chain of it.
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
 * a line break.  It ends in a line break, or a blank is put after it.
 *
 * A scene together with the rows that it remembers is a state of the chain.  States are made when they are reached.
 */
#include "grammar.h"
#include "trainer/file/file.h"

enum { MOST_PHRASES = 100000, LONGEST_LINE = 1000 /* bytes */, LONGEST_STORY = 100000 /* phrases */ };
static const double ENDED = 1e-15; /* all stories but such a share have ended */

/* ---- reading --------------------------------------------------------------------------------------------------- */

#define refuse(s, line, format, ...) fail(EXIT_USAGE, "%s:%d: " format, (s)->path, (line).number, __VA_ARGS__)

/* The number of the block that has that name, the first word of its head; `blocks->n`: there is none. */
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

/* Cuts the text of a line into words, up to a comment. */
static void split_words(struct source_line *line, char *text)
{
    char *rest = NULL;
    char *word = strtok_r(text, " \t\r", &rest);
    while (word && *word != '#') {
        line->word[line->n++] = word;
        word = strtok_r(NULL, " \t\r", &rest);
    }
}

static void check_length(const struct stories *s, struct source_line line)
{
    const char *last = line.word[line.n - 1];
    if (last + strlen(last) - line.word[0] > LONGEST_LINE)
        refuse(s, line, "a line can have %d bytes at most: cut its phrase into two scenes", LONGEST_LINE);
}

/* The new table or scene that the line begins. */
static struct block *begin_block(struct stories *s, struct source_line line)
{
    struct blocks *blocks = NULL;
    if (strcmp(line.word[0], "table") == 0)
        blocks = &s->tables;
    if (strcmp(line.word[0], "scene") == 0)
        blocks = &s->scenes;
    if (!blocks || line.n == 1)
        refuse(s, line, "expected 'table NAME COLUMN...' or 'scene NAME TABLE...', not '%s'", line.word[0]);
    struct block *block = APPEND(blocks->block, blocks->n, blocks->cap);
    block->head = (struct source_line){.number = line.number, .word = line.word + 1, .n = line.n - 1};
    return block;
}

/* Cuts the text into lines.  One that is not indented begins a table or scene; one that is goes to the last of
 * these. */
static void read_lines(struct stories *s)
{
    struct block *last = NULL;
    int number = 0;
    char *rest = s->text;
    s->words = allocate(strlen(s->text) + 2, sizeof *s->words);
    const char **free_words = s->words;
    while (rest) {
        char *text = strsep(&rest, "\n");
        const bool indented = *text == ' ' || *text == '\t';
        number++;
        struct source_line line = {.number = number, .word = free_words};
        split_words(&line, text);
        if (line.n == 0)
            continue;
        check_length(s, line);
        free_words += line.n + 1;
        if (!indented)
            last = begin_block(s, line);
        else if (last)
            *APPEND(last->items, last->n, last->cap) = line;
        else
            refuse(s, line, "expected 'table NAME COLUMN...' or 'scene NAME TABLE...', not '%s'", line.word[0]);
    }
}

static void check_head(const struct stories *s, const struct blocks *all, const struct block *b, const char *noun)
{
    const char *name = b->head.word[0];
    if (find_block(all, name) < (size_t)(b - all->block))
        refuse(s, b->head, "there is a %s of that name above; give this one another name", noun);
    if (b->n == 0)
        refuse(s, b->head, "there is nothing below '%s'; add indented lines", name);
}

static void check_sizes(const struct stories *s, const struct blocks *all, const struct block *b, size_t most)
{
    if (b->n >= NO_ROW || all->n > most)
        refuse(s, b->head, "there can be %d tables, and %d lines below the head of a table or scene", TABLES,
               NO_ROW - 1);
}

static void check_blocks(const struct stories *s)
{
    for (const struct block *b = s->tables.block; b < s->tables.block + s->tables.n; b++) {
        check_head(s, &s->tables, b, "table");
        for (size_t i = 0; i < b->n; i++)
            if (b->items[i].n != b->head.n - 1)
                refuse(s, b->items[i], "expected a word for each column of '%s'; write _ for a blank in a word",
                       b->head.word[0]);
        check_sizes(s, &s->tables, b, TABLES);
    }
    for (const struct block *b = s->scenes.block; b < s->scenes.block + s->scenes.n; b++) {
        check_head(s, &s->scenes, b, "scene");
        for (size_t i = 1; i < b->head.n; i++)
            need_table(s, b->head, b->head.word[i]);
        check_sizes(s, &s->scenes, b, MOST_PHRASES);
    }
    if (s->scenes.n == 0 || s->scenes.block[0].head.n > 1)
        fail(EXIT_USAGE,
             "%s has no first scene that remembers nothing; data/stories.txt shows how a grammar is written", s->path);
}

/* ---- from scenes to states ------------------------------------------------------------------------------------- */

/* The number of the state of scene `name` that has the part of `row` which this scene remembers.  The state is made if
 * it is new. */
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

/* A choice whose phrases are being made. */
struct choice {
    struct source_line line;
    const char *next;          /* the scene that follows */
    unsigned char row[TABLES]; /* by table: the row that is remembered or drawn, or NO_ROW */
};

/* Adds a phrase, whose fields are filled in, and reaches the state that follows it. */
static void add_phrase(struct stories *s, const struct choice *choice, const char *text, double share)
{
    const size_t next = reach(s, choice->line, choice->next, choice->row);
    const bool breaks = ends_with(text, "/");
    char *bytes = format_string(breaks ? "%s" : "%s ", text);
    for (char *c = bytes; *c; c++) {
        if (*c == '_')
            *c = ' ';
        else if (*c == '/')
            *c = '\n';
    }
    if (s->n_phrases == MOST_PHRASES)
        refuse(s, choice->line, "with this the grammar has over %d phrases: let its scenes remember less",
               MOST_PHRASES);
    *APPEND(s->phrases, s->n_phrases, s->cap_phrases) =
        (struct phrase){.bytes = bytes, .n = strlen(bytes), .share = share, .next = next};
}

/* Finds the table and the column of a field; `open` is its {, `close` its }. */
static size_t find_field(const struct stories *s, struct source_line line, const char *open, const char *close,
                         int *column)
{
    char *name = format_string("%.*s", (int)(close - open) - 1, open + 1);
    char *dot = strchr(name, '.');
    if (dot)
        *dot = '\0';
    const size_t t = need_table(s, line, name);
    *column = 0;
    if (dot)
        *column = choice_number(s->tables.block[t].head.word + 1, dot + 1);
    if (*column < 0)
        refuse(s, line, "table '%s' has no column '%s'", name, dot + 1);
    free(name);
    return t;
}

/* Adds the phrases of a choice: one for each row of the tables that it draws.  `done` is the part of the text whose
 * fields are filled in already, `rest` the part after it.  share: how likely the state says what has been filled in. */
static void add_phrases(struct stories *s, struct choice *choice, const char *done, const char *rest, double share)
{
    const char *open = strchr(rest, '{');
    if (!open) {
        char *text = format_string("%s%s", done, rest);
        add_phrase(s, choice, text, share);
        free(text);
        return;
    }
    const char *close = strchr(open, '}');
    if (!close)
        refuse(s, choice->line, "'%s' has no }", open);
    int column;
    const size_t t = find_field(s, choice->line, open, close, &column);
    const struct block *table = &s->tables.block[t];
    const unsigned char known = choice->row[t];
    for (size_t r = 0; r < table->n; r++) {
        if (known != NO_ROW && r != known)
            continue;
        char *more = format_string("%s%.*s%s", done, (int)(open - rest), rest, table->items[r].word[column]);
        choice->row[t] = (unsigned char)r;
        add_phrases(s, choice, more, close + 1, known == NO_ROW ? share / (double)table->n : share);
        free(more);
    }
    choice->row[t] = known;
}

COMPARISON(by_bytes, struct phrase, strcmp(a->bytes, b->bytes))

/* Adds the phrases of a choice, a line of the state's scene.  Returns its weight. */
static double add_choice(struct stories *s, size_t state, struct source_line line)
{
    struct choice choice = {.line = line, .next = line.word[line.n - 1]};
    char *end, *text = NULL;
    const double weight = strtod(line.word[0], &end);
    if (line.n < 4 || *end || !(weight > 0 && weight < 1e6) || strcmp(line.word[line.n - 2], "->") != 0)
        refuse(s, line, "expected 'WEIGHT PHRASE -> SCENE', not '%s ...'", line.word[0]);
    for (size_t i = 1; i < line.n - 2; i++)
        append_text(&text, i > 1 ? " %s" : "%s", line.word[i]);
    memcpy(choice.row, s->states[state].row, TABLES);
    add_phrases(s, &choice, "", text, weight);
    free(text);
    return weight;
}

/* Phrases [first, end) of a scene are in the order of their bytes: none may begin the next one. */
static void refuse_beginnings(const struct stories *s, const struct block *scene, size_t first, size_t end)
{
    for (size_t i = first + 1; i < end; i++) {
        const struct phrase *p = &s->phrases[i - 1], *longer = &s->phrases[i];
        if (strncmp(p->bytes, longer->bytes, p->n) == 0)
            refuse(s, scene->head,
                   "this scene can say \"%s\", and also \"%s\": where one phrase begins another, nobody can tell which "
                   "it was",
                   make_printable(p->bytes, ONE_LINE), make_printable(longer->bytes, ONE_LINE));
    }
}

/* Makes the phrases of state i, in the order of their bytes. */
static void expand(struct stories *s, size_t i)
{
    const struct block *scene = s->states[i].scene;
    const size_t first = s->n_phrases;
    double all = 0; /* weights */
    for (size_t k = 0; k < scene->n; k++)
        all += add_choice(s, i, scene->items[k]);
    s->states[i].first = first;
    s->states[i].end = s->n_phrases;
    for (size_t p = first; p < s->n_phrases; p++)
        s->phrases[p].share /= all;
    SORT(s->phrases + first, s->n_phrases - first, by_bytes);
    refuse_beginnings(s, scene, first, s->n_phrases);
}

/* Adds to next[] how likely a story comes from this state, where it is with probability `likely`, to each other
 * state. */
static void follow_phrases(const struct stories *s, const struct state *from, double likely, double *next)
{
    if (likely <= 0)
        return;
    for (size_t p = from->first; p < from->end; p++)
        next[s->phrases[p].next] += likely * s->phrases[p].share;
}

/* Counts how often a story comes to each state.  It sets out from the first state; what comes back there has ended. */
static void count_visits(struct stories *s)
{
    const size_t n = s->n_states;
    double *now = allocate(n, sizeof *now);   /* by state: how likely the story is there after so many phrases */
    double *next = allocate(n, sizeof *next); /* by state: the same after one phrase more */
    double left = 1;                          /* how likely the story has not ended */
    now[0] = 1;
    for (int round = 0; left > ENDED && round < LONGEST_STORY; round++) {
        for (size_t i = 0; i < n; i++) {
            s->states[i].visits += now[i];
            follow_phrases(s, &s->states[i], now[i], next);
        }
        next[0] = 0;
        left = 0;
        for (size_t i = 0; i < n; i++) {
            left += next[i];
            now[i] = next[i];
            next[i] = 0;
        }
    }
    free(now);
    free(next);
    if (left > ENDED)
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
    check_blocks(s);
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
    free(s->scenes.block);
    free(s->tables.block);
    free(s->phrases);
    free(s->states);
    free(s->text);
    free(s->words);
    free(s);
}
