/* schedule_read.c - the schedule that a list follows.
 *
 *     task forward  s0.compute micro=0 role=forward             0F0
 *     copy send     ...        micro=0 role=send                from here on micro-batch 0 is on the next stage
 *     task forward  s1.compute micro=0 role=forward             1F0
 *     task dx       s1.compute micro=0 role=backward            1I0: it writes no gradient of a weight
 *     task dw       s1.compute micro=0 role=backward            1W0: it writes nothing else
 *
 * Tasks side by side on a device are one cell where they are of one stage, micro-batch and half.  Gradients of weights
 * among those of inputs make a whole backward.  What is sent tells where a stage ends.  A backward is of the stage
 * whose forward, or whose backward before it, made what it reads; if that forward was of another micro-batch, the task
 * is a forward too, and the two overlap.
 */
#include "schedule.h"

struct maker { /* what made the bytes of a tensor */
    bool is_known, is_forward;
    bool is_sent; /* they have come from the stage after `stage` */
    int stage, micro;
};
struct list_reading {
    struct schedule *schedule;
    const struct list *list;
    struct maker *makers; /* by tensor: of its last writer */
    struct row *rows;     /* by device: its cells */
    int *stage;           /* by micro-batch: the stage of its last forward; NONE: none has come */
    int *stage_device;    /* by stage: its device */
    bool *sent;           /* by micro-batch: has what that made been sent? */
};

#define refuse_task(reading, t, ...)                                                                                   \
    fail(EXIT_USAGE, "%s, task %zu %s: %s", (reading)->schedule->name, (t)->index, (t)->name,                          \
         format_string(__VA_ARGS__))

/* The task's micro-batch; 0 where the list has none. */
static int micro_of(const struct list_reading *reading, const struct task *task)
{
    if (task->micro >= MOST_MICROS)
        refuse_task(reading, task, "a schedule has micro-batches below %d", MOST_MICROS);
    return MAX(task->micro, 0);
}

/* The cell of the device to which a task may belong: its last one, if that does this turn. */
static struct turn_cell *open_cell(const struct row *row, const struct turn *turn)
{
    struct turn_cell *last = row->n > 0 ? &row->cells[row->n - 1] : NULL;
    if (!last || last->n != 1 || last->turns[0].stage != turn->stage || last->turns[0].micro != turn->micro)
        return NULL;
    bool both_ways = (last->turns[0].computation == FORWARD) != (turn->computation == FORWARD);
    return both_ways ? NULL : last;
}

/* The stage to which the task's micro-batch has come: the next one, if what its last forward made has been sent. */
static int enter_stage(struct list_reading *reading, const struct task *task)
{
    const int micro = micro_of(reading, task), device = task->lane->device->index;
    int *stage = &reading->stage[micro];
    if (*stage == NONE)
        *stage = 0;
    else if (reading->sent[micro])
        *stage += 1;
    reading->sent[micro] = false;
    if (*stage >= MOST_STAGES)
        refuse_task(reading, task, "a schedule has fewer than %d stages", MOST_STAGES);
    if (reading->stage_device[*stage] == NONE)
        reading->stage_device[*stage] = device;
    if (reading->stage_device[*stage] != device)
        refuse_task(reading, task,
                    "it is on %s, and micro-batch %d is on stage %d, which is on %s: the form has one device for a "
                    "stage, and a send between two",
                    task->lane->device->id, micro, *stage,
                    reading->list->pool->machine->devices[reading->stage_device[*stage]].id);
    return *stage;
}

enum which_micro { OWN_MICRO, OTHER_MICRO };

/* What made a tensor that the task reads: a forward of its own micro-batch, or, if there is none, a backward of it;
 * with OTHER_MICRO a forward of another micro-batch.  NULL: the task reads no such tensor. */
static const struct maker *maker_of(const struct list_reading *reading, const struct task *task, enum which_micro which)
{
    const struct maker *found = NULL;
    for (int i = 0; i < task->n_accesses; i++) {
        const struct maker *maker = &reading->makers[task->accesses[i].tensor->storage->id];
        const enum which_micro its = maker->micro == micro_of(reading, task) ? OWN_MICRO : OTHER_MICRO;
        if (!(task->accesses[i].mode & ACCESS_READ) || !maker->is_known || its != which)
            continue;
        if (maker->is_forward)
            return maker;
        if (which == OWN_MICRO)
            found = maker;
    }
    return found;
}

/* What a backward task computes, as the tensors say that it writes. */
static enum computation computation_of(const struct task *task)
{
    bool weights = false, input = false; /* does the task write gradients of weights, of an input? */
    for (int i = 0; i < task->n_accesses; i++) {
        bool writes = task->accesses[i].mode & ACCESS_WRITE;
        bool of_weight = task->accesses[i].tensor->storage->class == MEM_GRADIENTS;
        weights |= writes && of_weight;
        input |= writes && !of_weight;
    }
    if (weights && input)
        return BACKWARD;
    return weights ? WEIGHT_GRADIENT : INPUT_GRADIENT;
}

/* The cell makes what the task writes; of two turns that overlap, the forward makes the activations. */
static void note_makes(struct list_reading *reading, const struct task *task, const struct turn_cell *cell)
{
    for (int i = 0; i < task->n_accesses; i++) {
        const struct tensor *tensor = task->accesses[i].tensor->storage;
        if (!(task->accesses[i].mode & ACCESS_WRITE))
            continue;
        const struct turn *turn = &cell->turns[0];
        if (cell->n == 2 && tensor->class != MEM_ACTIVATIONS)
            turn = &cell->turns[1];
        reading->makers[tensor->id] = (struct maker){
            .is_known = true,
            .is_forward = turn->computation == FORWARD,
            .stage = turn->stage,
            .micro = turn->micro,
        };
    }
}

/* backward: the turn that overlaps this forward in one task; NULL: none. */
static void add_forward(struct list_reading *reading, const struct task *task, const struct maker *backward)
{
    struct turn_cell cell = {
        .turns = {{FORWARD, enter_stage(reading, task), micro_of(reading, task)}}, .n = 1, .task = task};
    struct row *row = &reading->rows[task->lane->device->index];
    if (backward) {
        cell.turns[1] = (struct turn){BACKWARD, backward->stage, backward->micro};
        cell.n = 2;
    }
    if (backward || !open_cell(row, &cell.turns[0]))
        add_cell(row, cell);
    note_makes(reading, task, &cell);
}

/* The device's last cell is a whole backward, and an I just before it is a part of that. */
static void make_whole(struct row *row)
{
    const struct turn last = row->cells[row->n - 1].turns[0];
    row->n--;
    struct turn_cell *first = open_cell(row, &last);
    if (!first) {
        row->n++;
        first = &row->cells[row->n - 1];
    }
    first->turns[0].computation = BACKWARD;
}

/* Has the row computed the input's gradient for the stage and micro-batch of `maker`? */
static bool has_input_gradient(const struct row *row, const struct maker *maker)
{
    for (const struct turn_cell *cell = row->cells; cell < row->cells + row->n; cell++) {
        const struct turn *turn = &cell->turns[0];
        if (turn->computation == INPUT_GRADIENT && turn->stage == maker->stage && turn->micro == maker->micro)
            return true;
    }
    return false;
}

/* Adds the task to the device's last cell, if it belongs there, or gives it a cell.  A first stage may have no gradient
 * of an input.  Then a task that computes the gradients of its weights is a whole backward. */
static void add_backward(struct list_reading *reading, const struct task *task)
{
    const struct maker *maker = maker_of(reading, task, OWN_MICRO);
    struct row *row = &reading->rows[task->lane->device->index];
    enum computation now = computation_of(task);
    if (!maker)
        refuse_task(reading, task,
                    "cannot tell which stage this backward belongs to: it reads nothing that a forward has made");
    if (now == WEIGHT_GRADIENT && !has_input_gradient(row, maker))
        now = BACKWARD;
    const struct turn_cell cell = {.turns = {{now, maker->stage, maker->micro}}, .n = 1, .task = task};
    const struct turn_cell *open = open_cell(row, &cell.turns[0]);
    if (!open || (now == WEIGHT_GRADIENT && open->turns[0].computation == INPUT_GRADIENT))
        add_cell(row, cell);
    else if (now != open->turns[0].computation)
        make_whole(row);
    note_makes(reading, task, &cell);
}

/* A copy keeps the maker.  A sent gradient belongs to the stage before.  A sent activation loses its maker, since
 * reading->sent says its reader's stage. */
static void follow_copy(struct list_reading *reading, const struct task *task)
{
    struct maker *to = &reading->makers[copy_target(task)->storage->id];
    *to = reading->makers[copy_source(task)->storage->id];
    if (task->role != ROLE_SEND || !to->is_known || to->is_sent)
        return;
    if (to->is_forward)
        reading->sent[to->micro] = true;
    else
        to->stage--;
    to->is_known = !to->is_forward && to->stage >= 0;
    to->is_sent = true;
}

static void add_task(struct list_reading *reading, const struct task *task)
{
    const struct maker *overlapped = NULL;
    if (task->role == ROLE_BACKWARD)
        overlapped = maker_of(reading, task, OTHER_MICRO);
    if (is_copy(task))
        follow_copy(reading, task);
    else if (task->role == ROLE_FORWARD || overlapped)
        add_forward(reading, task, overlapped);
    else if (task->role == ROLE_BACKWARD)
        add_backward(reading, task);
}

/* Devices without a stage have no row. */
static void gather_rows(struct list_reading *reading)
{
    for (int d = 0; d <= reading->list->pool->machine->n_devices; d++) {
        struct row *row = &reading->rows[d];
        if (row->n == 0)
            continue;
        for (size_t i = 0; i < row->n; i++)
            row->cells[i].row = (int)reading->schedule->n;
        reading->schedule->rows = grow(reading->schedule->rows, &reading->schedule->cap, reading->schedule->n + 1,
                                       sizeof *reading->schedule->rows);
        reading->schedule->rows[reading->schedule->n++] = *row;
    }
}

struct schedule *new_schedule_of_list(const char *name, const struct list *list)
{
    struct list_reading reading = {.list = list, .schedule = allocate(1, sizeof *reading.schedule)};
    reading.schedule->name = name;
    reading.makers = allocate(list->pool->n, sizeof *reading.makers);
    reading.rows = allocate((size_t)list->pool->machine->n_devices + 1, sizeof *reading.rows);
    reading.stage = allocate(MOST_MICROS, sizeof *reading.stage);
    reading.stage_device = allocate(MOST_STAGES, sizeof *reading.stage_device);
    reading.sent = allocate(MOST_MICROS, sizeof *reading.sent);
    for (int i = 0; i < MOST_MICROS; i++)
        reading.stage[i] = NONE;
    for (int i = 0; i < MOST_STAGES; i++)
        reading.stage_device[i] = NONE;
    for (size_t i = 0; i < list->n; i++)
        add_task(&reading, list->tasks[i]);
    gather_rows(&reading);
    if (reading.schedule->n == 0)
        fail(EXIT_USAGE, "%s: no task is a forward or a backward: it has no schedule", name);
    index_cells(reading.schedule);
    free(reading.makers);
    free(reading.rows);
    free(reading.stage);
    free(reading.stage_device);
    free(reading.sent);
    return reading.schedule;
}
