/* schedule_write.c - a schedule as a list, which is simulated, verified and drawn as any other: the text of a step
 * file.
 *
 * A cell is a task, on a device for each row.  Stage k and micro-batch u, with K.U for their numbers, have:
 *
 *     wK, gK     its parameters and their gradients          aK.U     what its forward leaves for its backward
 *     xK.U       what the stage before it has sent           dK.U     the gradient of its input
 *     yK.U       what the stage after it has sent back
 *
 * What a schedule does not say is chosen: a tensor has 1 MiB, so that the bytes of activations count what is in flight.
 */
#include "planning/lists/line.h"
#include "schedule.h"

#include <math.h>

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* What takes a time; FB are two turns that overlap. */
static const char *const keys[] = {"F", "I", "W", "B", "FB", "send", NULL};
enum key { KEY_F, KEY_I, KEY_W, KEY_B, KEY_FB, KEY_SEND, KEYS };
struct turn_times {
    int stages;
    double (*seconds)[KEYS]; /* by stage; NAN: not given */
};

/* Reads "3F=1.5ms", or "F=1.5ms" for all stages. */
static void read_time(struct turn_times *times, const char *entry)
{
    size_t digits = strspn(entry, "0123456789"), length = strcspn(entry, "=");
    double seconds;
    int64_t stage = 0;
    char *key = format_string("%.*s", (int)(length - MIN(digits, length)), entry + digits);
    int k = choice_number(keys, key);
    bool good = k >= 0 && entry[length] && parse_time(entry + length + 1, &seconds);
    if (!good || !(seconds >= 0 && seconds <= 1e6))
        fail(EXIT_USAGE,
             "--times: \"%.40s\": expected F, I, W, B, FB or send, of one stage with its number before it, then = and "
             "a time such as 1.5ms, as in `F=1ms,3F=2ms,send=10us`",
             entry);
    free(key);
    key = format_string("%.*s", (int)digits, entry);
    if (digits > 0 && (!parse_int(key, &stage) || stage >= times->stages))
        fail(EXIT_USAGE, "--times: \"%.40s\": the schedule has only the stages 0 to %d", entry, times->stages - 1);
    free(key);
    int end = digits > 0 ? (int)stage + 1 : times->stages;
    for (int i = (int)stage; i < end; i++)
        times->seconds[i][k] = seconds;
}

/* The times of each stage: those that --times has, and else 1 ms for F, I and W, and nothing for a send. */
static struct turn_times read_times(const char *list, int stages)
{
    struct turn_times times = {stages, allocate_each(stages, sizeof *times.seconds)};
    for (int i = 0; i < stages; i++)
        for (int k = 0; k < KEYS; k++)
            times.seconds[i][k] = NAN;
    read_time(&times, "F=1ms");
    read_time(&times, "I=1ms");
    read_time(&times, "W=1ms");
    read_time(&times, "send=0");
    char *copy = copy_string(list ? list : ""), *save = NULL;
    for (char *entry = strtok_r(copy, ", \t\n", &save); entry; entry = strtok_r(NULL, ", \t\n", &save))
        read_time(&times, entry);
    free(copy);
    return times;
}

static double time_of_turn(const struct turn_times *times, const struct turn *turn)
{
    const double *of_stage = times->seconds[turn->stage];
    switch (turn->computation) {
    case FORWARD:
        return of_stage[KEY_F];
    case INPUT_GRADIENT:
        return of_stage[KEY_I];
    case WEIGHT_GRADIENT:
        return of_stage[KEY_W];
    default: /* BACKWARD, of which the halves may have times instead */
        return isnan(of_stage[KEY_B]) ? of_stage[KEY_I] + of_stage[KEY_W] : of_stage[KEY_B];
    }
}

static double time_of_cell(const struct turn_times *times, const struct turn_cell *cell)
{
    double overlapped = times->seconds[cell->turns[0].stage][KEY_FB];
    if (cell->n == 1)
        return time_of_turn(times, &cell->turns[0]);
    if (!isnan(overlapped))
        return overlapped;
    return time_of_turn(times, &cell->turns[0]) + time_of_turn(times, &cell->turns[1]);
}

static bool is_given(const struct turn_times *times, enum key key)
{
    for (int i = 0; i < times->stages; i++)
        if (!isnan(times->seconds[i][key]))
            return true;
    return false;
}

static void warn_of_unused(const struct schedule *schedule, const struct turn_times *times)
{
    bool overlaps = false;
    for (size_t i = 0; i < schedule->n_turns; i++)
        overlaps |= schedule->turns[i].cell->n == 2;
    if (!overlaps && is_given(times, KEY_FB))
        warn("--times FB has no effect: in %s no two turns overlap", schedule->name);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

struct writing {
    const struct schedule *schedule;
    struct turn_times times;
    FILE *out;
    bool *began; /* by stage: is there a sum of gradients to add to? */
};

static void write_stage_tensors(const struct writing *writing, int stage)
{
    int row = writing->schedule->row_of[stage];
    fprintf(writing->out, "tensor w%d d%d 1M parameters\n", stage, row);
    fprintf(writing->out, "tensor g%d d%d 1M gradients\n", stage, row);
    for (int micro = 0; micro < writing->schedule->micros; micro++) {
        fprintf(writing->out, "tensor a%d.%d d%d 1M activations\n", stage, micro, row);
        fprintf(writing->out, "tensor d%d.%d d%d 1M work\n", stage, micro, row);
        if (stage > 0)
            fprintf(writing->out, "tensor x%d.%d d%d 1M work\n", stage, micro, row);
        if (stage < writing->schedule->stages - 1)
            fprintf(writing->out, "tensor y%d.%d d%d 1M work\n", stage, micro, row);
    }
}

/* Appends the output gradient of the stage, which the stage after it sends. */
static void add_output_gradient(const struct writing *writing, const struct turn *turn, char **reads)
{
    if (turn->stage < writing->schedule->stages - 1)
        append_text(reads, ",y%d.%d", turn->stage, turn->micro);
}

/* Appends the sum of the stage's weight gradients, which the turn begins or adds to. */
static void add_weight_gradients(struct writing *writing, int stage, char **reads, char **writes)
{
    if (writing->began[stage])
        append_text(reads, ",g%d", stage);
    append_text(writes, ",g%d", stage);
    writing->began[stage] = true;
}

/* Appends the names of what the turn reads, and of what it writes: ",w0,a0.1". */
static void add_operands(struct writing *writing, const struct turn *turn, char **reads, char **writes)
{
    int k = turn->stage, u = turn->micro;
    switch (turn->computation) {
    case FORWARD:
        append_text(reads, ",w%d", k);
        if (k > 0)
            append_text(reads, ",x%d.%d", k, u);
        append_text(writes, ",a%d.%d", k, u);
        break;
    case INPUT_GRADIENT:
        append_text(reads, ",w%d,a%d.%d", k, k, u);
        add_output_gradient(writing, turn, reads);
        append_text(writes, ",d%d.%d", k, u);
        break;
    case WEIGHT_GRADIENT:
        append_text(reads, ",a%d.%d,d%d.%d", k, u, k, u);
        add_weight_gradients(writing, k, reads, writes);
        break;
    case BACKWARD:
        append_text(reads, ",w%d,a%d.%d", k, k, u);
        add_output_gradient(writing, turn, reads);
        append_text(writes, ",d%d.%d", k, u);
        add_weight_gradients(writing, k, reads, writes);
        break;
    case COMPUTATIONS:
        break;
    }
}

/* What the turn has made goes to the neighbour that waits for it.  Each way has a lane of its own. */
static void write_send(const struct writing *writing, const struct turn *turn)
{
    bool forward = turn->computation == FORWARD;
    int to = turn->stage + (forward ? 1 : -1);
    if (turn->computation == WEIGHT_GRADIENT || to < 0 || to == writing->schedule->stages)
        return;
    int from_row = writing->schedule->row_of[turn->stage];
    int to_row = writing->schedule->row_of[to];
    double seconds = from_row == to_row ? 0 : writing->times.seconds[turn->stage][KEY_SEND];
    char number[NUMBER_TEXT];
    fprintf(writing->out, "copy send %c%d.%d %c%d.%d lane=d%d.download%s time=%s layer=%d micro=%d role=send\n",
            forward ? 'x' : 'y', to, turn->micro, forward ? 'a' : 'd', turn->stage, turn->micro, from_row,
            forward ? "" : "1", format_exactly(number, seconds), turn->stage, turn->micro);
}

/* Writes the task that a cell is, and then what it sends. */
static void write_cell(struct writing *writing, const struct turn_cell *cell)
{
    const struct turn *first = &cell->turns[0];
    const char name[] = {turn_letters[first->computation], '\0'};
    char number[NUMBER_TEXT];
    char *reads = NULL, *writes = NULL;
    for (int k = 0; k < cell->n; k++)
        add_operands(writing, &cell->turns[k], &reads, &writes);
    bool is_forward = cell->n == 1 && first->computation == FORWARD;
    fprintf(writing->out, "task %s d%d.compute %s layer=%d micro=%d role=%s reads=%s writes=%s\n",
            cell->n == 2 ? "F&B" : name, cell->row, format_exactly(number, time_of_cell(&writing->times, cell)),
            first->stage, first->micro, is_forward ? "forward" : "backward", reads + 1, writes + 1);
    for (int k = 0; k < cell->n; k++)
        write_send(writing, &cell->turns[k]);
    free(reads);
    free(writes);
}

char *format_step_file(const struct schedule *schedule, const char *times)
{
    struct begun_text begun;
    size_t n;
    struct writing writing = {
        .schedule = schedule, .times = read_times(times, schedule->stages), .out = begin_text(&begun)};
    const struct turn_cell **cells = order_cells(schedule, UNTIED, &n);
    warn_of_unused(schedule, &writing.times);
    writing.began = allocate_each(schedule->stages, sizeof *writing.began);
    for (size_t row = 0; row < schedule->n; row++)
        fprintf(writing.out, "device d%zu memory=1024G\nlane d%zu.download1\n", row, row);
    for (int stage = 0; stage < schedule->stages; stage++)
        write_stage_tensors(&writing, stage);
    for (size_t i = 0; i < n; i++)
        write_cell(&writing, cells[i]);
    for (int stage = 0; stage < schedule->stages; stage++) {
        int row = schedule->row_of[stage];
        fprintf(writing.out, "task update d%d.compute 0 layer=%d role=update reads=g%d,w%d writes=w%d\n", row, stage,
                stage, stage, stage);
    }
    free(writing.times.seconds);
    free(writing.began);
    free(cells);
    return end_text(&begun);
}
