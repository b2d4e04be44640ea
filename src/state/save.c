/* save.c - from the devices to a checkpoint and back, and what --init and --from take.
 *
 * Each rank's state is read from where it lies, a window at a time, and written as that rank's pieces: nothing is
 * gathered.  Loading puts a tensor together from the pieces of the files, whatever mesh they are of, and has it cut by
 * the model for every rank that keeps a part of it.
 */
#include "snap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW = 1 << 20 }; /* bytes */

/* ---- saving ----------------------------------------------------------------------------------------------------- */

/* Where a rank keeps that of a unit; NULL: it has none. */
static struct tensor *tensor_of(const struct replica *r, int unit, enum kept role)
{
    struct tensor *value = r->shard[unit] ? r->shard[unit] : r->value[unit];
    return role == KEPT_VALUE ? value : role == KEPT_M ? r->m[unit] : r->v[unit];
}

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
    remove_stray_folders(folder, "step-");
    struct ranks_written w = open_ranks(c);
    for (int r = 0; r < n_ranks(m->mesh); r++)
        write_rank(&m->replica[r], c->pieces, w.file[r]);
    publish_ranks(&w, c);
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

/* Room for any unit, once: fresh pages cost more than hashing what goes into them. */
static float *new_room(const struct params *all)
{
    size_t most = 0;
    for (int u = 0; u < all->n_units; u++)
        most = MAX(most, all->unit[u].elements);
    return allocate(most, sizeof(float));
}

static void load_values(struct model *m, const struct checkpoint *c, size_t tensor, float *room)
{
    read_kept(c, tensor, room);
    write_param(m, c->pieces->tensor[tensor].param, room);
}

static size_t end_of_unit(const struct pieces *p, size_t first)
{
    size_t i = first;
    while (i < p->n && p->tensor[i].unit == p->tensor[first].unit && p->tensor[i].role == p->tensor[first].role)
        i++;
    return i;
}

static void load_moments(struct model *m, const struct checkpoint *c, size_t first, size_t end, float *room)
{
    for (size_t i = first; i < end; i++) {
        float *values = room + m->params->param[c->pieces->tensor[i].param].offset;
        size_t n = tensor_elements(&c->pieces->tensor[i]);
        read_kept(c, i, values);
        memset(values + n, 0, (round_up(n, UNIT_ALIGN) - n) * sizeof *values); /* of the unit before */
    }
    write_moment(m, c->pieces->tensor[first].unit, c->pieces->tensor[first].role == KEPT_V, room);
}

void load_checkpoint(struct model *m, const struct checkpoint *c)
{
    float *room = new_room(m->params);
    for (size_t i = 0, end; i < c->pieces->n; i = end) {
        end = end_of_unit(c->pieces, i);
        if (c->pieces->tensor[i].role != KEPT_VALUE && m->training)
            load_moments(m, c, i, end, room);
        for (size_t k = i; k < end && c->pieces->tensor[i].role == KEPT_VALUE; k++)
            load_values(m, c, k, room);
    }
    free(room);
}

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
    struct stat status;
    bool folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
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
    const struct pieces *p = s->checkpoint ? s->checkpoint->pieces : NULL;
    float *room = p ? new_room(m->params) : NULL;
    if (!p)
        init_from_file(m, s->path);
    for (size_t i = 0; p && i < p->n; i++)
        if (p->tensor[i].role == KEPT_VALUE)
            load_values(m, s->checkpoint, i, room);
    free(room);
}
