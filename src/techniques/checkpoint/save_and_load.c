/* save_and_load.c - saves the state of the devices in a checkpoint, and loads it back.
 *
 * Each rank's state is read from its device, a piece at a time, and written as it is: nothing is gathered.  Loading
 * puts a tensor together from the pieces of the files, whatever mesh they were cut by.  Then the model cuts the tensor
 * for every rank that keeps a part of it.
 */
#include "files.h"
#include "resume.h"

/* ---- saving ------------------------------------------------------------------------------------------------------ */

void save_checkpoint(struct model *model, const char *folder, struct checkpoint *checkpoint)
{
    char *bytes = NULL; /* one piece's */
    size_t cap = 0;
    checkpoint->path = format_string("%s/step-%u", folder, checkpoint->step);
    checkpoint->cut = new_cut_tensors(&model->params->config, model->mesh);
    remove_stray_folders(folder, "step-");
    struct rank_writers writers = open_ranks(checkpoint);
    for (size_t i = 0; i < checkpoint->cut->n; i++) {
        const struct kept_tensor *tensor = &checkpoint->cut->tensors[i];
        for (struct piece *piece = tensor->pieces; piece < tensor->pieces + tensor->n_pieces; piece++) {
            size_t n = ELEMENT_BYTES * piece_elements(piece);
            GROW(bytes, cap, n);
            read_bytes_of(tensor_of(&model->replicas[piece->rank], tensor->unit, tensor->role),
                          ELEMENT_BYTES * piece->memory_offset, n, bytes);
            write_piece(&writers, piece, bytes);
        }
    }
    publish_ranks(&writers, checkpoint);
    free(bytes);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* One buffer serves all tensors, since the first use of fresh pages takes longer than hashing what goes into them. */
void load_checkpoint(struct model *model, struct checkpoint *checkpoint, enum loaded_state wanted)
{
    float *values = NULL;
    size_t cap = 0;
    for (size_t i = 0; i < checkpoint->cut->n; i++) {
        const struct kept_tensor *tensor = &checkpoint->cut->tensors[i];
        if (wanted == LOAD_PARAMETERS && tensor->role != KEPT_VALUE)
            continue;
        GROW(values, cap, tensor_elements(tensor));
        read_kept(checkpoint, i, values);
        uint64_t begun = now_ns();
        write_param(model, tensor->param, tensor->role, values);
        checkpoint->times.upload += now_ns() - begun;
    }
    free(values);
}
