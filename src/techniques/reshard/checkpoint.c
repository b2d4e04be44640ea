/* checkpoint.c - a checkpoint as an object in memory: made like another one, asked, and freed.
 *
 *     pieces.c   <-   checkpoint.c   <-   manifest.c   <-   read_manifest.c   <-   find_checkpoint.c
 *
 * A file calls only those on its left.  So what writing a manifest and reading one both ask of a checkpoint is here.
 */
#include "checkpoint.h"
#include "store.h"

struct checkpoint *like_checkpoint(const struct checkpoint *c, const char *path)
{
    struct checkpoint *like = copy_bytes(c, sizeof *c);
    like->path = copy_string(path);
    like->tokenizer = copy_string(c->tokenizer);
    like->options = json_copy(c->options);
    like->pieces = NULL;
    like->bytes = NULL;
    like->stored = NULL;
    like->buffer = NULL;
    return like;
}

void free_checkpoint(struct checkpoint *c)
{
    if (c->pieces)
        free_pieces(c->pieces);
    if (c->stored)
        free_in_store(c->stored);
    if (c->buffer) {
        free(c->buffer->bytes);
        free(c->buffer);
    }
    json_decref(c->options);
    free(c->path);
    free(c->tokenizer);
    free(c->bytes);
    free(c);
}

char *rank_file(const struct checkpoint *c, int rank)
{
    if (c->stored)
        return copy_string(c->path);
    return format_string("%s/rank-%d.safetensors", c->path, rank);
}

const char *recorded_option(const struct checkpoint *c, const char *name)
{
    const char *text = json_string_value(json_object_get(c->options, name));
    return text ? text : "";
}

struct mesh strategy_of(const struct checkpoint *c)
{
    struct mesh m = c->pieces->mesh;
    const char *mesh = recorded_option(c, "mesh");
    struct problem *p = NULL;
    if (*mesh)
        p = parse_mesh(mesh, 1, &m);
    if (p)
        fail(EXIT_FAILED, "%s is damaged or not ours: options: %s", c->path, p->sentence);
    m.zero = c->pieces->mesh.zero;
    return m;
}
