/* norm.c - the norm of all gradients, by which they are clipped, and whether losses and norm are finite.
 *
 * Owners of shards take sums of squares over fixed blocks.  One rank adds them up in table order, and halts the updates
 * when the norm or a rank's loss is not finite.
 */
#include "model_parts.h"

/* Sends norm, clip scale and whether the update is halted to all other ranks. */
static void send_verdict(struct builder *b)
{
    struct tensor **verdicts = allocate_each(n_ranks(mesh_of(b)), sizeof *verdicts);
    int n_others = 0;
    for (int rank = 0; rank < n_ranks(mesh_of(b)); rank++)
        if (rank != b->model->norm_rank)
            verdicts[n_others++] = b->model->replicas[rank].verdict;
    add_broadcast(b->list, "norm.send", verdicts, n_others, b->replica->verdict, FOR_MOVES);
    free(verdicts);
}

/* Adds the verdict on the losses and on the norm, whose n block sums are `sums`; with NO_TENSOR on the losses alone. */
static void add_verdict(struct builder *b, const char *name, struct arg sums, size_t n, struct tensor *losses)
{
    on_rank(b, b->model->norm_rank, NONE, ROLE_NORM);
    LAUNCH(b, name, "norm.cl", "norm_finish", work_groups(b, 1),
           INOUT(b->replica->verdict),
           sums, INT(n),
           IN(b->replica->control),
           IN(losses), INT(count_elements(losses)));
}

void finish_norm(struct builder *b, struct tensor *losses)
{
    add_verdict(b, "norm.finish", IN(b->partials), count_elements(b->partials), losses);
    if (!b->released)
        send_verdict(b);
}

void add_loss_check(struct builder *b, struct tensor *losses)
{
    add_verdict(b, "loss.check", NO_TENSOR, 0, losses);
    send_verdict(b);
}
