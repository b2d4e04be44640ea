/* rank_files.c - the files of a checkpoint that is being written: one per rank, and last the manifest.
 *
 * The places of pieces in the files are known before the first byte is written, and the hashes of pieces when the last
 * byte is.  The files lie in a folder of another name until all are complete (folder.c).
 */
#include "rank_files.h"
#include "folder.h"
#include "manifest.h"

static struct st_writer *open_rank(struct folder *folder, int rank, uint32_t step)
{
    char name[48], number[16];
    snprintf(name, sizeof name, "rank-%d.safetensors", rank);
    snprintf(number, sizeof number, "%u", step);
    struct st_writer *out = new_st_writer(file_in(folder, name));
    st_metadata(out, "format", "pt");
    st_metadata(out, "yard.step", number);
    return out;
}

static void declare_piece(struct st_writer *out, const struct kept_tensor *t, size_t k)
{
    const struct piece *p = &t->piece[k];
    char name[96];
    int64_t shape[2] = {p->end[0] - p->begin[0], p->end[1] - p->begin[1]};
    st_declare(out, piece_name(name, t, k), DTYPE_F32, p->flat ? 1 : t->dims, shape);
}

struct ranks_written open_ranks(struct checkpoint *c)
{
    int n = n_ranks(&c->pieces->mesh);
    struct ranks_written w = {open_folder(c->path, (size_t)n + 1), allocate((size_t)n, sizeof *w.file)};
    const struct kept_tensor *tensor = c->pieces->tensor, *end = tensor + c->pieces->n;
    c->bytes = allocate((size_t)n, sizeof *c->bytes);
    for (const struct kept_tensor *t = tensor; t < end; t++)
        for (size_t k = 0; k < t->n; k++) {
            int rank = t->piece[k].rank;
            if (!w.file[rank])
                w.file[rank] = open_rank(w.folder, rank, c->step);
            declare_piece(w.file[rank], t, k);
        }
    for (int r = 0; r < n; r++)
        if (w.file[r])
            c->bytes[r] = st_begin(w.file[r]); /* grows below, up to the file's size */
    for (const struct kept_tensor *t = tensor; t < end; t++)
        for (struct piece *p = t->piece; p < t->piece + t->n; p++) {
            p->file_offset = c->bytes[p->rank];
            c->bytes[p->rank] += ELEMENT_BYTES * piece_elements(p);
        }
    return w;
}

void publish_ranks(struct ranks_written *w, const struct checkpoint *c)
{
    for (int r = 0; r < n_ranks(&c->pieces->mesh); r++)
        if (w->file[r])
            st_publish(w->file[r]);
    char *manifest = manifest_text(c);
    publish_text(file_in(w->folder, MANIFEST), manifest);
    publish_folder(w->folder);
    free(w->file);
    free(manifest);
}
