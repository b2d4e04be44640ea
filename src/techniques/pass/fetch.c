/* fetch.c - lists beside the one for training, whose state lives on the host now.
 *
 * Passes move state there for the training list's sake.  Evaluation and sampling only read it: each layer's work
 * fetches what it uses, and nothing goes back.  Tasks of one layer, or that stand side by side, share what was fetched.
 */
#include "pass.h"

struct fetched { /* state of the host, as a device has it for now */
    struct tensor *there;
    const struct task *user; /* the last one */
};

void fetch_state(struct step *s)
{
    size_t n = s->n, n_tensors = s->pool->n;
    struct fetched *fetched = allocate(n_tensors, sizeof *fetched);
    struct edit *e = open_edit(s);
    for (size_t i = 0; i < n; i++) {
        struct task *t = s->task[i];
        struct device *d = t->lane->device;
        for (int k = 0; k < t->n_access && !t->copy && !d->is_host; k++) {
            struct tensor *x = t->access[k].tensor->storage;
            if ((size_t)x->id >= n_tensors || !x->device->is_host)
                continue;
            struct fetched *f = &fetched[x->id];
            if (!f->there || f->there->device != d || !(same_block(f->user, t) || t->index - f->user->index == 1)) {
                f->there = tensor_like(s->pool, d, x);
                insert_before(e, t);
                s->tags.role = ROLE_SWAP;
                carry(s, "swap.in", f->there, x, FOR_SWAP);
            }
            f->user = t;
            repoint(e, t, x, f->there);
        }
    }
    commit(e);
    free(fetched);
}
