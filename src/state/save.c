/* save.c - from the devices to a checkpoint and back, and what --init and --from take.
 *
 * Each rank's state is read from where it lies, a unit at a time, and written as that rank's pieces: nothing is
 * gathered.  Loading puts a tensor together from the pieces of the files, whatever mesh they are of, and has it cut by
 * the model for every rank that keeps a part of it.
 */
#include "snap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- saving ----------------------------------------------------------------------------------------------------- */

/* Where a rank keeps that of a unit; NULL: it has none. */
static struct tensor *tensor_of(const struct replica *r, int unit, enum kept role)
{
    struct tensor *value = r->shard[unit] ? r->shard[unit] : r->value[unit];
    return role == KEPT_VALUE ? value : role == KEPT_M ? r->m[unit] : r->v[unit];
}

/* The rank's pieces of the tensors [first, end), which are one unit's of one role. */
static void write_unit(const struct replica *r, struct kept_tensor *first, const struct kept_tensor *end,
                       struct st_writer *out)
{
    struct tensor *held = tensor_of(r, first->unit, first->role);
    float *values = NULL;
    for (struct kept_tensor *t = first; t < end; t++)
        for (size_t k = 0; k < t->n; k++) {
            struct piece *p = &t->piece[k];
            if (p->rank != r->rank)
                continue;
            if (!values) {
                values = allocate(count_elements(held), sizeof *values);
                read_tensor(held, values);
            }
            p->hash = hash_bytes(values + p->at, ELEMENT_BYTES * piece_elements(p), 0);
            st_write(out, values + p->at, ELEMENT_BYTES * piece_elements(p));
        }
    free(values);
}

static size_t end_of_unit(const struct pieces *p, size_t first)
{
    size_t i = first;
    while (i < p->n && p->tensor[i].unit == p->tensor[first].unit && p->tensor[i].role == p->tensor[first].role)
        i++;
    return i;
}

void save_checkpoint(struct model *m, const char *folder, struct checkpoint *c)
{
    c->path = format_string("%s/step-%u", folder, c->step);
    c->pieces = cut_state(&m->params->config, m->mesh);
    remove_stray_folders(folder, "step-");
    struct ranks_written w = open_ranks(c);
    for (int r = 0; r < n_ranks(m->mesh); r++)
        for (size_t i = 0, end; i < c->pieces->n; i = end) {
            end = end_of_unit(c->pieces, i);
            write_unit(&m->replica[r], &c->pieces->tensor[i], &c->pieces->tensor[end], w.file[r]);
        }
    publish_ranks(&w, c);
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static void load_values(struct model *m, const struct checkpoint *c, size_t tensor)
{
    const struct kept_tensor *t = &c->pieces->tensor[tensor];
    float *values = allocate(tensor_elements(t), sizeof *values);
    read_kept(c, tensor, values);
    write_param(m, t->param, values);
    free(values);
}

static void load_moments(struct model *m, const struct checkpoint *c, size_t first, size_t end)
{
    int unit = c->pieces->tensor[first].unit;
    float *values = allocate(m->params->unit[unit].elements, sizeof *values);
    for (size_t i = first; i < end; i++)
        read_kept(c, i, values + m->params->param[c->pieces->tensor[i].param].offset);
    write_moment(m, unit, c->pieces->tensor[first].role == KEPT_V, values);
    free(values);
}

void load_checkpoint(struct model *m, const struct checkpoint *c)
{
    for (size_t i = 0, end; i < c->pieces->n; i = end) {
        end = end_of_unit(c->pieces, i);
        if (c->pieces->tensor[i].role != KEPT_VALUE && m->training)
            load_moments(m, c, i, end);
        for (size_t k = i; k < end && c->pieces->tensor[i].role == KEPT_VALUE; k++)
            load_values(m, c, k);
    }
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
    if (!p)
        init_from_file(m, s->path);
    for (size_t i = 0; p && i < p->n; i++)
        if (p->tensor[i].role == KEPT_VALUE)
            load_values(m, s->checkpoint, i);
}
