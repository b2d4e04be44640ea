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

/* ---- AdamW on a range of a unit: a part, or any other update -------------------------------------------------------
 */

void update_range(struct build *b, int unit, int k, struct shard s, struct tensor *gradient, struct tensor *start)
{
    struct replica *r = b->replica;
    size_t n = s.end - s.begin, held = updated_by(b->model, unit, r->rank).begin;
    size_t n_decay = b->model->part[b->member]->unit[unit].n_decay;
    struct shard of_state = {s.begin - held, s.end - held};
    struct task *task =
        LAUNCH(b, "adamw", "adamw.cl", "adamw", blocks(b, n), INOUT(new_slice(b->step->pool, r->value[unit], k, s)),
               INOUT(new_slice(b->step->pool, r->m[unit], k, of_state)),
               INOUT(new_slice(b->step->pool, r->v[unit], k, of_state)), IN(gradient), IN(r->control), IN(r->state),
               ELEMENTS(n), ELEMENTS(n_decay > s.begin ? MIN(n_decay - s.begin, n) : 0), FIRST_ELEMENT,
               start ? IN(start) : NO_TENSOR, INT(b->model->params->config.channels), NO_TENSOR);
    set_elementwise(task);
    task->host_run = adamw_on_host;
}

/* ---- the parts ----------------------------------------------------------------------------------------------------
 */

static void at(struct build *b)
{
    on_rank(b, 0, -1, ROLE_UPDATE);
    b->step->stamp.layer = -1;
}

/* The words' part of what lies like their unit. */
static struct tensor *part(const struct build *b, struct tensor *unit)
{
    return new_slice(b->step->pool, unit, 0, (struct shard){0, count_elements(b->replica->other[WTE].value)});
}

void update_rest(struct build *b)
{
    at(b);
    struct tensor *grad = b->replica->other[WTE].grad;
    update_range(b, 0, 0, (struct shard){0, count_elements(grad)}, grad, b->words->start);
}

/* Positions' vectors, which lie behind the words' in their unit. */
static void update_positions(struct build *b)
{
    struct tensor *grad = b->replica->other[WPE].grad;
    size_t begin = grad->offset / ELEMENT_BYTES;
    update_range(b, 0, 1, (struct shard){begin, begin + count_elements(grad)}, grad, NULL);
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
