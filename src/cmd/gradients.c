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
 * The operations are those that the forward of a small model leaves on the tape.  Its sizes divide neither vectors nor
 * tiles.  The inputs of an operation are the tensors that its forward tasks read and none of them writes.  A backward
 * is added to the list twice: the first one starts each gradient, the second one adds to it.  So they make 2 L'.
 */
#include "../base/table.h"
#include "../train/train.h"
#include "cmd.h"

#include <math.h>

enum { SEQUENCES = 2, TOKENS = 7, MOST_INPUTS = 8 };
static const struct config small = {.layers = 1, .heads = 2, .channels = 20, .seq_len = 8, .vocab = 37, .tied = true};

struct range { /* of the list's tasks */
    size_t begin, end;
};
struct subject { /* an operation, as it is checked */
    struct op op;
    struct range forward, backward;
    struct tensor *dy, *input[MOST_INPUTS], *gradient[MOST_INPUTS];
    int n;
};
struct found {
    const char *tensor;
    size_t at;
    double backward, differences, error;
};

/* ---- the list --------------------------------------------------------------------------------------------------- */

static bool touches(const struct step *s, struct range r, const struct tensor *t, enum access_mode mode)
{
    for (size_t i = r.begin; i < r.end; i++)
        for (int k = 0; k < s->task[i]->n_access; k++)
            if (s->task[i]->access[k].tensor == t && (s->task[i]->access[k].mode & mode))
                return true;
    return false;
}

/* Where backward leaves the gradient of t; NULL: nowhere. */
static struct tensor *gradient_of(const struct build *b, const struct subject *o, const struct tensor *t)
{
    const struct replica *r = b->replica;
    if (t->class != MEM_PARAMETERS)
        return gradient(b, t);
    if (t == r->other[WTE].value && touches(b->step, o->backward, r->lookup_grad, ACCESS_WRITE))
        return r->lookup_grad;
    for (int i = 0; i < b->model->params->n; i++)
        if (r->by_param[i].value == t)
            return r->by_param[i].grad;
    return NULL;
}

static void add_backwards(struct build *b, struct subject *o)
{
    struct pool *pool = b->step->pool;
    b->step->tags.role = ROLE_BACKWARD;
    memset(b->grad, 0, b->cap_grad * sizeof *b->grad);
    memset(b->summed, 0, b->cap_summed * sizeof *b->summed);
    o->dy = like(b, &o->op, ".dy", o->op.out);
    set_gradient(b, o->op.out, o->dy);
    o->backward.begin = b->step->n;
    o->op.backward(b, &o->op), o->op.backward(b, &o->op);
    o->backward.end = b->step->n;
    for (size_t i = 0, n = pool->n; i < n; i++) {
        struct tensor *t = pool->tensors[i];
        if (t->element != FLOAT32 || !touches(b->step, o->forward, t, ACCESS_READ) ||
            touches(b->step, o->forward, t, ACCESS_WRITE))
            continue;
        CHECK(o->n < MOST_INPUTS, "%s reads more than %d tensors", o->op.name, o->n);
        o->gradient[o->n] = gradient_of(b, o, t);
        o->input[o->n++] = t;
    }
}

/* A forward, and each operation's backwards.  No tensor shares its bytes: tasks will run in another order. */
static struct subject *build_list(struct trainer *t, struct step *list, enum gemm_engine engine, struct feed *feed,
                                  size_t *n)
{
    struct build b = new_build(list, t->model, engine, t->micro_batch, t->seq);
    struct tape tape;
    b.backward_wanted = true;
    add_batch(t, list, feed, prepare_batch, t->batch * t->seq);
    size_t begin = list->n;
    forward_stage(&b, &tape, NULL, 0, 0, 0, 0, feed->first);
    cross_entropy(&b, gpt_head(&b, tape.out), feed->last, NULL, tokens_per_step(t));
    struct subject *all = allocate(*n = tape.n, sizeof *all);
    for (size_t i = 0; i < *n; begin = tape.ops[i++].end) {
        all[i] = (struct subject){.op = tape.ops[i], .forward = {begin, tape.ops[i].end}};
        add_backwards(&b, &all[i]);
    }
    for (size_t i = 0; i < t->pool->n; i++)
        t->pool->tensors[i]->persistent = true;
    must(finish_steps(t->pool, &list, 1));
    free(tape.ops), end_build(&b);
    return all;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static void run_tasks(struct step *s, struct range r)
{
    for (size_t i = r.begin; i < r.end; i++)
        run_alone(s, 1, i, &(struct task_flight){0});
}

static float *values_of(struct tensor *t)
{
    float *values = allocate(count_elements(t), sizeof *values);
    read_tensor(t, values);
    return values;
}

/* Normal deviates, moved to odd multiples of 1/8: a step of 1/8 stays on one side of a corner at 0, as ReLU has one,
 * and short sums of products are exact.  constant: all are that, unless it is 0. */
static void fill(struct tensor *t, float constant)
{
    float *values = allocate(count_elements(t), sizeof *values);
    for (size_t i = 0; i < count_elements(t); i++)
        values[i] =
            constant != 0 ? constant : (float)(floor(4 * random_normal(1, STREAM_TEST, (uint32_t)t->id, i)) + 0.5) / 4;
    write_tensor(t, values);
    free(values);
}

/* L, with that value for one element of x. */
static double loss_with(struct step *s, const struct subject *o, const float *dy, struct tensor *x, size_t at,
                        float value)
{
    double sum = 0;
    write_bytes_of(x, at * ELEMENT_BYTES, ELEMENT_BYTES, &value);
    run_tasks(s, o->forward);
    float *y = values_of(o->op.out);
    for (size_t i = 0; i < count_elements(o->op.out); i++)
        sum += (double)dy[i] * y[i];
    free(y);
    return sum;
}

/* Errors are relative to the tensor's largest element. */
static void compare_input(struct step *s, const struct subject *o, int input, const float *dy, struct found *worst)
{
    const float h = 1 / 16.0f;
    struct tensor *x = o->input[input];
    size_t n = count_elements(x);
    float *values = values_of(x), *given = o->gradient[input] ? values_of(o->gradient[input]) : NULL;
    double *expected = allocate(n, sizeof *expected), largest = 0;
    for (size_t i = 0; i < n; i++) {
        double near = loss_with(s, o, dy, x, i, values[i] + h) - loss_with(s, o, dy, x, i, values[i] - h);
        double far = loss_with(s, o, dy, x, i, values[i] + 2 * h) - loss_with(s, o, dy, x, i, values[i] - 2 * h);
        write_bytes_of(x, i * ELEMENT_BYTES, ELEMENT_BYTES, &values[i]);
        expected[i] = (8 * near - far) / (12 * h);
        largest = MAX(largest, fabs(expected[i]));
    }
    for (size_t i = 0; i < n; i++) {
        double ours = given ? given[i] / 2 : NAN, error = fabs(ours - expected[i]) / (largest > 0 ? largest : 1);
        if (!isnan(worst->error) && !(error <= worst->error))
            *worst = (struct found){x->name, i, ours, expected[i], error};
    }
    free(values), free(given), free(expected);
}

static struct found check_operation(struct step *s, const struct subject *o)
{
    struct found worst = {.tensor = "", .error = -1};
    for (int i = 0; i < o->n; i++)
        fill(o->input[i], 0);
    fill(o->dy, (float)o->op.scale);
    run_tasks(s, o->forward);
    run_tasks(s, o->backward);
    float *dy = values_of(o->dy);
    for (int i = 0; i < o->n; i++)
        compare_input(s, o, i, dy, &worst);
    free(dy);
    return worst;
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static const struct column columns[] = {{"operation", "operation", CELL_TEXT, 15, 0},
                                        {"inputs", "inputs", CELL_COUNT, 6, 0},
                                        {"error", "error", CELL_SHORT, 9, 0},
                                        {"worst in", "tensor", CELL_TEXT, 24, 0},
                                        {"element", "element", CELL_COUNT, 7, 0},
                                        {"backward", "backward", CELL_FIXED, 10, 6},
                                        {"differences", "differences", CELL_FIXED, 11, 6}};

int check_gradients(const struct settings *s)
{
    const double tolerance = was_given("tolerance") ? s->tolerance : 1e-4;
    struct machine_options options = machine_options_of(s);
    struct trainer t = {.settings = s, .machine = open_machine(&options), .config = small, .mesh = one_rank};
    struct table *table = new_table(columns, COUNT(columns));
    struct feed feed = {.trainer = &t};
    const struct subject *wrong = NULL;
    struct found first; /* of it */
    double worst = 0;
    size_t n;
    if (t.machine->n_devices > 1)
        fail(EXIT_USAGE, "yard check runs on one device: give a single one to -d");
    t.batch = t.micro_batch = SEQUENCES, t.micros = 1, t.seq = TOKENS;
    t.pool = new_pool(t.machine);
    t.model = new_model(t.pool, &small, &one_rank, true, (struct gradients){0});
    struct step *list = new_step(t.pool, "gradients");
    struct subject *all = build_list(&t, list, s->gemm, &feed, &n);
    for (size_t i = 0; i < t.pool->n; i++)
        if (t.pool->tensors[i]->element == FLOAT32)
            fill(t.pool->tensors[i], NAN); /* what a backward leaves out shows */
    run_tasks(list, (struct range){0, all[0].forward.begin});
    for (size_t i = 0; i < n; i++) {
        struct found e = check_operation(list, &all[i]);
        ROW(table, text_cell(all[i].op.name), number_cell(all[i].n), number_cell(e.error), text_cell(e.tensor),
            number_cell((double)e.at), number_cell(e.backward), number_cell(e.differences));
        worst = e.error <= worst ? worst : e.error; /* NaN is the worst */
        if (!wrong && !(e.error <= tolerance))
            wrong = &all[i], first = e;
    }
    if (s->json)
        print_json(json_pack("{s:f, s:o, s:s?, s:b, s:o}", "tolerance", tolerance, "worst", number_json(worst), "wrong",
                             wrong ? wrong->op.name : NULL, "passed", !wrong, "operations", table_json(table)));
    else
        print_table(stdout, table);
    if (wrong && !s->json)
        printf("FAILED: the backward of %s gives element %zu of the gradient of %s as %g; differences give %g: a "
               "relative error of %.1e, tolerance %.1e\n",
               wrong->op.name, first.at, first.tensor, first.backward, first.differences, first.error, tolerance);
    else if (!s->json)
        printf("passed: %zu operations, the worst error is %.2e; tolerance %.1e\n", n, worst, tolerance);
    free_table(table), free(all), free(feed.first);
    free_step(list), free_model(t.model), free_pool(t.pool), close_machine(t.machine);
    return wrong ? EXIT_FAILED : EXIT_OK;
}
