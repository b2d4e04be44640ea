/* build.c - the builder of lists: adds tasks, and records operations on a tape from which backward follows.
 *
 * Deliberately simple: an operation's gradient tasks come in exactly the reverse order of the forward ones, and each
 * tensor's gradient is one tensor to which later contributions are added.
 */
#include "model.h"
#include "trainer/base/additions.h"

/* ---- to which rank and unit tasks are added ---------------------------------------------------------------------- */

void on_rank(struct builder *b, int rank, int micro, enum role role)
{
    b->replica = &b->model->replicas[rank];
    b->device = b->replica->device;
    b->tp_rank = tp_of(b->model->mesh, rank);
    tag_tasks(b->list, NONE, micro, role);
}

void begin_unit(struct builder *b, int unit)
{
    b->unit = unit;
    b->list->tags.layer = layer_of_unit(b->model->params, unit);
}

void end_unit(struct builder *b) { b->list->tags.layer = NONE; }

/* ---- grids and tensors ------------------------------------------------------------------------------------------- */

struct grid work_groups(const struct builder *b, int n) { return groups_on(b->device, (size_t)n); }
struct grid blocks(const struct builder *b, size_t n) { return groups_on(b->device, ceil_div(n, BLOCK)); }

struct grid column_blocks(const struct builder *b, int n)
{
    return groups_on(b->device, ceil_div((size_t)n, b->device->shape.work_group > 1 ? GPU_COLUMNS : CPU_COLUMNS));
}

struct tensor *activation(struct builder *b, const char *name, struct shape shape)
{
    const struct tensor_form form = {.device = b->device, .class = MEM_ACTIVATIONS, .name = name, .shape = shape};
    return new_tensor(b->list->pool, &form);
}

int rank_vocab(const struct builder *b) { return (int)params_of(b->model, b->replica->rank)->items[WTE].shape[0]; }
int columns_of(const struct tensor *x) { return (int)x->shape.size[x->shape.n_dims - 1]; }
int rows_of(const struct tensor *x) { return (int)(count_elements(x) / (size_t)columns_of(x)); }

/* ---- gradients --------------------------------------------------------------------------------------------------- */

struct tensor *gradient(const struct builder *b, const struct tensor *x)
{
    return x->id < b->cap_grad ? b->grads[x->id] : NULL;
}

void set_gradient(struct builder *b, const struct tensor *x, struct tensor *g)
{
    GROW(b->grads, b->cap_grad, x->id + 1);
    b->grads[x->id] = g;
}

/* Notes that this step, or this gradient group, adds to gradient x.  Returns true if it has added to x before. */
static bool begin_sum(struct builder *b, const struct tensor *x)
{
    int grad_group = x->class == MEM_GRADIENTS ? b->tape->grad_group + 1 : 1;
    GROW(b->summed, b->cap_summed, x->id + 1);
    bool before = b->summed[x->id] == grad_group;
    b->summed[x->id] = grad_group;
    return before;
}

/* A unit's tensor has gaps between its parameters.  Norm and update read the gaps too, so there must be zeros in them.
 * New memory is all zeros, and a gradient that persists keeps them.  A gradient that does not persist finds what
 * other tensors have left in its bytes, and is cleared first. */
bool begin_contribution(struct builder *b, const struct tensor *grad)
{
    struct tensor *unit = grad->storage;
    bool finds_other_values = unit != grad && unit->class == MEM_GRADIENTS && !unit->persistent;
    if (finds_other_values && !begin_sum(b, unit)) {
        size_t n = count_elements(unit);
        struct task *clear =
            LAUNCH(b, "grad.clear", "elementwise.cl", "fill", blocks(b, n),
                   OUT(unit),
                   FLOAT(0), ELEMENTS(n));
        set_elementwise(clear);
    }
    return begin_sum(b, grad);
}

struct tensor *new_gradient(struct builder *b, const struct op *op, const char *suffix, const struct tensor *x)
{
    return activation(b, JOINED(op->name, suffix), x->shape);
}

void accumulate_gradient(struct builder *b, const struct op *op, const struct tensor *x, struct tensor *g)
{
    struct tensor *old = gradient(b, x), *sum = g;
    size_t n = count_elements(x);
    if (old) {
        sum = new_gradient(b, op, ".sum", x);
        struct task *task = LAUNCH(b, JOINED(op->name, ".sum"), "elementwise.cl", "add", blocks(b, n),
                                   OUT(sum),
                                   IN(old), IN(g),
                                   ELEMENTS(n));
        set_elementwise(task);
    }
    set_gradient(b, x, sum);
}

/* ---- the tape ---------------------------------------------------------------------------------------------------- */

struct op *record_op(struct builder *b, const char *name, gradient_rule *weight_rule, gradient_rule *input_rule,
                     struct tensor *out, struct tensor *in)
{
    struct tape *tape = b->tape;
    if (!b->backward_wanted)
        return &b->unrecorded;
    GROW(tape->ops, tape->cap, tape->n + 1);
    struct op *op = &tape->ops[tape->n++];
    *op = (struct op){.weight_rule = weight_rule,
                      .input_rule = input_rule,
                      .unit = b->unit,
                      .out = out,
                      .in = {in},
                      .end = b->list->n};
    snprintf(op->name, sizeof op->name, "%s", name);
    return op;
}

void backward(struct builder *b, int unit, enum computation which)
{
    begin_unit(b, unit);
    for (size_t i = b->tape->n; i-- > 0;) {
        const struct op *op = &b->tape->ops[i];
        if (op->unit == unit && op->weight_rule && which != INPUT_GRADIENT)
            op->weight_rule(b, op);
        if (op->unit == unit && op->input_rule && which != WEIGHT_GRADIENT)
            op->input_rule(b, op);
    }
    end_unit(b);
}

/* ---- engines of matrix products ---------------------------------------------------------------------------------- */

enum { CLBLAST_ITEMS = 64 }; /* work-items of a work-group of CLBlast's */

bool has_own_products(const struct device *device)
{
    return !device->quirks.short_loops &&
           (device->is_cpu || device->shape.most_items < CLBLAST_ITEMS || device->shape.forced);
}

enum gemm_engine choose_engine(const struct device *device, enum gemm_engine wanted)
{
    enum gemm_engine engine = wanted;
    if (engine == GEMM_AUTO)
        engine = device->shape.one_item ? GEMM_OWN : GEMM_CLBLAST;
    if (engine == GEMM_OWN && !has_own_products(device)) {
        const char *why = "is a GPU, where --gemm own computes one work-item at a time";
        if (device->quirks.short_loops)
            why = "ends a kernel's loops too soon for --gemm own";
        fail(EXIT_USAGE, "device %s, %s, %s: use --gemm clblast", device->id, device->name, why);
    }
    if (engine == GEMM_CLBLAST && device->shape.most_items && device->shape.most_items < CLBLAST_ITEMS)
        fail(EXIT_USAGE, "device %s, %s, takes work-groups of %zu work-items, and CLBlast's have %d: use --gemm own",
             device->id, device->name, device->shape.most_items, CLBLAST_ITEMS);
    return engine;
}

/* ---- a builder --------------------------------------------------------------------------------------------------- */

/* Refuses micro-batches of `tokens` tokens where the driver would end a kernel's loops too soon.  The longest loops go
 * over all tokens; embed_backward_tokens does so again for each part of a row.  The driver counts rounds of inner loops
 * and ends of loops too, so one of our rounds may be four of its own. */
static void check_loops(const struct device *device, int channels, int tokens)
{
    size_t parts = ceil_div((size_t)channels, (size_t)device->shape.work_group * device->shape.vector);
    size_t most = SHORT_LOOPS / 4 / parts;
    if (device->quirks.short_loops && (size_t)tokens > most)
        fail(EXIT_USAGE,
             "device %s, %s, ends a kernel's loops after %d rounds: a micro-batch may have %zu tokens there, "
             "not %d; use %s, or another driver",
             device->id, device->name, SHORT_LOOPS, most, tokens, ways_to_shrink);
}

struct builder make_builder(struct list *list, struct model *model, struct kernels kernels, int batch, int seq)
{
    struct builder b = {.list = list, .model = model, .kernels = kernels, .batch = batch, .seq = seq};
    b.reductions = allocate_each(model->params->n_units * model->mesh->tp, sizeof *b.reductions);
    for (int rank = 0; rank < n_ranks(model->mesh); rank++)
        check_loops(model->replicas[rank].device, model->params->config.channels, batch * seq);
    on_rank(&b, 0, NONE, ROLE_OTHER);
    return b;
}

void end_build(struct builder *b)
{
    for (int i = 0; i < b->model->params->n_units * b->model->mesh->tp; i++) {
        free(b->reductions[i].sums);
        free(b->reductions[i].first_block);
    }
    free(b->grads);
    free(b->summed);
    free(b->reductions);
    free(b->met);
}
