/* rank_files.h - the files of a checkpoint that is being written.  Implemented in rank_files.c.
 *
 *     open_ranks()       the pieces get their places; the files' headers are written
 *     write_piece()      a piece gets its hash, and its file its bytes: pieces come in the order of `struct pieces`
 *     publish_ranks()    files, then the manifest, then the folder
 *
 * Until then the folder has a temporary name, and fail() removes it.  What the system refuses ends the program
 * (EXIT_IO).
 */
#ifndef RANK_FILES_H
#define RANK_FILES_H

#include "checkpoint.h"

struct ranks_written {
    struct folder *folder;
    struct st_writer **files; /* by rank, with the header written: it expects the bytes of the rank's pieces in order;
                              * NULL: the rank has no pieces */
};
/* The checkpoint has a path, and pieces, which get their places. */
struct ranks_written open_ranks(struct checkpoint *checkpoint);
void write_piece(const struct ranks_written *written, struct piece *piece, const char *bytes);
/* Call it when all pieces are written.  Frees what open_ranks() has allocated. */
void publish_ranks(struct ranks_written *written, const struct checkpoint *checkpoint);

#endif
