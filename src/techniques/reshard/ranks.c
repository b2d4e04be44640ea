/* ranks.c - the files of a checkpoint that is being written: one per rank, and last the manifest.
 *
 * The pieces' places in the files are known before the first byte is written, and their hashes when the last one is.
 * All of it lies in a folder of another name until it is complete (folder.c).
 */
#include "folder.h"
#include "state.h"

struct ranks_written open_ranks(struct checkpoint *c)
{
    int n = n_ranks(&c->pieces->mesh);
    char name[96], *step = format_string("%u", c->step);
    struct ranks_written w = {open_folder(c->path, (size_t)n + 1), allocate((size_t)n, sizeof *w.file)};
    const struct kept_tensor *tensor = c->pieces->tensor, *end = tensor + c->pieces->n;
    c->bytes = allocate((size_t)n, sizeof *c->bytes);
    for (const struct kept_tensor *t = tensor; t < end; t++)
        for (size_t k = 0; k < t->n; k++) {
            const struct piece *p = &t->piece[k];
            int64_t shape[2] = {p->end[0] - p->begin[0], p->end[1] - p->begin[1]};
            struct st_writer **out = &w.file[p->rank];
            if (!*out) {
                snprintf(name, sizeof name, "rank-%d.safetensors", p->rank);
                *out = new_st_writer(file_in(w.folder, name));
                st_metadata(*out, "format", "pt");
                st_metadata(*out, "yard.step", step);
            }
            st_declare(*out, piece_name(name, t, k), DTYPE_F32, p->flat ? 1 : t->dims, shape);
        }
    for (int r = 0; r < n; r++)
        c->bytes[r] = w.file[r] ? st_begin(w.file[r]) : 0; /* and on to the file's end */
    for (const struct kept_tensor *t = tensor; t < end; t++)
        for (struct piece *p = t->piece; p < t->piece + t->n; p++) {
            p->offset = c->bytes[p->rank];
            c->bytes[p->rank] += ELEMENT_BYTES * piece_elements(p);
        }
    free(step);
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
    free(w->file), free(manifest);
}
