/* build.c - the builder of lists: adds tasks, and records operations on a tape from which backward follows.
 *
 * Deliberately simple: an operation's gradient tasks come in exactly the reverse order of the forward ones, and each
 * tensor's gradient is one tensor to which later contributions are added.
 */
#include "model.h"

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
