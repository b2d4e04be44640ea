/* save_and_load.c - saves the state of the devices in a checkpoint, and loads it back.
 *
 * Each rank's state is read from its device, a piece at a time, and written as it is: nothing is gathered.  Loading
 * puts a tensor together from the pieces of the files, whatever mesh they were cut by.  Then the model cuts the tensor
 * for every rank that keeps a part of it.
 */
#include "save_and_load.h"
#include "folder.h"
#include "rank_files.h"
#include "transfer.h"

/* ---- saving ----------------------------------------------------------------------------------------------------- */

void save_checkpoint(struct model *m, const char *folder, struct checkpoint *c)
{
    char *bytes = NULL; /* of one piece */
    size_t cap = 0;
    c->path = format_string("%s/step-%u", folder, c->step);
    c->pieces = cut_state(&m->params->config, m->mesh);
    remove_stray_folders(folder, "step-");
    struct ranks_written w = open_ranks(c);
    for (const struct kept_tensor *t = c->pieces->tensor; t < c->pieces->tensor + c->pieces->n; t++)
        for (struct piece *p = t->piece; p < t->piece + t->n; p++) {
            size_t n = ELEMENT_BYTES * piece_elements(p);
            bytes = grow(bytes, &cap, n, 1);
            read_bytes_of(tensor_of(&m->replica[p->rank], t->unit, t->role), ELEMENT_BYTES * p->memory_offset, n,
                          bytes);
            p->hash = hash_bytes(bytes, n, 0);
            st_write(w.file[p->rank], bytes, n);
        }
    publish_ranks(&w, c);
    free(bytes);
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

/* One buffer serves all tensors, since the first use of fresh pages takes longer than hashing what goes into them. */
void load_checkpoint(struct model *m, const struct checkpoint *c, enum loaded_state wanted)
{
    float *values = NULL;
    size_t cap = 0;
    for (size_t i = 0; i < c->pieces->n; i++) {
        const struct kept_tensor *t = &c->pieces->tensor[i];
        if (wanted == LOAD_PARAMETERS && t->role != KEPT_VALUE)
            continue;
        values = grow(values, &cap, tensor_elements(t), sizeof *values);
        read_kept(c, i, values);
        uint64_t begun = now_ns();
        write_param(m, t->param, t->role, values);
        c->buffer->upload += now_ns() - begun;
    }
    free(values);
}
