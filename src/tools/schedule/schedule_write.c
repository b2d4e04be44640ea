/* schedule_write.c - a schedule as a list, which is simulated, verified and drawn as any other: the text of a step
 * file.
 *
 * A cell is a task, on a device for each row.  Of stage k and micro-batch u, with K.U for their numbers:
 *
 *     wK, gK     its parameters and their gradients          aK.U     what its forward leaves for its backward
 *     xK.U       what the stage before it has sent           dK.U     the gradient of its input
 *     yK.U       what the stage after it has sent back
 *
 * What a schedule does not say is chosen: a tensor has 1 MiB, so that the bytes of activations count what is in flight.
 */
#include "schedule.h"
#include "tools/lists/line.h"

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* What takes a time; FB are two turns that overlap. */
static const char *const keys[] = {"F", "I", "W", "B", "FB", "send", NULL};
enum key { KEY_F, KEY_I, KEY_W, KEY_B, KEY_FB, KEY_SEND, KEYS };
struct turn_times {
    int stages;
    double (*seconds)[KEYS]; /* by stage; below 0: not given */
};

/* Reads "3F=1.5ms", or "F=1.5ms" for all stages. */
static void read_time(struct turn_times *t, const char *word)
{
    const size_t digits = strspn(word, "0123456789"), length = strcspn(word, "=");
    double seconds;
    int64_t stage = 0;
    char *key = format_string("%.*s", (int)(length - MIN(digits, length)), word + digits);
    const int k = choice_number(keys, key);
    bool good = k >= 0 && word[length] && parse_time(word + length + 1, &seconds);
    if (!good || !(seconds >= 0 && seconds <= 1e6))
        fail(EXIT_USAGE,
             "--times: '%.40s': expected F, I, W, B, FB or send, of one stage with its number before it, "
             "then = and a time such as 1.5ms: 'F=1ms,3F=2ms,send=10us'",
             word);
    free(key);
    key = format_string("%.*s", (int)digits, word);
    if (digits > 0 && (!parse_int(key, &stage) || stage >= t->stages))
        fail(EXIT_USAGE, "--times: '%.40s': the schedule has stages 0 to %d", word, t->stages - 1);
    free(key);
    const int end = digits > 0 ? (int)stage + 1 : t->stages;
    for (int i = (int)stage; i < end; i++)
        t->seconds[i][k] = seconds;
}

/* The times of each stage: those that --times has, and else 1 ms for F, I and W, and nothing for a send. */
static struct turn_times read_times(const char *words, int stages)
{
    struct turn_times t = {stages, allocate((size_t)stages, sizeof *t.seconds)};
    for (int i = 0; i < stages; i++)
        for (int k = 0; k < KEYS; k++)
            t.seconds[i][k] = -1;
    read_time(&t, "F=1ms");
    read_time(&t, "I=1ms");
    read_time(&t, "W=1ms");
    read_time(&t, "send=0");
    char *copy = copy_string(words ? words : ""), *save = NULL;
    for (char *word = strtok_r(copy, ", \t\n", &save); word; word = strtok_r(NULL, ", \t\n", &save))
        read_time(&t, word);
    free(copy);
    return t;
}

static double time_of_turn(const struct turn_times *times, const struct turn *turn)
{
    static const enum key key[COMPUTATIONS] = {
        [FORWARD] = KEY_F, [BACKWARD] = KEY_B, [INPUT_GRADIENT] = KEY_I, [WEIGHT_GRADIENT] = KEY_W};
    const double *of_stage = times->seconds[turn->stage];
    if (turn->computation == BACKWARD && of_stage[KEY_B] < 0)
        return of_stage[KEY_I] + of_stage[KEY_W];
    return of_stage[key[turn->computation]];
}

static double time_of_cell(const struct turn_times *times, const struct turn_cell *c)
{
    double overlapped = times->seconds[c->turn[0].stage][KEY_FB];
    if (c->n == 1)
        return time_of_turn(times, &c->turn[0]);
    if (overlapped >= 0)
        return overlapped;
    return time_of_turn(times, &c->turn[0]) + time_of_turn(times, &c->turn[1]);
}

static bool is_given(const struct turn_times *t, enum key key)
{
    for (int i = 0; i < t->stages; i++)
        if (t->seconds[i][key] >= 0)
            return true;
    return false;
}

static void warn_of_unused(const struct schedule *schedule, const struct turn_times *times)
{
    bool overlaps = false;
    for (size_t i = 0; i < schedule->n_turns; i++)
        overlaps |= schedule->turn[i].cell->n == 2;
    if (!overlaps && is_given(times, KEY_FB))
        warn("--times FB has no effect: in %s no two turns overlap", schedule->path);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

struct writing {
    const struct schedule *s;
    struct turn_times times;
    FILE *out;
    bool *began; /* by stage: is there a sum of gradients to add to? */
};

static void write_tensors(const struct writing *w, int stage)
{
    const int row = w->s->row_of[stage];
    fprintf(w->out, "tensor w%d d%d 1M parameters\n", stage, row);
    fprintf(w->out, "tensor g%d d%d 1M gradients\n", stage, row);
    for (int micro = 0; micro < w->s->micros; micro++) {
        fprintf(w->out, "tensor a%d.%d d%d 1M activations\n", stage, micro, row);
        fprintf(w->out, "tensor d%d.%d d%d 1M work\n", stage, micro, row);
        if (stage > 0)
            fprintf(w->out, "tensor x%d.%d d%d 1M work\n", stage, micro, row);
        if (stage < w->s->stages - 1)
            fprintf(w->out, "tensor y%d.%d d%d 1M work\n", stage, micro, row);
    }
}

/* Appends the names of what the turn reads, and of what it writes: ",w0,a0.1". */
static void add_operands(struct writing *w, const struct turn *turn, char **reads, char **writes)
{
    const int k = turn->stage, u = turn->micro;
    const bool input = turn->computation == BACKWARD || turn->computation == INPUT_GRADIENT;
    const bool weights = turn->computation == BACKWARD || turn->computation == WEIGHT_GRADIENT;
    if (turn->computation != WEIGHT_GRADIENT)
        append_text(reads, ",w%d", k);
    if (turn->computation == FORWARD)
        append_text(writes, ",a%d.%d", k, u);
    else
        append_text(reads, ",a%d.%d", k, u);
    if (turn->computation == FORWARD && k > 0)
        append_text(reads, ",x%d.%d", k, u);
    if (input && k < w->s->stages - 1)
        append_text(reads, ",y%d.%d", k, u);
    if (input)
        append_text(writes, ",d%d.%d", k, u);
    if (turn->computation == WEIGHT_GRADIENT)
        append_text(reads, ",d%d.%d", k, u);
    if (weights && w->began[k])
        append_text(reads, ",g%d", k);
    if (weights)
        append_text(writes, ",g%d", k);
    w->began[k] |= weights;
}

/* What the turn has made goes to the neighbour that waits for it.  Each way has a lane of its own. */
static void write_send(const struct writing *w, const struct turn *turn)
{
    const bool forward = turn->computation == FORWARD;
    const int to = turn->stage + (forward ? 1 : -1);
    if (turn->computation == WEIGHT_GRADIENT || to < 0 || to == w->s->stages)
        return;
    const int from_row = w->s->row_of[turn->stage];
    const int to_row = w->s->row_of[to];
    const double seconds = from_row == to_row ? 0 : w->times.seconds[turn->stage][KEY_SEND];
    char number[32];
    fprintf(w->out, "copy send %c%d.%d %c%d.%d lane=d%d.download%s time=%s layer=%d micro=%d role=send\n",
            forward ? 'x' : 'y', to, turn->micro, forward ? 'a' : 'd', turn->stage, turn->micro, from_row,
            forward ? "" : "1", format_exactly(number, seconds), turn->stage, turn->micro);
}

/* Writes the task that a cell is, and then what it sends. */
static void write_cell(struct writing *w, const struct turn_cell *c)
{
    const struct turn *first = &c->turn[0];
    const char name[] = {turn_letters[first->computation], '\0'};
    char number[32], *reads = NULL, *writes = NULL;
    for (int k = 0; k < c->n; k++)
        add_operands(w, &c->turn[k], &reads, &writes);
    const bool is_forward = c->n == 1 && first->computation == FORWARD;
    fprintf(w->out, "task %s d%d.compute %s layer=%d micro=%d role=%s reads=%s writes=%s\n", c->n == 2 ? "F&B" : name,
            c->row, format_exactly(number, time_of_cell(&w->times, c)), first->stage, first->micro,
            is_forward ? "forward" : "backward", reads + 1, writes + 1);
    for (int k = 0; k < c->n; k++)
        write_send(w, &c->turn[k]);
    free(reads);
    free(writes);
}

char *step_file_of(const struct schedule *schedule, const char *times)
{
    char *text;
    size_t bytes, n;
    struct writing w = {
        .s = schedule, .times = read_times(times, schedule->stages), .out = open_memstream(&text, &bytes)};
    const struct turn_cell **order = order_cells(schedule, UNTIED, &n);
    warn_of_unused(schedule, &w.times);
    w.began = allocate((size_t)schedule->stages, sizeof *w.began);
    for (size_t row = 0; row < schedule->n; row++)
        fprintf(w.out, "device d%zu memory=1024G\nlane d%zu.download1\n", row, row);
    for (int stage = 0; stage < schedule->stages; stage++)
        write_tensors(&w, stage);
    for (size_t i = 0; i < n; i++)
        write_cell(&w, order[i]);
    for (int stage = 0; stage < schedule->stages; stage++) {
        const int row = schedule->row_of[stage];
        fprintf(w.out, "task update d%d.compute 0 layer=%d role=update reads=g%d,w%d writes=w%d\n", row, stage, stage,
                stage, stage);
    }
    fclose(w.out);
    free(w.times.seconds);
    free(w.began);
    free(order);
    return text;
}
