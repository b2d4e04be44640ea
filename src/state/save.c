/* save.c - from the devices to a checkpoint and back, and what --init and --from take.
 *
 * Each rank's state is read from where it lies, a window at a time, and written as that rank's pieces: nothing is
 * gathered.  Loading puts a tensor together from the pieces of the files, whatever mesh they are of, and has it cut by
 * the model for every rank that keeps a part of it.
 */
#include "snap.h"

#include <unistd.h>

enum { WINDOW = 1 << 20 }; /* bytes */

/* ---- saving ----------------------------------------------------------------------------------------------------- */

/* Through a small window: read, hashed and written while it is in the cache. */
static void write_piece(struct tensor *held, struct piece *p, struct st_writer *out, char *window)
{
    struct hasher hash;
    size_t end = ELEMENT_BYTES * (p->at + piece_elements(p));
    hash_begin(&hash, 0);
    for (size_t at = ELEMENT_BYTES * p->at, n; at < end; at += n) {
        n = MIN(WINDOW, end - at);
        read_bytes_of(held, at, n, window);
        hash_add(&hash, window, n);
        st_write(out, window, n);
    }
    p->hash = hash_end(&hash);
}

/* In the order of the rank's file. */
static void write_rank(const struct replica *r, struct pieces *s, struct st_writer *out)
{
    char *window = allocate(WINDOW, 1);
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->tensor[i].n; k++)
            if (s->tensor[i].piece[k].rank == r->rank)
                write_piece(tensor_of(r, s->tensor[i].unit, s->tensor[i].role), &s->tensor[i].piece[k], out, window);
    free(window);
}

void save_checkpoint(struct model *m, const char *folder, struct checkpoint *c)
{
    c->path = format_string("%s/step-%u", folder, c->step);
    c->pieces = cut_state(&m->params->config, m->mesh);
    remove_strays(folder, "step-", true);
    struct ranks_written w = open_ranks(c);
    for (int r = 0; r < n_ranks(m->mesh); r++)
        write_rank(&m->replica[r], c->pieces, w.file[r]);
    publish_ranks(&w, c);
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

/* In room for any of them, made once: fresh pages cost more than hashing what goes into them. */
static void load_state(struct model *m, const struct checkpoint *c, bool moments)
{
    size_t most = 0;
    for (size_t i = 0; i < c->pieces->n; i++)
        most = MAX(most, tensor_elements(&c->pieces->tensor[i]));
    float *room = allocate(most, sizeof *room);
    for (size_t i = 0; i < c->pieces->n; i++)
        if (moments || c->pieces->tensor[i].role == KEPT_VALUE) {
            read_kept(c, i, room);
            write_param(m, c->pieces->tensor[i].param, c->pieces->tensor[i].role, room);
        }
    free(room);
}

void load_checkpoint(struct model *m, const struct checkpoint *c) { load_state(m, c, m->training); }

static void read_value(void *checkpoint, int param, float *values)
{
    const struct checkpoint *c = checkpoint;
    size_t i = 0;
    while (c->pieces->tensor[i].param != param || c->pieces->tensor[i].role != KEPT_VALUE)
        i++;
    read_kept(c, i, values);
}

struct export export_of(struct checkpoint *c, const struct params *all)
{
    return (struct export){all, read_value, c, c->tokenizer, c->step, c->vector};
}

/* ---- sources ---------------------------------------------------------------------------------------------------- */

struct source open_source(const char *path)
{
    bool folder = is_folder(path);
    char *newest = folder ? find_checkpoint(path) : NULL, *model = format_string("%s/model.safetensors", path);
    struct source s = {.path = copy_string(path)};
    if (newest || is_snapshot(path) || (folder && access(model, F_OK) != 0)) {
        s.checkpoint = open_checkpoint(newest ? newest : path);
    } else if (folder) {
        free(s.path);
        s.path = copy_string(model);
    }
    free(newest), free(model);
    return s;
}

void close_source(struct source *s)
{
    if (s->checkpoint)
        free_checkpoint(s->checkpoint);
    free(s->path);
}

struct config source_config(const struct source *s)
{
    return s->checkpoint ? s->checkpoint->pieces->config : read_config(s->path);
}

void init_from_source(struct model *m, const struct source *s)
{
    if (s->checkpoint)
        load_state(m, s->checkpoint, false);
    else
        init_from_file(m, s->path);
}
