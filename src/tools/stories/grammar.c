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

/* ---- reading ----------------------------------------------------------------------------------------------------- */

#define fail_in_line(s, line, format, ...) fail(EXIT_USAGE, "%s:%d: " format, (s)->path, (line).number, __VA_ARGS__)

/* The number of the block that has that name, the first word of its head; `blocks->n`: there is none. */
static size_t find_block(const struct blocks *blocks, const char *name)
{
    size_t i = 0;
    while (i < blocks->n && strcmp(blocks->items[i].head.word[0], name) != 0)
        i++;
    return i;
}

/* The number of the table that has that name.  Ends the program where there is none. */
static size_t expect_table(const struct stories *stories, struct source_line line, const char *name)
{
    size_t t = find_block(&stories->tables, name);
    if (t == stories->tables.n)
        fail_in_line(stories, line, "there is no table \"%s\"", name);
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

static void refuse_if_too_long(const struct stories *stories, struct source_line line)
{
    const char *last = line.word[line.n - 1];
    if (last + strlen(last) - line.word[0] > LONGEST_LINE)
        fail_in_line(stories, line, "a line can have %d bytes at most: cut its phrase into two scenes", LONGEST_LINE);
}

/* Ends the program, since the line had to begin a table or a scene. */
static _Noreturn void fail_in_head(const struct stories *stories, struct source_line line)
{
    fail_in_line(stories, line, "expected `table NAME COLUMN...` or `scene NAME TABLE...`, not \"%s\"", line.word[0]);
}

static void append_item(struct block *block, struct source_line line)
{
    GROW(block->lines, block->cap, block->n + 1);
    block->lines[block->n++] = line;
}

/* The new table or scene that the line begins. */
static struct block *begin_block(struct stories *stories, struct source_line line)
{
    struct blocks *blocks = NULL;
    if (strcmp(line.word[0], "table") == 0)
        blocks = &stories->tables;
    if (strcmp(line.word[0], "scene") == 0)
        blocks = &stories->scenes;
    if (!blocks || line.n == 1)
        fail_in_head(stories, line);
    GROW(blocks->items, blocks->cap, blocks->n + 1);
    struct block *block = &blocks->items[blocks->n++];
    *block = (struct block){.head = {.number = line.number, .word = line.word + 1, .n = line.n - 1}};
    return block;
}

/* Cuts the text into lines.  One that is not indented begins a table or scene; one that is goes to the last of
 * these. */
static void cut_into_lines(struct stories *stories)
{
    struct block *last = NULL;
    int number = 0;
    char *rest = stories->text;
    stories->words = allocate(strlen(stories->text) + 2, sizeof *stories->words);
    const char **free_words = stories->words;
    while (rest) {
        char *text = strsep(&rest, "\n");
        bool indented = *text == ' ' || *text == '\t';
        number++;
        struct source_line line = {.number = number, .word = free_words};
        split_words(&line, text);
        if (line.n == 0)
            continue;
        refuse_if_too_long(stories, line);
        free_words += line.n + 1;
        if (!indented)
            last = begin_block(stories, line);
        else if (last)
            append_item(last, line);
        else
            fail_in_head(stories, line);
    }
}

static void refuse_if_repeated_or_empty(const struct stories *stories, const struct blocks *all,
                                        const struct block *block, const char *noun)
{
    const char *name = block->head.word[0];
    if (find_block(all, name) < (size_t)(block - all->items))
        fail_in_line(stories, block->head, "there is a %s of that name above; give this one another name", noun);
    if (block->n == 0)
        fail_in_line(stories, block->head, "there is nothing below \"%s\"; add indented lines", name);
}

static void refuse_if_too_many(const struct stories *stories, const struct blocks *all, const struct block *block,
                               size_t most)
{
    if (block->n >= NO_ROW || all->n > most)
        fail_in_line(stories, block->head, "there can be %d tables, and %d lines below the head of a table or scene",
                     TABLES, NO_ROW - 1);
}

static void refuse_if_blocks_are_wrong(const struct stories *stories)
{
    for (size_t k = 0; k < stories->tables.n; k++) {
        const struct block *block = &stories->tables.items[k];
        refuse_if_repeated_or_empty(stories, &stories->tables, block, "table");
        for (size_t i = 0; i < block->n; i++)
            if (block->lines[i].n != block->head.n - 1)
                fail_in_line(stories, block->lines[i],
                             "expected a word for each column of \"%s\"; write _ for a blank in a word",
                             block->head.word[0]);
        refuse_if_too_many(stories, &stories->tables, block, TABLES);
    }
    for (size_t k = 0; k < stories->scenes.n; k++) {
        const struct block *block = &stories->scenes.items[k];
        refuse_if_repeated_or_empty(stories, &stories->scenes, block, "scene");
        for (size_t i = 1; i < block->head.n; i++)
            expect_table(stories, block->head, block->head.word[i]);
        refuse_if_too_many(stories, &stories->scenes, block, MOST_PHRASES);
    }
    if (stories->scenes.n == 0 || stories->scenes.items[0].head.n > 1)
        fail(EXIT_USAGE,
             "%s has no first scene that remembers nothing; data/stories.txt shows how a grammar is written",
             stories->path);
}

/* ---- from scenes to states --------------------------------------------------------------------------------------- */

/* The number of the state of scene `name` that has the part of `row` which this scene remembers.  The state is made if
 * it is new. */
static size_t reach_state(struct stories *stories, struct source_line from, const char *name, const unsigned char *row)
{
    size_t found = find_block(&stories->scenes, name);
    if (found == stories->scenes.n)
        fail_in_line(stories, from, "there is no scene \"%s\"", name);
    struct state wanted = {.scene = &stories->scenes.items[found]};
    for (size_t t = 0; t < stories->tables.n; t++) {
        const char *table = stories->tables.items[t].head.word[0];
        bool remembered = choice_number(wanted.scene->head.word + 1, table) >= 0;
        wanted.row[t] = remembered ? row[t] : NO_ROW;
        if (remembered && row[t] == NO_ROW)
            fail_in_line(stories, from, "scene \"%s\" remembers \"%s\", which is neither remembered nor drawn here",
                         name, table);
    }
    for (size_t i = 0; i < stories->n_states; i++)
        if (stories->states[i].scene == wanted.scene && memcmp(stories->states[i].row, wanted.row, TABLES) == 0)
            return i;
    GROW(stories->states, stories->cap_states, stories->n_states + 1);
    stories->states[stories->n_states++] = wanted;
    return stories->n_states - 1;
}

/* A choice whose phrases are being made. */
struct choice {
    struct source_line line;
    const char *next;          /* the scene that follows */
    unsigned char row[TABLES]; /* by table: the row that is remembered or drawn, or NO_ROW */
};

/* Adds a phrase, whose fields are filled in, and reaches the state that follows it. */
static void add_phrase(struct stories *stories, const struct choice *choice, const char *text, double share)
{
    size_t next = reach_state(stories, choice->line, choice->next, choice->row);
    bool breaks = ends_with(text, "/");
    char *bytes = format_string(breaks ? "%s" : "%s ", text);
    for (char *c = bytes; *c; c++) {
        if (*c == '_')
            *c = ' ';
        else if (*c == '/')
            *c = '\n';
    }
    if (stories->n_phrases == MOST_PHRASES)
        fail_in_line(stories, choice->line, "with this the grammar has over %d phrases: let its scenes remember less",
                     MOST_PHRASES);
    GROW(stories->phrases, stories->cap_phrases, stories->n_phrases + 1);
    stories->phrases[stories->n_phrases++] =
        (struct phrase){.bytes = bytes, .n = strlen(bytes), .share = share, .next = next};
}

/* Finds the table and the column of a field; `open` is its {, `close` its }. */
static size_t find_field(const struct stories *stories, struct source_line line, const char *open, const char *close,
                         int *column)
{
    char *name = format_string("%.*s", (int)(close - open) - 1, open + 1);
    char *dot = strchr(name, '.');
    if (dot)
        *dot = '\0';
    size_t t = expect_table(stories, line, name);
    *column = 0;
    if (dot)
        *column = choice_number(stories->tables.items[t].head.word + 1, dot + 1);
    if (*column < 0)
        fail_in_line(stories, line, "table \"%s\" has no column \"%s\"", name, dot + 1);
    free(name);
    return t;
}

/* Adds the phrases of a choice: one for each row of the tables that it draws.  `done` is the part of the text whose
 * fields are filled in already, `rest` the part after it.  share: how likely the state says what has been filled in. */
static void add_phrases(struct stories *stories, struct choice *choice, const char *done, const char *rest,
                        double share)
{
    const char *open = strchr(rest, '{');
    if (!open) {
        char *text = format_string("%s%s", done, rest);
        add_phrase(stories, choice, text, share);
        free(text);
        return;
    }
    const char *close = strchr(open, '}');
    if (!close)
        fail_in_line(stories, choice->line, "\"%s\" has no }", open);
    int column;
    size_t t = find_field(stories, choice->line, open, close, &column);
    const struct block *table = &stories->tables.items[t];
    unsigned char known = choice->row[t];
    for (size_t r = 0; r < table->n; r++) {
        if (known != NO_ROW && r != known)
            continue;
        char *more = format_string("%s%.*s%s", done, (int)(open - rest), rest, table->lines[r].word[column]);
        choice->row[t] = (unsigned char)r;
        add_phrases(stories, choice, more, close + 1, known == NO_ROW ? share / (double)table->n : share);
        free(more);
    }
    choice->row[t] = known;
}

static int by_bytes(const void *left, const void *right)
{
    const struct phrase *a = left;
    const struct phrase *b = right;
    return strcmp(a->bytes, b->bytes);
}

/* Adds the phrases of a choice, a line of the state's scene.  Returns its weight. */
static double add_choice(struct stories *stories, size_t state, struct source_line line)
{
    struct choice choice = {.line = line, .next = line.word[line.n - 1]};
    char *end, *text = NULL;
    double weight = strtod(line.word[0], &end);
    bool has_weight = !*end && weight > 0 && weight < 1e6;
    bool has_arrow = line.n >= 4 && strcmp(line.word[line.n - 2], "->") == 0;
    if (!has_weight || !has_arrow)
        fail_in_line(stories, line, "expected `WEIGHT PHRASE -> SCENE`, not \"%s ...\"", line.word[0]);
    for (size_t i = 1; i < line.n - 2; i++)
        append_text(&text, i > 1 ? " %s" : "%s", line.word[i]);
    memcpy(choice.row, stories->states[state].row, TABLES);
    add_phrases(stories, &choice, "", text, weight);
    free(text);
    return weight;
}

/* Phrases [first, end) of a scene are in the order of their bytes: none may begin the next one. */
static void refuse_if_one_begins_another(const struct stories *stories, const struct block *scene, size_t first,
                                         size_t end)
{
    for (size_t i = first + 1; i < end; i++) {
        const struct phrase *phrase = &stories->phrases[i - 1], *longer = &stories->phrases[i];
        if (strncmp(phrase->bytes, longer->bytes, phrase->n) == 0)
            fail_in_line(
                stories, scene->head,
                "this scene can say \"%s\", and also \"%s\": where one phrase begins another, it cannot be told "
                "which was said",
                make_printable(phrase->bytes, ONE_LINE), make_printable(longer->bytes, ONE_LINE));
    }
}

/* Makes the phrases of state i, in the order of their bytes. */
static void make_phrases(struct stories *stories, size_t i)
{
    const struct block *scene = stories->states[i].scene;
    size_t first = stories->n_phrases;
    double weight_sum = 0;
    for (size_t k = 0; k < scene->n; k++)
        weight_sum += add_choice(stories, i, scene->lines[k]);
    stories->states[i].first = first;
    stories->states[i].end = stories->n_phrases;
    for (size_t p = first; p < stories->n_phrases; p++)
        stories->phrases[p].share /= weight_sum;
    SORT(stories->phrases + first, stories->n_phrases - first, by_bytes);
    refuse_if_one_begins_another(stories, scene, first, stories->n_phrases);
}

/* For each state that may follow: adds to next[] the probability that the story goes there, which is `likely`, the
 * probability that it is in this state, times the phrase's share. */
static void follow_phrases(const struct stories *stories, const struct state *from, double likely, double *next)
{
    if (likely <= 0)
        return;
    for (size_t p = from->first; p < from->end; p++)
        next[stories->phrases[p].next] += likely * stories->phrases[p].share;
}

/* Counts how often a story visits each state.  It begins at the first state, and ends when it is back there. */
static void count_visits(struct stories *stories)
{
    size_t n = stories->n_states;
    double *now = allocate(n, sizeof *now);   /* by state: how likely the story is there after so many phrases */
    double *next = allocate(n, sizeof *next); /* by state: how likely the story is there one phrase later */
    double left = 1;                          /* how likely the story has not ended */
    now[0] = 1;
    for (int round = 0; left > ENDED && round < LONGEST_STORY; round++) {
        for (size_t i = 0; i < n; i++) {
            stories->states[i].visits += now[i];
            follow_phrases(stories, &stories->states[i], now[i], next);
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
             stories->path);
}

struct stories *read_stories(const char *path, char *text)
{
    struct stories *stories = allocate(1, sizeof *stories);
    unsigned char row[TABLES];
    memset(row, NO_ROW, TABLES);
    stories->path = path;
    stories->text = text;
    cut_into_lines(stories);
    refuse_if_blocks_are_wrong(stories);
    reach_state(stories, stories->scenes.items[0].head, stories->scenes.items[0].head.word[0], row);
    for (size_t i = 0; i < stories->n_states; i++)
        make_phrases(stories, i);
    count_visits(stories);
    return stories;
}

void free_stories(struct stories *stories)
{
    for (size_t i = 0; i < stories->n_phrases; i++)
        free(stories->phrases[i].bytes);
    for (size_t i = 0; i < stories->scenes.n; i++)
        free(stories->scenes.items[i].lines);
    for (size_t i = 0; i < stories->tables.n; i++)
        free(stories->tables.items[i].lines);
    free(stories->scenes.items);
    free(stories->tables.items);
    free(stories->phrases);
    free(stories->states);
    free(stories->text);
    free(stories->words);
    free(stories);
}
