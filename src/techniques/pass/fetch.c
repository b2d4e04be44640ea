/* fetch.c - other lists than the one for training: they fetch state that passes have moved to the host.
 *
 * Passes move state to the host for the training list's sake.  Evaluation and sampling only read it: each layer's work
 * fetches the state that it uses, and nothing goes back.  Tasks that are of one layer, or side by side, share what was
 * fetched.
 */
#include "fetch.h"

#include "remake.h"

struct fetched {                    /* a tensor of the host, as a device has it for now */
    struct tensor *on_device;       /* NULL: no device has it yet */
    const struct task *last_reader; /* the last task that read it there */
};

/* Does t find there what was fetched for the last user? */
static bool still_there(const struct fetched *f, const struct task *t)
{
    if (!f->on_device || f->on_device->device != t->lane->device)
        return false;
    return same_block(f->last_reader, t) || t->index - f->last_reader->index == 1;
}

static void fetch(struct edit *e, struct step *s, struct task *t, struct tensor *x, struct fetched *f)
{
    if (!still_there(f, t)) {
        f->on_device = tensor_like(s->pool, t->lane->device, x);
        insert_before(e, t);
        s->tags.role = ROLE_SWAP;
        add_copy_for(s, "swap.in", f->on_device, x, FOR_SWAP);
    }
    f->last_reader = t;
    repoint(e, t, x, f->on_device);
}

void fetch_state(struct step *s)
{
    size_t n = s->n;
    size_t n_tensors = s->pool->n;
    struct fetched *fetched = allocate(n_tensors, sizeof *fetched); /* by tensor */
    struct edit *e = open_edit(s);
    for (size_t i = 0; i < n; i++) {
        struct task *t = s->task[i];
        if (is_copy(t) || t->lane->device->is_host)
            continue;
        for (int k = 0; k < t->n_access; k++) {
            struct tensor *x = t->access[k].tensor->storage;
            if ((size_t)x->id < n_tensors && x->device->is_host)
                fetch(e, s, t, x, &fetched[x->id]);
        }
    }
    commit(e);
    free(fetched);
}
