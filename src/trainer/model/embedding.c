/* embedding.c - the embedding, x = wte[token] + wpe[position], and its gradient.  The mathematics is in cl/embed.cl. */
#include "model.h"

static void embed_weights(struct builder *b, const struct op *op)
{
    const struct config *config = &b->model->params->config;
    struct replica *replica = b->replica;
    struct tensor *dx = gradient(b, op->out);
    struct tensor *by_token = op->saved[0], *start = op->saved[1];
    struct tensor *dwte = replica->lookup_grad ? replica->lookup_grad : replica->unlayered[WTE].grad;
    struct tensor *dwpe = replica->unlayered[WPE].grad;
    int tokens = b->batch * b->seq;
    int words = rows_of(dwte);
    bool accumulate_wte = begin_contribution(b, dwte);
    bool accumulate_wpe = begin_contribution(b, dwpe);
    int rows = accumulate_wte ? 2 * MIN(tokens, words) : words; /* of dwte: rows read and written, or only written */
    struct task *task =
        LAUNCH(b, "embed.dwte", "embed.cl", "embed_backward_tokens", work_groups(b, words),
               ACCUMULATE(dwte, accumulate_wte),
               IN(dx), IN(by_token), IN(start),
               INT(replica->unlayered[WTE].first), INT(config->channels), INT(accumulate_wte));
    set_traffic(task, (double)config->channels * (tokens + rows));
    LAUNCH(b, "embed.dwpe", "embed.cl", "embed_backward_positions", work_groups(b, config->seq_len),
           ACCUMULATE(dwpe, accumulate_wpe),
           IN(dx),
           INT(b->batch), INT(b->seq), INT(config->channels), INT(accumulate_wpe));
}

struct tensor *embed(struct builder *b, const struct batch *batch)
{
    const struct config *config = &b->model->params->config;
    int tokens = b->batch * b->seq;
    struct weight wte = b->replica->unlayered[WTE];
    struct tensor *x = activation(b, "embed", SHAPE(tokens, config->channels));
    bool adds_position = wte.cut.split == SPLIT_NONE || b->tp_rank == 0;
    struct task *task =
        LAUNCH(b, "embed", "embed.cl", "embed_forward", work_groups(b, tokens),
               OUT(x),
               IN(wte.value), IN(b->replica->unlayered[WPE].value), IN(batch->tokens),
               INT(wte.first), INT(rank_vocab(b)), INT(b->seq), INT(config->channels), INT(adds_position));
    set_traffic(task, (double)config->channels * (2 * tokens + b->seq));
    if (wte.cut.split == SPLIT_ROWS)
        all_reduce(b, "embed", x);
    struct op *op = record_op(b, "embed", embed_weights, NULL, x, NULL);
    op->saved[0] = batch->by_token;
    op->saved[1] = batch->start;
    return x;
}
