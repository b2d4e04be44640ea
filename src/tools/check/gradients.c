/* gradients.c - yard check --gradients: the backward of every operation against differences of its forward.
 *
 * An operation y = f(x) is given dy, the gradient of its output.  Its backward must make the gradient of
 *
 *     L = sum_i dy[i] y[i]
 *
 * The same follows from forward alone.  L(a) is L with a added to one element of x:
 *
 *     L'(0) ~ (8 (L(h) - L(-h)) - (L(2h) - L(-2h))) / 12h        what is left out falls with h^4
 *
 * The operations are those that the forward of a small model leaves on the tape.  Its sizes are above the longest
 * vector, and divide neither vectors nor tiles.  The inputs of an operation are the tensors that its forward tasks read
 * and none of them writes.  Its backward is added to the list twice: the first one starts each gradient, the second one
 * adds to it.  So they make 2 L'.
 */
#include "check.h"
#include "planning/console/table.h"
#include "trainer/cmd/cmd.h"
#include "trainer/train/train_parts.h"

#include <math.h>

enum { SEQUENCES = 2, TOKENS = 17, ELEMENTS = 200 };
static const struct config small = {.layers = 1, .heads = 2, .channels = 20, .seq_len = 18, .vocab = 37};
enum { OPERATION, OF, ERROR, ELEMENT, BACKWARD_VALUE, DIFFERENCES, COLUMNS };
static const struct column columns[COLUMNS] = {
    [OPERATION] = {"operation", "operation", CELL_TEXT, 13, 0},
    [OF] = {"gradient of", "of", CELL_TEXT, 24, 0},
    [ERROR] = {"error", "error", CELL_SHORT, 9, 0},
    [ELEMENT] = {"at element", "element", CELL_COUNT, 10, 0},
    [BACKWARD_VALUE] = {"backward", "backward", CELL_FIXED, 11, 6},
    [DIFFERENCES] = {"differences", "differences", CELL_FIXED, 11, 6},
};

struct checked_op { /* an operation of the list, as it is checked */
    struct list *list;
    const struct op *op;
    size_t begin;            /* position of its first forward task */
    const struct tensor *dy; /* the gradient of its output; NULL: its backward reads none, it is the loss */
};

/* Normal deviates, moved to odd multiples of 1/8.  So short sums of products are exact, and the corner that ReLU has at
 * 0 is never within 2h. */
static float drawn_value(const struct tensor *tensor, size_t i)
{
    return (float)(floor(4 * random_normal(1, STREAM_TEST, (uint32_t)tensor->id, i)) + 0.5) / 4;
}

static void run_tasks(struct list *list, size_t begin, size_t end)
{
    struct task_flight flight = {0}; /* nobody asks for the times */
    for (size_t i = begin; i < end; i++)
        run_alone(list, list->tasks[i], 1, &flight);
}

/* Computes L, with that value for element i of the tensor.  A loss has op->scale for each element, in place of dy. */
static double loss_with(const struct checked_op *checked, struct tensor *tensor, size_t i, float value)
{
    size_t n = count_elements(checked->op->out);
    float *y = allocate(n, sizeof *y);
    double sum = 0;
    write_bytes_of(tensor, i * ELEMENT_BYTES, ELEMENT_BYTES, &value);
    run_tasks(checked->list, checked->begin, checked->op->end);
    read_tensor(checked->op->out, y);
    for (size_t k = 0; k < n; k++)
        sum += (checked->dy ? drawn_value(checked->dy, k) : checked->op->scale) * y[k];
    free(y);
    return sum;
}

/* The derivative of L by element i of the tensor, from four values of L.  The element keeps its value. */
static double difference_at(const struct checked_op *checked, struct tensor *tensor, size_t i)
{
    float h = 1 / 16.0f;
    float value = drawn_value(tensor, i);
    double far = loss_with(checked, tensor, i, value + 2 * h) - loss_with(checked, tensor, i, value - 2 * h);
    double near = loss_with(checked, tensor, i, value + h) - loss_with(checked, tensor, i, value - h);
    write_bytes_of(tensor, i * ELEMENT_BYTES, ELEMENT_BYTES, &value);
    return (8 * near - far) / (12 * h);
}

/* The element of a tensor where backward's gradient is farthest from the differences. */
struct worst {
    size_t element;
    double ours, expected; /* its gradient by backward, and by differences */
    double apart;          /* how far these are apart; a NaN stays */
    double largest;        /* the largest difference of all elements that were tried */
};

/* made: the sum of two equal gradients, since backward ran twice.  About ELEMENTS elements are tried, drawn at
 * random. */
static struct worst measure_worst(const struct checked_op *checked, struct tensor *tensor, const float *made)
{
    size_t n = count_elements(tensor);
    struct worst worst = {.apart = -1};
    for (size_t i = 0; i < n; i++) {
        if (random_words(2, STREAM_TEST, (uint32_t)tensor->id, i).word[0] % n >= ELEMENTS)
            continue;
        double ours = made[i] / 2;
        double expected = difference_at(checked, tensor, i);
        worst.largest = fmax(worst.largest, fabs(expected));
        if (isnan(worst.apart) || fabs(ours - expected) <= worst.apart)
            continue;
        worst.apart = fabs(ours - expected);
        worst.element = i;
        worst.ours = ours;
        worst.expected = expected;
    }
    return worst;
}

/* Adds a row to the table: how far backward's gradient `grad` of the tensor (NULL: none) is from the differences, at
 * worst.  The error is relative to the largest element. */
static void add_comparison(const struct checked_op *checked, struct tensor *tensor, struct tensor *grad,
                           struct table *table)
{
    float *made = allocate(count_elements(tensor), sizeof *made);
    struct cell row[COLUMNS];
    if (grad)
        read_tensor(grad, made);
    const struct worst worst = measure_worst(checked, tensor, made);
    row[OPERATION] = text_cell(checked->op->name);
    row[OF] = text_cell(tensor->name);
    row[ERROR] = number_cell(worst.largest > 0 ? worst.apart / worst.largest : worst.apart);
    row[ELEMENT] = number_cell((double)worst.element);
    row[BACKWARD_VALUE] = number_cell(worst.ours);
    row[DIFFERENCES] = number_cell(worst.expected);
    add_row(table, row);
    free(made);
}

/* The modes of all accesses that tasks [begin, end) have to the tensor. */
static int access_modes(const struct list *list, size_t begin, size_t end, const struct tensor *tensor)
{
    int mode = ACCESS_NONE;
    for (size_t i = begin; i < end; i++) {
        const struct task *task = list->tasks[i];
        for (int k = 0; k < task->n_accesses; k++)
            if (task->accesses[k].tensor == tensor)
                mode |= (int)task->accesses[k].mode;
    }
    return mode;
}

/* Adds the backward of the operation twice, from dy on. */
static void add_backward_twice(struct builder *b, const struct op *op, struct tensor *dy)
{
    set_gradient(b, op->out, dy);
    for (int i = 0; i < 2; i++) {
        if (op->weight_rule)
            op->weight_rule(b, op);
        if (op->input_rule)
            op->input_rule(b, op);
    }
}

static void write_values(const struct pool *pool)
{
    for (size_t i = 0; i < pool->n; i++) {
        struct tensor *tensor = pool->tensors[i];
        if (tensor->type != FLOAT32)
            continue;
        size_t n = count_elements(tensor);
        float *values = allocate(n, sizeof *values);
        for (size_t k = 0; k < n; k++)
            values[k] = drawn_value(tensor, k);
        write_tensor(tensor, values);
        free(values);
    }
}

/* ---- an operation is built, runs, and is compared ---------------------------------------------------------------- */

/* The small model's forward on a tape, in a list and a pool of its own. */
struct small_forward {
    struct list *list;
    struct model *model;
    struct builder builder;
    struct feed feed;
    struct tape tape;
    size_t batch_end;   /* the tasks before it make the batch */
    size_t forward_end; /* the tasks from here on are a backward */
};

/* Fills in `forward`, which must stay where it is: tasks point to it. */
static void build_forward(struct trainer *trainer, struct small_forward *forward)
{
    struct builder *b = &forward->builder;
    struct feed *feed = &forward->feed;
    struct pool *pool = new_pool(trainer->machine);
    forward->model = new_model(pool, &small, &one_rank, TO_TRAIN, (struct gradients){0});
    trainer->pool = pool;
    trainer->model = forward->model;
    forward->list = new_list(pool, "gradients");
    *b = make_builder(forward->list, forward->model, trainer->settings->kernels, SEQUENCES, TOKENS);
    *feed = (struct feed){.trainer = trainer, .n = SEQUENCES * TOKENS};
    forward->tape = make_tape(b, 0, 0, 0, 0);
    b->backward_wanted = true;
    add_batch(forward->list, feed, prepare_batch);
    forward->batch_end = forward->list->n;
    forward_stage(b, &forward->tape, 0, NULL, feed->on_first_stage);
    cross_entropy(b, gpt_head(b, forward->tape.out), feed->on_first_stage, NULL, SEQUENCES * TOKENS);
    forward->forward_end = forward->list->n;
}

/* Adds the backward of the tape's nth operation, and returns what is to be checked of it. */
static struct checked_op build_backward(struct small_forward *forward, size_t nth)
{
    struct list *list = forward->list;
    const struct op *op = &forward->tape.ops[nth];
    struct checked_op checked = {.list = list, .op = op, .begin = forward->batch_end};
    if (nth > 0)
        checked.begin = forward->tape.ops[nth - 1].end; /* where the operation before it ends */
    struct tensor *dy = new_gradient(&forward->builder, op, ".dy", op->out);
    add_backward_twice(&forward->builder, op, dy);
    checked.dy = access_modes(list, forward->forward_end, list->n, dy) ? dy : NULL;
    for (int i = 0; i < forward->model->params->n; i++) {
        const struct weight *weight = &forward->model->replicas->by_param[i];
        set_gradient(&forward->builder, weight->value, weight->grad);
    }
    return checked;
}

/* Gives addresses to all tensors, of which no two share bytes, and prepares the list for running. */
static void finish_forward(struct small_forward *forward)
{
    struct pool *pool = forward->list->pool;
    for (size_t i = 0; i < pool->n; i++)
        pool->tensors[i]->persistent = true;
    must(finish_lists(pool, &forward->list, 1));
}

static void free_forward(struct small_forward *forward)
{
    struct pool *pool = forward->list->pool;
    end_build(&forward->builder);
    free(forward->tape.ops);
    free(forward->feed.on_first_stage);
    free_list(forward->list);
    free_model(forward->model);
    free_pool(pool);
}

/* Runs the tasks that make the batch, then the operation, then its backward. */
static void run_operation(const struct small_forward *forward, const struct checked_op *checked)
{
    write_values(forward->list->pool);
    run_tasks(forward->list, 0, forward->batch_end);
    run_tasks(forward->list, checked->begin, checked->op->end);
    run_tasks(forward->list, forward->forward_end, forward->list->n);
}

/* Adds a row to the table for each tensor that the operation only reads. */
static void compare_inputs(const struct checked_op *checked, struct builder *b, struct table *table)
{
    const struct pool *pool = checked->list->pool;
    for (size_t i = 0; i < pool->n; i++) {
        struct tensor *tensor = pool->tensors[i];
        if (tensor->type == FLOAT32 &&
            access_modes(checked->list, checked->begin, checked->op->end, tensor) == ACCESS_READ)
            add_comparison(checked, tensor, gradient(b, tensor), table);
    }
}

static size_t count_operations(struct trainer *trainer)
{
    struct small_forward forward;
    build_forward(trainer, &forward);
    size_t n = forward.tape.n;
    free_forward(&forward);
    return n;
}

/* Checks the tape's nth operation, with a model of its own.  Adds a row to the table for each of its gradients. */
static void check_operation(struct trainer *trainer, size_t nth, struct table *table)
{
    struct small_forward forward;
    build_forward(trainer, &forward);
    const struct checked_op checked = build_backward(&forward, nth);
    finish_forward(&forward);
    run_operation(&forward, &checked);
    compare_inputs(&checked, &forward.builder, table);
    free_forward(&forward);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* The first row whose error is not at most `tolerance`; NULL: there is none. */
static const struct cell *find_wrong(const struct table *table, double tolerance)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct cell *row = &table->cells[i * COLUMNS];
        if (!(row[ERROR].number <= tolerance)) /* nor is a NaN */
            return row;
    }
    return NULL;
}

static void print_gradients_json(const struct table *table, double tolerance, const struct cell *wrong)
{
    json_t *all = json_object();
    json_object_set_new(all, "tolerance", json_real(tolerance));
    set_json_truth(all, "passed", !wrong);
    set_json_text(all, "wrong", wrong ? wrong[OPERATION].text : NULL);
    json_object_set_new(all, "gradients", table_json(table));
    print_json(all);
}

enum exit_code check_gradients(const struct settings *settings)
{
    double tolerance = was_given("tolerance") ? asked_check.tolerance : 1e-4;
    struct trainer trainer = {
        .settings = settings, .machine = open_machine_for(settings, false), .config = small, .mesh = one_rank};
    struct table *table = new_table(columns, COLUMNS);
    FILE *text = settings->json ? stderr : stdout;
    trainer.micro_batch = SEQUENCES;
    trainer.micros = 1;
    trainer.seq_len = TOKENS;
    size_t n = count_operations(&trainer);
    for (size_t i = 0; i < n; i++)
        check_operation(&trainer, i, table);
    const struct cell *wrong = find_wrong(table, tolerance);
    print_table(text, table);
    if (wrong)
        print_line(text, "FAILED: %s is the first operation with an error above %.1e, in the gradient of %s",
                   wrong[OPERATION].text, tolerance, wrong[OF].text);
    else
        fprintf(text, "passed: %zu gradients, each with an error of at most %.1e\n", table->n, tolerance);
    if (settings->json)
        print_gradients_json(table, tolerance, wrong);
    enum exit_code code = wrong ? EXIT_FAILED : EXIT_OK;
    free_table(table);
    close_machine(trainer.machine);
    return code;
}
