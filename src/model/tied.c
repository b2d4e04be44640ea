/* tied.c - the update of an embedding that is also the head, in two parts.
 *
 * Its gradient is the sum of two: the head's, which is first in the backward and has all rows, and the look-up's, which
 * is last and has only rows of words that the batch has.  So the other rows are final behind the head's backward, and
 * without clipping their update may start there:
 *
 *     head.dw                                    backward of the layers            embed.dwte  tied.add
 *             adamw  rest: rows of no word of the batch                                                 adamw  rows
 *
 * A row is of the rest in one step and not in the next; both parts change the same parameters and the same state, so
 * they stay on one side.  What moves between sides of `rows` is packed, a row per position of the batch:
 *
 *     tied.pack     gradients (V,C) -> (N,C)      the look-up itself, with gradients for vectors
 *     adamw         reads these and the parameters, writes new ones (N,C) and, in place, state (V,C)
 *     tied.unpack   new parameters (N,C) -> (V,C)
 *
 * All of this on one device gives the bits of one update: AdamW works by element, and a row is of one part only.
 */
#include "model.h"

static void at(struct build *b)
{
    on_rank(b, 0, -1, ROLE_UPDATE);
    b->step->stamp.layer = -1;
}

/* The embedding's part of its unit. */
static struct tensor *part(const struct build *b, struct tensor *unit)
{
    const struct param *wte = &b->model->params->param[0];
    return new_view(b->step->pool, unit, unit->name, wte->offset, wte->rank, wte->shape);
}

void update_rest(struct build *b)
{
    at(b);
    struct replica *r = b->replica;
    const struct weight *wte = &r->other[WTE];
    size_t n = count_elements(wte->value);
    struct task *task =
        LAUNCH(b, "adamw", "adamw.cl", "adamw_rest", blocks(b, n), INOUT(wte->value), INOUT(part(b, r->m[0])),
               INOUT(part(b, r->v[0])), IN(wte->grad), IN(r->control), IN(r->state), ELEMENTS(n), FIRST_ELEMENT,
               IN(b->words->start), INT(columns_of(wte->value)));
    set_elementwise(task);
    task->host_run = adamw_rest_on_host;
}

/* Positions' vectors, which lie behind the words' in their unit. */
static void update_positions(struct build *b)
{
    struct replica *r = b->replica;
    const struct param *wpe = &b->model->params->param[1];
    struct tensor *p = r->other[WPE].value, *g = r->other[WPE].grad;
    size_t n = count_elements(p);
    struct task *task = LAUNCH(b, "adamw", "adamw.cl", "adamw", blocks(b, n), INOUT(p),
                               INOUT(new_view(b->step->pool, r->m[0], r->m[0]->name, wpe->offset, p->rank, p->shape)),
                               INOUT(new_view(b->step->pool, r->v[0], r->v[0]->name, wpe->offset, p->rank, p->shape)),
                               IN(g), IN(r->control), IN(r->state), ELEMENTS(n), ELEMENTS(n), NO_TENSOR);
    set_elementwise(task);
    task->host_run = adamw_on_host;
}

void update_rows(struct build *b)
{
    at(b);
    struct replica *r = b->replica;
    const struct weight *wte = &r->other[WTE];
    const struct batch *words = b->words;
    int n = b->batch * b->seq, c = columns_of(wte->value);
    struct tensor *grad = new_tensor(b->step->pool, b->device, MEM_GRADIENTS, "packed.grad", FLOAT32, SHAPE(n, c));
    b->packed = new_tensor(b->step->pool, b->device, MEM_PARAMETERS, "packed.wte", FLOAT32, SHAPE(n, c));
    b->step->stamp.role = ROLE_REDUCE;
    set_traffic(LAUNCH(b, "tied.pack", "embed.cl", "embed_forward", groups(b, (size_t)n), OUT(grad), IN(wte->grad),
                       NO_TENSOR, IN(words->tokens), INT(0), INT(rows_of(wte->value)), INT(b->seq), INT(c), INT(0)),
                2.0 * n * c);
    b->step->stamp.role = ROLE_UPDATE;
    update_positions(b);
    struct task *task = LAUNCH(b, "adamw", "adamw.cl", "adamw_rows", groups(b, (size_t)rows_of(wte->value)),
                               OUT(b->packed), IN(wte->value), INOUT(part(b, r->m[0])), INOUT(part(b, r->v[0])),
                               IN(grad), IN(r->control), IN(r->state), IN(words->order), IN(words->start), INT(c));
    task->host_run = adamw_rows_on_host;
    set_traffic(task, 7.0 * n * c);
}

void unpack_rows(struct build *b)
{
    at(b);
    struct tensor *wte = b->replica->other[WTE].value;
    struct task *task =
        LAUNCH(b, "tied.unpack", "embed.cl", "embed_unpack", groups(b, (size_t)rows_of(wte)), INOUT(wte), IN(b->packed),
               IN(b->words->order), IN(b->words->start), INT(columns_of(wte)));
    task->host_run = unpack_on_host;
    set_traffic(task, 2.0 * b->batch * b->seq * columns_of(wte));
}
