/* rank_files.c - the files of a checkpoint that is being written: one per rank, and last the manifest.
 *
 * The places of pieces in the files are known before the first byte is written, and the hashes of pieces when the last
 * byte is.  The files lie in a folder of another name until all are complete (publish_folder.c).
 */
#include "files.h"

static struct st_writer *open_rank(struct folder *folder, int rank, uint32_t step)
{
    char name[48], number[16];
    snprintf(name, sizeof name, RANK_FILE, rank);
    snprintf(number, sizeof number, "%u", step);
    struct st_writer *out = new_st_writer(file_in(folder, name));
    st_metadata(out, "format", "pt");
    st_metadata(out, "yard.step", number);
    return out;
}

static void declare_piece(struct st_writer *out, const struct kept_tensor *tensor, size_t k)
{
    const struct piece *piece = &tensor->pieces[k];
    char name[PIECE_NAME];
    int64_t shape[2] = {piece->end[0] - piece->begin[0], piece->end[1] - piece->begin[1]};
    st_declare(out, piece_name(name, tensor, k), DTYPE_F32, piece->flat ? 1 : tensor->dims, shape);
}

/* Declares all pieces in the files of their ranks, which are opened for that. */
static void declare_pieces(struct rank_writers *writers, const struct checkpoint *checkpoint)
{
    const struct cut_tensors *cut = checkpoint->cut;
    for (const struct kept_tensor *tensor = cut->tensors; tensor < cut->tensors + cut->n; tensor++)
        for (size_t k = 0; k < tensor->n_pieces; k++) {
            struct st_writer **file = &writers->files[tensor->pieces[k].rank];
            if (!*file)
                *file = open_rank(writers->folder, tensor->pieces[k].rank, checkpoint->step);
            declare_piece(*file, tensor, k);
        }
}

/* Gives the pieces their places.  bytes: by rank, the size of its file's header, which becomes that of the file. */
static void place_pieces(struct cut_tensors *cut, uint64_t *bytes)
{
    for (const struct kept_tensor *tensor = cut->tensors; tensor < cut->tensors + cut->n; tensor++)
        for (struct piece *piece = tensor->pieces; piece < tensor->pieces + tensor->n_pieces; piece++) {
            piece->file_offset = bytes[piece->rank];
            bytes[piece->rank] += ELEMENT_BYTES * piece_elements(piece);
        }
}

struct rank_writers open_ranks(struct checkpoint *checkpoint)
{
    int n = n_ranks(&checkpoint->cut->mesh);
    struct rank_writers writers = {open_folder(checkpoint->path, (size_t)n + 1),
                                   allocate_each(n, sizeof *writers.files)};
    declare_pieces(&writers, checkpoint);
    checkpoint->bytes = allocate_each(n, sizeof *checkpoint->bytes);
    for (int rank = 0; rank < n; rank++)
        if (writers.files[rank])
            checkpoint->bytes[rank] = st_begin(writers.files[rank]);
    place_pieces(checkpoint->cut, checkpoint->bytes);
    return writers;
}

void write_piece(const struct rank_writers *writers, struct piece *piece, const char *bytes)
{
    size_t n = ELEMENT_BYTES * piece_elements(piece);
    piece->hash = hash_bytes(bytes, n, 0);
    st_write(writers->files[piece->rank], bytes, n);
}

void publish_ranks(struct rank_writers *writers, const struct checkpoint *checkpoint)
{
    for (int rank = 0; rank < n_ranks(&checkpoint->cut->mesh); rank++)
        if (writers->files[rank])
            st_publish(writers->files[rank]);
    char *manifest = manifest_text(checkpoint);
    publish_text(file_in(writers->folder, MANIFEST), manifest);
    publish_folder(writers->folder);
    free(writers->files);
    free(manifest);
}
