/* schedule_cells.c - the cells of a schedule: from a file, to a file, and whether they are all there. */
#include "schedule.h"

#include <ctype.h>

const char turn_letters[COMPUTATIONS] = {
    [FORWARD] = 'F', [BACKWARD] = 'B', [INPUT_GRADIENT] = 'I', [WEIGHT_GRADIENT] = 'W'};
static const char overlap[] = "OVERLAP_F_B";

/* ---- to text ----------------------------------------------------------------------------------------------------- */

char *turn_text(const struct turn *turn)
{
    return format_string("%d%c%d", turn->stage, turn_letters[turn->computation], turn->micro);
}

char *cell_text(const struct turn_cell *cell)
{
    const struct turn *first = &cell->turns[0], *second = &cell->turns[1];
    if (cell->n == 1)
        return turn_text(first);
    char *forward = turn_text(first), *backward = turn_text(second);
    char *text = format_string("(%s;%s)%s", forward, backward, overlap);
    free(forward);
    free(backward);
    return text;
}

char *cell_place(const struct turn_cell *cell)
{
    if (cell->task)
        return format_string("task %zu %s", cell->task->index, cell->task->name);
    return format_string("row %d, cell %d", cell->row + 1, cell->column + 1);
}

_Noreturn void fail_in_cell(const struct schedule *schedule, const struct turn_cell *cell, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *sentence = format_arguments(format, arguments);
    va_end(arguments);
    fail(EXIT_USAGE, "%s, %s: \"%s\": %s", schedule->name, cell_place(cell), cell_text(cell), sentence);
}

char *format_schedule(const struct schedule *schedule)
{
    struct begun_text begun;
    FILE *out = begin_text(&begun);
    for (size_t r = 0; r < schedule->n; r++) {
        const struct row *row = &schedule->rows[r];
        for (size_t i = 0; i < row->n; i++) {
            char *cell = cell_text(&row->cells[i]);
            fprintf(out, "%s%s", i > 0 ? "," : "", cell);
            free(cell);
        }
        fputc('\n', out);
    }
    return end_text(&begun);
}

/* ---- from text --------------------------------------------------------------------------------------------------- */

/* Reads "1B3", and moves *at to what follows. */
static bool parse_turn(const char **at, struct turn *turn)
{
    turn->stage = parse_number(at, MOST_STAGES);
    const char *letter = **at ? memchr(turn_letters, **at, COMPUTATIONS) : NULL;
    if (turn->stage == NONE || !letter)
        return false;
    turn->computation = (enum computation)(letter - turn_letters);
    (*at)++;
    turn->micro = parse_number(at, MOST_MICROS);
    return turn->micro != NONE;
}

/* Reads a cell, "1B3" or "(0F7;7B3)OVERLAP_F_B"; false: it is none. */
static bool parse_cell(const char *text, struct turn_cell *cell)
{
    const char *at = text;
    cell->n = 1;
    if (*at != '(')
        return parse_turn(&at, &cell->turns[0]) && !*at;
    cell->n = 2;
    at++;
    if (!parse_turn(&at, &cell->turns[0]) || *at != ';')
        return false;
    at++;
    if (!parse_turn(&at, &cell->turns[1]) || *at != ')')
        return false;
    at++;
    bool is_forward_and_backward = cell->turns[0].computation == FORWARD && cell->turns[1].computation == BACKWARD;
    return is_forward_and_backward && strcmp(at, overlap) == 0;
}

/* Is it an action of PyTorch that follows from the others, such as "1SEND_F3"? */
static bool is_left_to_pytorch(const char *text)
{
    static const char *const actions[] = {"SEND_F",      "RECV_F",      "SEND_B",      "RECV_B",
                                          "WAIT_SEND_F", "WAIT_SEND_B", "REDUCE_GRAD", "WAIT_REDUCE_GRAD",
                                          "UNSHARD",     "RESHARD",     NULL};
    size_t stage = strspn(text, "0123456789");
    size_t action = strcspn(text + stage, "0123456789");
    size_t micro = strspn(text + stage + action, "0123456789");
    char *name = format_string("%.*s", (int)action, text + stage);
    bool is_action = choice_number(actions, name) >= 0;
    free(name);
    return stage > 0 && is_action && !text[stage + action + micro];
}

void add_cell(struct row *row, struct turn_cell cell)
{
    GROW(row->cells, row->cap, row->n + 1);
    row->cells[row->n++] = cell;
}

/* Reads a line, which becomes a row. */
static void read_row(struct schedule *schedule, char *line)
{
    char *text;
    int number = (int)schedule->n;
    GROW(schedule->rows, schedule->cap, schedule->n + 1);
    struct row *row = &schedule->rows[schedule->n++];
    for (int column = 0; (text = strsep(&line, ",")); column++) {
        struct turn_cell cell = {.row = number, .column = column};
        text = trim_text(text);
        if (!*text || is_left_to_pytorch(text))
            continue;
        if (!parse_cell(text, &cell))
            fail(EXIT_USAGE,
                 "%s, row %d, cell %d: \"%.40s\": expected STAGE, then F, B, I or W, then MICRO-BATCH, such as 0F3, "
                 "with a stage below %d and a micro-batch below %d, or two that overlap, (0F7;7B3)%s",
                 schedule->name, number + 1, column + 1, text, MOST_STAGES, MOST_MICROS, overlap);
        add_cell(row, cell);
    }
    if (row->n == 0)
        fail(EXIT_USAGE, "%s, row %d, cell 1: no turn is in this row: each device has a row with its turns",
             schedule->name, number + 1);
}

struct schedule *read_schedule(const char *name, const char *text)
{
    struct schedule *schedule = allocate(1, sizeof *schedule);
    char *copy = copy_string(text);
    char *line, *rest = trim_text(copy);
    schedule->name = name;
    while ((line = strsep(&rest, "\n")))
        read_row(schedule, line);
    free(copy);
    index_cells(schedule);
    return schedule;
}

void free_schedule(struct schedule *schedule)
{
    for (size_t r = 0; r < schedule->n; r++)
        free(schedule->rows[r].cells);
    free(schedule->rows);
    free(schedule->turns);
    free(schedule->row_of);
    free(schedule->doing);
    free(schedule);
}

/* ---- are they all there? ----------------------------------------------------------------------------------------- */

/* The index in `doing` of the cell that does this computation. */
static size_t doing_index(const struct schedule *schedule, enum computation computation, int stage, int micro)
{
    size_t i = (size_t)computation * (size_t)schedule->stages + (size_t)stage;
    return i * (size_t)schedule->micros + (size_t)micro;
}

const struct turn_cell *cell_of(const struct schedule *schedule, enum computation computation, int stage, int micro)
{
    return schedule->doing[doing_index(schedule, computation, stage, micro)];
}

/* Notes that the cell does this computation of the turn.  No other cell may. */
static void enter_computation(struct schedule *schedule, const struct turn_cell *cell, enum computation computation,
                              const struct turn *turn)
{
    size_t i = doing_index(schedule, computation, turn->stage, turn->micro);
    const struct turn_cell *other = schedule->doing[i];
    if (other)
        fail_in_cell(schedule, cell, "%s is in %s already", turn_text(turn), cell_place(other));
    schedule->doing[i] = cell;
}

/* Notes the cell of a turn, and the row of its stage.  A whole backward does both halves. */
static void enter_turn(struct schedule *schedule, const struct turn_cell *cell, const struct turn *turn)
{
    int *row = &schedule->row_of[turn->stage];
    if (*row == NONE)
        *row = cell->row;
    if (*row != cell->row)
        fail_in_cell(schedule, cell, "stage %d is in row %d already, and a stage is on one device", turn->stage,
                     *row + 1);
    if (turn->computation == BACKWARD) {
        enter_computation(schedule, cell, INPUT_GRADIENT, turn);
        enter_computation(schedule, cell, WEIGHT_GRADIENT, turn);
    } else {
        enter_computation(schedule, cell, turn->computation, turn);
    }
}

/* Refuses a schedule in which the stage lacks a turn of some micro-batch. */
static void expect_all_turns(const struct schedule *schedule, int stage)
{
    static const enum computation all[] = {FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT};
    const struct row *row = &schedule->rows[schedule->row_of[stage]];
    for (int micro = 0; micro < schedule->micros; micro++)
        for (size_t k = 0; k < COUNT(all); k++) {
            const struct turn turn = {all[k], stage, micro};
            if (!cell_of(schedule, all[k], stage, micro))
                fail_in_cell(schedule, &row->cells[row->n - 1], "after it the row ends, and %s%s is missing",
                             turn_text(&turn), all[k] == FORWARD ? "" : " or the whole backward");
        }
}

/* Lists the turns of all cells, and counts stages and micro-batches. */
static void collect_turns(struct schedule *schedule)
{
    size_t cap = 0;
    for (const struct row *row = schedule->rows; row < schedule->rows + schedule->n; row++)
        for (const struct turn_cell *cell = row->cells; cell < row->cells + row->n; cell++)
            for (const struct turn *turn = cell->turns; turn < cell->turns + cell->n; turn++) {
                GROW(schedule->turns, cap, schedule->n_turns + 1);
                schedule->turns[schedule->n_turns++] = (struct listed_turn){.cell = cell, .turn = turn};
                schedule->stages = MAX(schedule->stages, turn->stage + 1);
                schedule->micros = MAX(schedule->micros, turn->micro + 1);
            }
}

void index_cells(struct schedule *schedule)
{
    collect_turns(schedule);
    schedule->doing = allocate((size_t)COMPUTATIONS * (size_t)schedule->stages * (size_t)schedule->micros,
                               sizeof(struct turn_cell *));
    schedule->row_of = allocate_each(schedule->stages, sizeof *schedule->row_of);
    fill_none(schedule->row_of, (size_t)schedule->stages);
    for (size_t i = 0; i < schedule->n_turns; i++)
        enter_turn(schedule, schedule->turns[i].cell, schedule->turns[i].turn);
    for (size_t i = 0; i < schedule->n_turns; i++) {
        int stage = schedule->turns[i].turn->stage;
        if (stage > 0 && schedule->row_of[stage - 1] == NONE)
            fail_in_cell(schedule, schedule->turns[i].cell, "it is on stage %d, and stage %d is in no row", stage,
                         stage - 1);
    }
    for (int stage = 0; stage < schedule->stages; stage++)
        expect_all_turns(schedule, stage);
}
