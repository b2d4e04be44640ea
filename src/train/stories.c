/* stories.c - reads a grammar, tells stories by it, and knows how well they can be predicted.
 *
 *     table hero  name  he           # a table and its columns; below, its rows
 *         Tom  he
 *         Old_Ann  she               # _ stands for a blank
 *     scene start                    # the first scene remembers nothing: every story begins there
 *         1  One day {hero} was sad.  -> end
 *     scene end hero                 # remembers which row of hero was drawn
 *         2  So {hero.he} sang.      -> end
 *         1  So {hero.he} slept./    -> start
 *
 * A choice is a weight, a phrase and the scene that follows.  {hero.he} is a cell of the row that the scene remembers;
 * if it remembers none, one is drawn, each equally likely; {hero} is the first column.  A phrase ends in a blank, or in
 * line breaks, one for each / at its end.
 *
 * A scene together with the rows that it remembers is a state of the chain.  States are made when they are reached.
 */
#include "stories.h"

#include <math.h>

enum { TABLES = 16, COLUMNS = 8, NO_ROW = 255, MOST_PHRASES = 100000, STORY_SEED = 1948 };

struct table { /* of words: cells[row][column] */
    char *name, *columns[COLUMNS], *(*cells)[COLUMNS];
    size_t n_columns, n, cap;
};
struct choice {
    int line, weight;
    char *text, *next;
};
struct scene {
    int line;
    char *name;
    bool remembers[TABLES];
    struct choice *choices;
    size_t n, cap;
};
struct phrase { /* what a state says, and where that leads */
    char *bytes;
    size_t n;
    double share;
    size_t next;
};
struct state {
    const struct scene *scene;
    unsigned char row[TABLES];
    size_t first, end; /* its phrases */
    double visits;     /* in a story, on average */
};
struct stories {
    const char *path;
    char *text; /* of the grammar; all names and words below point into it */
    struct table tables[TABLES];
    struct scene *scenes;
    struct phrase *phrases;
    struct state *states;
    size_t n_tables, n_scenes, cap_scenes, n_phrases, cap_phrases, n_states, cap_states;
};

/* ---- reading --------------------------------------------------------------------------------------------------- */

#define refuse(s, line, format, ...) fail(EXIT_USAGE, "%s:%d: " format, (s)->path, (line), __VA_ARGS__)

/* The next word of a line that is cut up; NULL: none. */
static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t");
    size_t n = strcspn(word, " \t");
    *rest = word + n + (word[n] != '\0');
    word[n] = '\0';
    return n ? word : NULL;
}

static size_t need_table(const struct stories *s, int line, const char *name, size_t length)
{
    for (size_t t = 0; t < s->n_tables; t++)
        if (strlen(s->tables[t].name) == length && memcmp(s->tables[t].name, name, length) == 0)
            return t;
    refuse(s, line, "there is no table '%.*s' above", (int)length, name);
}

static const struct scene *find_scene(const struct stories *s, const char *name)
{
    for (size_t i = 0; i < s->n_scenes; i++)
        if (strcmp(s->scenes[i].name, name) == 0)
            return &s->scenes[i];
    return NULL;
}

static void read_table(struct stories *s, int line, char *rest)
{
    struct table *t = &s->tables[s->n_tables];
    if (s->n_tables == TABLES)
        refuse(s, line, "there can be %d tables", TABLES);
    t->name = next_word(&rest);
    for (char *word; (word = next_word(&rest)); t->columns[t->n_columns++] = word)
        if (t->n_columns == COLUMNS)
            refuse(s, line, "a table can have %d columns", COLUMNS);
    if (t->n_columns == 0)
        refuse(s, line, "expected 'table NAME COLUMN...', as in '%s'", "table hero name he");
    s->n_tables++;
}

static void read_row(struct stories *s, int line, char *rest)
{
    struct table *t = &s->tables[s->n_tables - 1];
    char *(*row)[COLUMNS] = APPEND(t->cells, t->n, t->cap);
    size_t n = 0;
    for (char *word; (word = next_word(&rest)); n++) {
        if (n < t->n_columns)
            (*row)[n] = word;
        for (char *c = word; (c = strchr(c, '_'));)
            *c = ' ';
    }
    if (n != t->n_columns)
        refuse(s, line, "table '%s' has %zu columns, but this row has %zu words; write _ for a blank within one",
               t->name, t->n_columns, n);
    if (t->n == NO_ROW)
        refuse(s, line, "a table can have %d rows", NO_ROW - 1);
}

static void read_scene(struct stories *s, int line, char *rest)
{
    char *name = next_word(&rest);
    if (!name || find_scene(s, name))
        refuse(s, line, "%s", name ? "there is a scene of that name above" : "expected 'scene NAME TABLE...'");
    struct scene *scene = APPEND(s->scenes, s->n_scenes, s->cap_scenes);
    *scene = (struct scene){.line = line, .name = name};
    for (char *word; (word = next_word(&rest));)
        scene->remembers[need_table(s, line, word, strlen(word))] = true;
    if (s->n_scenes == 1 && memchr(scene->remembers, true, TABLES))
        refuse(s, line, "the first scene, where every story begins, cannot remember '%s'", "a table");
}

static void read_choice(struct stories *s, int line, char *rest)
{
    struct scene *scene = &s->scenes[s->n_scenes - 1];
    char *arrow = strstr(rest, "->"), *weight = next_word(&rest), *next = arrow ? arrow + 2 : NULL;
    int64_t value;
    if (!arrow || arrow < rest || !parse_int(weight, &value) || value < 1 || value > 1000)
        refuse(s, line, "expected 'WEIGHT PHRASE -> SCENE' with a weight from 1 to %d", 1000);
    *arrow = '\0';
    *APPEND(scene->choices, scene->n, scene->cap) =
        (struct choice){.line = line, .weight = (int)value, .text = trim(rest), .next = trim(next)};
}

static void read_line(struct stories *s, int line, char *text, bool *in_table)
{
    const bool indented = *text == ' ' || *text == '\t';
    for (char *c = text; *c; c++)
        if (*c == '#' && (c == text || c[-1] == ' ' || c[-1] == '\t'))
            *c = '\0';
    text = trim(text);
    char *rest = text, *head = indented || !*text ? NULL : next_word(&rest);
    if (head && (*in_table = strcmp(head, "table") == 0))
        read_table(s, line, rest);
    else if (head && strcmp(head, "scene") == 0)
        read_scene(s, line, rest);
    else if (*text && (head || (!s->n_tables && !s->n_scenes)))
        refuse(s, line, "expected 'table NAME COLUMN...' or 'scene NAME TABLE...', not '%s'", text);
    else if (*text && *in_table)
        read_row(s, line, text);
    else if (*text)
        read_choice(s, line, text);
}

/* ---- from scenes to states ------------------------------------------------------------------------------------- */

/* The table and the column of the field that begins at `open`, a '{'; its end, behind the '}', is returned. */
static const char *read_field(const struct stories *s, int line, const char *open, size_t *table, size_t *column)
{
    const size_t length = strcspn(open + 1, "}"), name = strcspn(open + 1, ".}");
    if (!open[1 + length])
        refuse(s, line, "'%s' has no }", open);
    *table = need_table(s, line, open + 1, name);
    const struct table *t = &s->tables[*table];
    const char *wanted = open + 1 + name + 1;
    for (*column = 0; name < length; ++*column) {
        if (*column == t->n_columns)
            refuse(s, line, "table '%s' has no column '%.*s'", t->name, (int)(length - name - 1), wanted);
        const char *c = t->columns[*column];
        if (strlen(c) == length - name - 1 && memcmp(c, wanted, length - name - 1) == 0)
            break;
    }
    if (t->n == 0)
        refuse(s, line, "table '%s' has no rows", t->name);
    return open + 1 + length + 1;
}

/* The state of a scene with what is remembered of `row`, made when it is not there. */
static size_t reach(struct stories *s, const struct choice *c, const unsigned char *row)
{
    const struct scene *scene = find_scene(s, c->next);
    struct state wanted = {.scene = scene};
    if (!scene)
        refuse(s, c->line, "there is no scene '%s'", c->next);
    for (size_t t = 0; t < TABLES; t++) {
        wanted.row[t] = scene->remembers[t] ? row[t] : NO_ROW;
        if (scene->remembers[t] && row[t] == NO_ROW)
            refuse(s, c->line, "scene '%s' remembers '%s', which is neither remembered nor drawn here", scene->name,
                   s->tables[t].name);
    }
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].scene == scene && memcmp(s->states[i].row, wanted.row, TABLES) == 0)
            return i;
    *APPEND(s->states, s->n_states, s->cap_states) = wanted;
    return s->n_states - 1;
}

/* The phrases of a choice: one for each row of the tables that it draws. */
static void add_phrases(struct stories *s, const struct choice *c, unsigned char *row, double share)
{
    char *bytes = NULL;
    const char *from = c->text, *open;
    for (; (open = strchr(from, '{'));) {
        size_t table, column;
        const char *behind = read_field(s, c->line, open, &table, &column);
        const struct table *t = &s->tables[table];
        if (row[table] == NO_ROW) {
            for (size_t r = 0; r < t->n; r++) {
                row[table] = (unsigned char)r;
                add_phrases(s, c, row, share / (double)t->n);
            }
            row[table] = NO_ROW;
            free(bytes);
            return;
        }
        append_text(&bytes, "%.*s%s", (int)(open - from), from, t->cells[row[table]][column]);
        from = behind;
    }
    append_text(&bytes, "%s", from);
    size_t n = strlen(bytes);
    for (size_t i = n; i && bytes[i - 1] == '/'; i--)
        bytes[i - 1] = '\n';
    if (n && bytes[n - 1] != '\n')
        append_text(&bytes, " "), n++;
    if (n == 0 || s->n_phrases == MOST_PHRASES)
        refuse(s, c->line, "%s",
               n ? "with this the grammar has over 100000 phrases: let its scenes remember less"
                 : "a phrase needs a character");
    const size_t next = reach(s, c, row);
    *APPEND(s->phrases, s->n_phrases, s->cap_phrases) = (struct phrase){bytes, n, share, next};
}

ORDER(by_bytes, struct phrase, strcmp(a->bytes, b->bytes))

/* All states that can be reached, each with its phrases, in the order of their bytes. */
static void expand(struct stories *s)
{
    struct choice begin = {.line = 1, .next = s->scenes[0].name};
    unsigned char row[TABLES];
    memset(row, NO_ROW, TABLES);
    reach(s, &begin, row);
    for (size_t i = 0; i < s->n_states; i++) {
        const struct scene *scene = s->states[i].scene;
        const size_t first = s->n_phrases;
        double weights = 0;
        memcpy(row, s->states[i].row, TABLES);
        for (size_t c = 0; c < scene->n; c++)
            weights += scene->choices[c].weight;
        for (size_t c = 0; c < scene->n; c++)
            add_phrases(s, &scene->choices[c], row, scene->choices[c].weight / weights);
        if (scene->n == 0)
            refuse(s, scene->line, "scene '%s' has no choice", scene->name);
        s->states[i].first = first;
        s->states[i].end = s->n_phrases;
        SORT(s->phrases + first, s->n_phrases - first, by_bytes);
        for (struct phrase *p = s->phrases + first + 1; p < s->phrases + s->n_phrases; p++)
            if (memcmp(p[-1].bytes, p->bytes, MIN(p[-1].n, p->n)) == 0)
                refuse(s, scene->line,
                       "scene '%s' can say \"%s\", and also \"%s\": where one phrase begins another, nobody can tell "
                       "which it was",
                       scene->name, make_printable(p[-1].bytes, false), make_printable(p->bytes, false));
    }
}

/* How often a story comes to each state.  One story's worth sets out from the first state; what comes back to it has
 * ended. */
static void count_visits(struct stories *s)
{
    double *now = allocate(s->n_states, sizeof *now), *next = allocate(s->n_states, sizeof *next), left = 1;
    now[0] = 1;
    for (int round = 0; left > 1e-15 && round < 100000; round++) {
        memset(next, 0, s->n_states * sizeof *next);
        left = 0;
        for (size_t i = 0; i < s->n_states; i++) {
            s->states[i].visits += now[i];
            for (size_t p = s->states[i].first; now[i] > 0 && p < s->states[i].end; p++)
                next[s->phrases[p].next] += now[i] * s->phrases[p].share;
        }
        for (size_t i = 1; i < s->n_states; i++)
            left += next[i];
        next[0] = 0;
        double *swap = now;
        now = next;
        next = swap;
    }
    free(now);
    free(next);
    if (left > 1e-15)
        fail(EXIT_USAGE, "%s: some stories never end: from every scene there must be a way back to '%s'", s->path,
             s->scenes[0].name);
}

struct stories *read_stories(const char *path, char *text)
{
    struct stories *s = allocate(1, sizeof *s);
    bool in_table = false;
    int line = 0;
    s->path = path;
    s->text = text;
    for (char *next; (next = strsep(&text, "\n"));) {
        next[strcspn(next, "\r")] = '\0';
        read_line(s, ++line, next, &in_table);
    }
    if (s->n_scenes == 0)
        fail(EXIT_USAGE, "%s has no scene; data/stories.txt shows how a grammar is written", path);
    expand(s);
    count_visits(s);
    return s;
}

void free_stories(struct stories *s)
{
    for (size_t i = 0; i < s->n_phrases; i++)
        free(s->phrases[i].bytes);
    for (size_t i = 0; i < s->n_scenes; i++)
        free(s->scenes[i].choices);
    for (size_t i = 0; i < s->n_tables; i++)
        free(s->tables[i].cells);
    free(s->text);
    free(s->phrases);
    free(s->scenes);
    free(s->states);
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
struct place {
    size_t phrase, at;
    double weight;
};
struct belief {
    struct place *places;
    size_t n, cap;
    double total; /* of the weights */
};

static void add_place(struct belief *b, size_t phrase, size_t at, double weight)
{
    *APPEND(b->places, b->n, b->cap) = (struct place){phrase, at, weight};
    b->total += weight;
}

/* `to` becomes what is believed once `byte` was read: places where it is not the next are out.  Returns its probability
 * before.  sum: (states) zeros; mass that enters a state is summed first, so that each of its phrases comes once. */
static double read_byte(const struct stories *s, const struct belief *from, unsigned char byte, struct belief *to,
                        double *sum)
{
    to->n = 0;
    to->total = 0;
    for (const struct place *p = from->places; p < from->places + from->n; p++) {
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
    free(first);
    free(two[0].places);
    free(two[1].places);
    free(any.places);
    free(sum);
    return loss / ((double)windows * seq_len);
}
