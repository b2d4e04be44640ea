/* schedule_cells.c - the cells of a schedule: from a file, to a file, and whether they are all there. */
#include "schedule.h"

#include <ctype.h>

const char turn_letters[COMPUTATIONS] = {
    [FORWARD] = 'F', [BACKWARD] = 'B', [INPUT_GRADIENT] = 'I', [WEIGHT_GRADIENT] = 'W'};
static const char overlap[] = "OVERLAP_F_B";

/* ---- to text ----------------------------------------------------------------------------------------------------- */

char *turn_text(const struct turn *t)
{
    return format_string("%d%c%d", t->stage, turn_letters[t->computation], t->micro);
}

char *cell_text(const struct turn_cell *c)
{
    const struct turn *a = &c->turn[0], *b = &c->turn[1];
    if (c->n == 1)
        return turn_text(a);
    return format_string("(%d%c%d;%d%c%d)%s", a->stage, turn_letters[a->computation], a->micro, b->stage,
                         turn_letters[b->computation], b->micro, overlap);
}

char *cell_place(const struct turn_cell *c)
{
    if (c->task)
        return format_string("task %zu %s", c->task->index, c->task->name);
    return format_string("row %d, cell %d", c->row + 1, c->column + 1);
}

char *format_schedule(const struct schedule *s)
{
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    for (size_t r = 0; r < s->n; r++) {
        const struct row *row = &s->row[r];
        for (size_t i = 0; i < row->n; i++) {
            char *cell = cell_text(&row->cell[i]);
            fprintf(out, "%s%s", i > 0 ? "," : "", cell);
            free(cell);
        }
        fputc('\n', out);
    }
    fclose(out);
    return text;
}

/* ---- from text --------------------------------------------------------------------------------------------------- */

/* A number below `end`, and moves *at to what follows it; NONE: there is none. */
static int parse_number(const char **at, int end)
{
    char *rest;
    if (!isdigit((unsigned char)**at))
        return NONE;
    long n = strtol(*at, &rest, 10);
    *at = rest;
    return n < end ? (int)n : NONE;
}

/* Reads "1B3", and moves *at to what follows. */
static bool parse_turn(const char **at, struct turn *t)
{
    t->stage = parse_number(at, MOST_STAGES);
    const char *letter = **at ? memchr(turn_letters, **at, COMPUTATIONS) : NULL;
    if (t->stage == NONE || !letter)
        return false;
    t->computation = (enum computation)(letter - turn_letters);
    (*at)++;
    t->micro = parse_number(at, MOST_MICROS);
    return t->micro != NONE;
}

/* Reads a cell, "1B3" or "(0F7;7B3)OVERLAP_F_B"; false: it is none. */
static bool parse_cell(const char *text, struct turn_cell *c)
{
    const char *at = text;
    c->n = 1;
    if (*at != '(')
        return parse_turn(&at, &c->turn[0]) && !*at;
    c->n = 2;
    at++;
    if (!parse_turn(&at, &c->turn[0]) || *at != ';')
        return false;
    at++;
    if (!parse_turn(&at, &c->turn[1]) || *at != ')')
        return false;
    return strcmp(at + 1, overlap) == 0 && c->turn[0].computation == FORWARD && c->turn[1].computation == BACKWARD;
}

/* Is it an action of PyTorch that follows from the others, such as "1SEND_F3"? */
static bool is_left_to_pytorch(const char *text)
{
    static const char *const actions[] = {"SEND_F",      "RECV_F",      "SEND_B",      "RECV_B",
                                          "WAIT_SEND_F", "WAIT_SEND_B", "REDUCE_GRAD", "WAIT_REDUCE_GRAD",
                                          "UNSHARD",     "RESHARD",     NULL};
    const size_t stage = strspn(text, "0123456789");
    const size_t action = strcspn(text + stage, "0123456789");
    const size_t micro = strspn(text + stage + action, "0123456789");
    char *name = format_string("%.*s", (int)action, text + stage);
    const bool is_action = choice_number(actions, name) >= 0;
    free(name);
    return stage > 0 && is_action && !text[stage + action + micro];
}

/* Reads a line, which becomes a row. */
static void read_row(struct schedule *s, char *line)
{
    char *word;
    const int number = (int)s->n;
    struct row *row = APPEND(s->row, s->n, s->cap);
    for (int column = 0; (word = strsep(&line, ",")); column++) {
        struct turn_cell c = {.row = number, .column = column};
        word = trim(word);
        if (!*word || is_left_to_pytorch(word))
            continue;
        if (!parse_cell(word, &c))
            fail(EXIT_USAGE,
                 "%s, row %d, cell %d: '%.40s': expected STAGE, then F, B, I or W, then MICRO-BATCH, such as 0F3, with "
                 "a stage below %d and a micro-batch below %d, or two that overlap, (0F7;7B3)%s",
                 s->path, number + 1, column + 1, word, MOST_STAGES, MOST_MICROS, overlap);
        *APPEND(row->cell, row->n, row->cap) = c;
    }
    if (row->n == 0)
        fail(EXIT_USAGE, "%s, row %d, cell 1: no turn is in this row: each device has a row with its turns", s->path,
             number + 1);
}

struct schedule *read_schedule(const char *path, const char *text)
{
    struct schedule *s = allocate(1, sizeof *s);
    char *copy = copy_string(text);
    char *line, *rest = trim(copy);
    s->path = path;
    while ((line = strsep(&rest, "\n")))
        read_row(s, line);
    free(copy);
    index_cells(s);
    return s;
}

void free_schedule(struct schedule *s)
{
    for (size_t r = 0; r < s->n; r++)
        free(s->row[r].cell);
    free(s->row);
    free(s->turn);
    free(s->row_of);
    free(s->doing);
    free(s);
}

/* ---- are they all there? ----------------------------------------------------------------------------------------- */

const struct turn_cell **cell_of(const struct schedule *s, enum computation computation, int stage, int micro)
{
    return &s->doing[((size_t)computation * (size_t)s->stages + (size_t)stage) * (size_t)s->micros + (size_t)micro];
}

/* Notes that the cell does this computation of t.  No other cell may. */
static void enter(struct schedule *s, const struct turn_cell *c, enum computation computation, const struct turn *t)
{
    const struct turn_cell **doing = cell_of(s, computation, t->stage, t->micro);
    if (*doing)
        fail_cell(s, c, "%s is in %s already", turn_text(t), cell_place(*doing));
    *doing = c;
}

/* Notes the cell of a turn, and the row of its stage.  A whole backward does both halves. */
static void enter_turn(struct schedule *s, const struct turn_cell *c, const struct turn *t)
{
    int *row = &s->row_of[t->stage];
    if (*row == NONE)
        *row = c->row;
    if (*row != c->row)
        fail_cell(s, c, "stage %d is in row %d already, and a stage is on one device", t->stage, *row + 1);
    enter(s, c, t->computation == BACKWARD ? INPUT_GRADIENT : t->computation, t);
    if (t->computation == BACKWARD)
        enter(s, c, WEIGHT_GRADIENT, t);
}

/* Refuses a schedule in which the stage lacks a turn of some micro-batch. */
static void expect_all_turns(const struct schedule *s, int stage)
{
    static const enum computation all[] = {FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT};
    const struct row *row = &s->row[s->row_of[stage]];
    for (int micro = 0; micro < s->micros; micro++)
        for (size_t k = 0; k < COUNT(all); k++) {
            const struct turn t = {all[k], stage, micro};
            if (!*cell_of(s, all[k], stage, micro))
                fail_cell(s, &row->cell[row->n - 1], "after it the row ends, and %s%s is missing", turn_text(&t),
                          all[k] == FORWARD ? "" : " or the whole backward");
        }
}

/* Lists the turns of all cells, and counts stages and micro-batches. */
static void list_turns(struct schedule *s)
{
    size_t cap = 0;
    for (const struct row *row = s->row; row < s->row + s->n; row++)
        for (const struct turn_cell *c = row->cell; c < row->cell + row->n; c++)
            for (const struct turn *t = c->turn; t < c->turn + c->n; t++) {
                *APPEND(s->turn, s->n_turns, cap) = (struct listed_turn){.cell = c, .turn = t};
                s->stages = MAX(s->stages, t->stage + 1);
                s->micros = MAX(s->micros, t->micro + 1);
            }
}

void index_cells(struct schedule *s)
{
    list_turns(s);
    s->doing = allocate((size_t)COMPUTATIONS * (size_t)s->stages * (size_t)s->micros, sizeof(struct turn_cell *));
    s->row_of = allocate((size_t)s->stages, sizeof *s->row_of);
    for (int stage = 0; stage < s->stages; stage++)
        s->row_of[stage] = NONE;
    for (size_t i = 0; i < s->n_turns; i++)
        enter_turn(s, s->turn[i].cell, s->turn[i].turn);
    for (size_t i = 0; i < s->n_turns; i++) {
        const int stage = s->turn[i].turn->stage;
        if (stage > 0 && s->row_of[stage - 1] == NONE)
            fail_cell(s, s->turn[i].cell, "it is on stage %d, and stage %d is in no row", stage, stage - 1);
    }
    for (int stage = 0; stage < s->stages; stage++)
        expect_all_turns(s, stage);
}
