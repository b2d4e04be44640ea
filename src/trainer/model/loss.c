/* loss.c - the loss, -log softmax(logits)[target], with its gradient; cl/loss.cl has the mathematics. */
#include "model.h"

/* Each rank of a tensor-parallel group has the logits of some words.  It makes PART_NUMBERS numbers of them per token,
 * and each rank combines the numbers of all ranks. */
static void add_losses_of_parts(struct builder *b, struct tensor *losses, struct tensor *lse, struct tensor *logits,
                                struct tensor *targets)
{
    int tp_ranks = b->model->mesh->tp;
    int tokens = rows_of(logits);
    int padded = (int)round_up((size_t)tokens, UNIT_ALIGN);
    struct tensor *all = activation(b, "loss.parts", SHAPE(tp_ranks, PART_NUMBERS, padded));
    struct tensor *mine = new_view(b->list->pool, all, "loss.part", (size_t)(b->tp_rank * PART_NUMBERS * padded),
                                   SHAPE(PART_NUMBERS, padded));
    LAUNCH(b, "loss.part", "loss.cl", "loss_part", work_groups(b, padded),
           OUT(mine),
           IN(logits), IN(targets),
           INT(tokens), INT(padded), INT(b->replica->unlayered[HEAD].first), INT(rank_vocab(b)),
           INT(columns_of(logits)));
    all_gather(b, "loss", all);
    LAUNCH(b, "loss", "loss.cl", "loss_join", blocks(b, (size_t)tokens),
           OUT(losses), OUT(lse),
           IN(all),
           INT(tokens), INT(padded), INT(tp_ranks));
}

static void cross_entropy_inputs(struct builder *b, const struct op *op)
{
    struct tensor *logits = op->in[0];
    struct tensor *lse = op->saved[0], *targets = op->saved[1];
    int tokens = rows_of(logits);
    struct tensor *dlogits = new_gradient(b, op, ".dlogits", logits);
    LAUNCH(b, "loss.dlogits", "loss.cl", "loss_backward", work_groups(b, tokens),
           OUT(dlogits),
           IN(logits), IN(lse), IN(targets),
           INT(b->replica->unlayered[HEAD].first), INT(rank_vocab(b)), INT(columns_of(logits)),
           FLOAT((float)op->scale));
    accumulate_gradient(b, op, logits, dlogits);
}

struct tensor *cross_entropy(struct builder *b, struct tensor *logits, const struct batch *batch, struct tensor *total,
                             double tokens_per_step)
{
    int tokens = rows_of(logits), vocab = rank_vocab(b);
    struct tensor *losses = activation(b, "losses", SHAPE(tokens));
    struct tensor *lse = activation(b, "lse", SHAPE(tokens));
    if (vocab < b->model->params->config.vocab)
        add_losses_of_parts(b, losses, lse, logits, batch->targets);
    else
        LAUNCH(b, "loss", "loss.cl", "loss_forward", work_groups(b, tokens),
               OUT(losses), OUT(lse),
               IN(logits), IN(batch->targets),
               INT(vocab), INT(columns_of(logits)));
    if (total) {
        bool accumulate = begin_contribution(b, total);
        LAUNCH(b, "loss.sum", "loss.cl", "loss_sum", work_groups(b, 1),
               ACCUMULATE(total, accumulate),
               IN(losses),
               INT(tokens), INT(accumulate));
    }
    struct op *op = record_op(b, "loss", NULL, cross_entropy_inputs, losses, logits);
    op->saved[0] = lse;
    op->saved[1] = batch->targets;
    op->scale = 1 / tokens_per_step;
    return losses;
}
