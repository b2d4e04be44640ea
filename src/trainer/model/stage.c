/* stage.c - the tasks of a turn: the forward of a stage, and what one stage sends to another. */
#include "model.h"

void on_tape(struct builder *b, struct tape *tape, enum role role)
{
    b->tape = tape;
    on_rank(b, tape->rank, tape->micro, role);
    if (tape->grad_group)
        b->replica = b->replica->second_set;
}

struct tape make_tape(const struct builder *b, int dp_rank, int stage, int micro, int grad_group)
{
    int rank = rank_at(b->model->mesh, dp_rank, stage) + b->tp_rank;
    return (struct tape){.rank = rank, .micro = micro, .grad_group = grad_group};
}

/* Adds the copy of a tensor that another stage has, and returns the tensor that it is copied to. */
static struct tensor *add_receive(struct builder *b, const char *name, struct tensor *from, const char *purpose)
{
    struct tensor *received = activation(b, name, from->shape);
    /* Otherwise the copy, and so the stage, would wait for tasks that used its bytes. */
    received->extra.exclusive = EXCLUSIVE_ALWAYS;
    add_move(b->list, name, received, from, purpose);
    return received;
}

void forward_stage(struct builder *b, struct tape *tape, int stage, const struct tape *before,
                   const struct batch *batch)
{
    on_tape(b, tape, ROLE_SEND);
    if (before)
        tape->in = add_receive(b, "send.x", before->out, FOR_ACTIVATIONS);
    b->list->tags.role = ROLE_FORWARD;
    tape->out = gpt_stage(b, stage, batch, tape->in);
}

void send_gradient(struct builder *b, struct tape *tape, const struct tape *before)
{
    on_rank(b, before->rank, tape->micro, ROLE_SEND);
    set_gradient(b, before->out, add_receive(b, "send.dx", gradient(b, tape->in), FOR_GRADIENTS));
}
