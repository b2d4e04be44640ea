/* pieces.c - which rank keeps which part of the state: follows from the mesh's own cut, and from nothing else.
 *
 * Tensor parallelism gives a rank a part of a parameter: rows of each section, or columns.  ZeRO cuts what a rank
 * keeps of a unit, one parameter behind another, into flat shards.  So a piece is one of these:
 *
 *     box    all that a rank has of a section: whole rows, or a range of columns
 *     flat   a shard's range of a parameter that is not cut by columns: elements that follow one another in the tensor
 *     boxes  of a parameter that is cut by columns, a shard's range: a ragged row, whole rows, and a ragged row
 *
 *         . . a a . .        a: columns 2 and 3 are the rank's; its elements 1 to 5 are
 *         . . a a . .        the ragged row (0, 3), the rows 1 and 2, and nothing behind
 *         . . a a . .
 *
 * What several ranks hold alike is the first one's.
 *
 * A caller that stores less than a shard at a time, as techniques/snapshot does, has pieces that end there too
 * (add_pieces()).
 */
#include "state.h"

const char *const kept_name[KEPT_ROLES] = {"value", "m", "v"};

/* ---- a piece ---------------------------------------------------------------------------------------------------- */

size_t tensor_elements(const struct kept_tensor *t) { return (size_t)(t->shape[0] * t->shape[1]); }

size_t piece_elements(const struct piece *p)
{
    size_t rows = (size_t)(p->end[0] - p->begin[0]);
    return p->flat ? rows : rows * (size_t)(p->end[1] - p->begin[1]);
}

size_t element_of(const struct kept_tensor *t, const struct piece *p, size_t i, size_t *stretch)
{
    size_t columns = (size_t)t->shape[1], width = p->flat ? columns : (size_t)(p->end[1] - p->begin[1]);
    bool through = p->flat || width == columns; /* no row's end is one of a stretch */
    *stretch = through ? piece_elements(p) - i : width - i % width;
    if (p->flat)
        return (size_t)p->begin[0] + i;
    return ((size_t)p->begin[0] + i / width) * columns + (size_t)p->begin[1] + i % width;
}

char *piece_name(char out[96], const struct kept_tensor *t, size_t i)
{
    snprintf(out, 96, "%s/%s/%zu", kept_name[t->role], t->name, i);
    return out;
}

/* ---- cutting ---------------------------------------------------------------------------------------------------- */

/* The rank's part of the tensor comes in runs that lie whole in the tensor: by rows, what it has of a section; by
 * columns, of a row.  A whole section is a box, and less of one is flat.  By columns all is boxes: a ragged row, whole
 * rows together, a ragged row. */
void add_pieces(const struct model *m, struct kept_tensor *t, int rank, struct shard held)
{
    const struct param *all = &m->params->param[t->param], *p = &params_of(m, rank)->param[t->param];
    struct part part = part_of(&p->cut, all->shape, tp_of(m->mesh, rank), m->mesh->tp);
    if (p->cut.split == SPLIT_NONE && tp_of(m->mesh, rank) > 0)
        return;
    if (part.begin == 0 && part.end == part.length) /* all of it */
        part = (struct part){1, tensor_elements(t), 0, tensor_elements(t)};
    bool by_columns = part.runs > 1 && all->cut.split == SPLIT_COLUMNS;
    size_t width = part.end - part.begin, columns = (size_t)t->shape[1];
    size_t end = held.end > p->offset ? MIN(held.end - p->offset, width * part.runs) : 0;
    CHECK(!by_columns || all->cut.sections == 1, "%s is cut by columns in %d sections", t->name, all->cut.sections);
    for (size_t e = MAX(held.begin, p->offset) - p->offset, n; e < end; e += n) {
        size_t within = e % width, whole = within ? 0 : (end - e) / width; /* runs */
        whole = by_columns ? whole : MIN(whole, 1);
        n = whole ? whole * width : MIN(width - within, end - e);
        size_t from = e / width * part.length + part.begin + within; /* in the tensor */
        struct piece x = {.rank = rank, .at = p->offset + e - held.begin, .flat = !whole && !by_columns};
        size_t rows = by_columns ? MAX(whole, 1) : n / columns; /* of a box */
        x.begin[0] = (int64_t)(x.flat ? from : from / columns);
        x.end[0] = x.begin[0] + (int64_t)(x.flat ? n : rows);
        x.begin[1] = x.flat ? 0 : (int64_t)(from % columns);
        x.end[1] = x.flat ? 0 : x.begin[1] + (int64_t)(n / rows);
        size_t cap = t->n;
        *APPEND(t->piece, t->n, cap) = x;
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

/* Of the mesh that is to cut them. */
static struct pieces *describe_all(const struct params *all, const struct mesh *m)
{
    struct pieces *s = allocate(1, sizeof *s);
    s->config = all->config;
    s->mesh = *m;
    s->mesh.first_layer = NULL;
    s->tensor = allocate((size_t)all->n * KEPT_ROLES, sizeof *s->tensor);
    for (int u = 0; u < all->n_units; u++)
        for (int role = 0; role < KEPT_ROLES; role++)
            for (int i = all->unit[u].first; i < all->unit[u].first + all->unit[u].n; i++) {
                const struct param *p = &all->param[i];
                struct kept_tensor *t = &s->tensor[s->n++];
                *t = (struct kept_tensor){
                    .param = i, .unit = u, .role = (enum kept)role, .dims = p->rank, .sections = p->cut.sections};
                memcpy(t->name, p->name, sizeof t->name);
                memcpy(t->shape, p->shape, sizeof t->shape);
                t->axis = p->cut.split == SPLIT_NONE ? -1 : p->cut.split == SPLIT_COLUMNS;
            }
    return s;
}

struct pieces *uncut_state(const struct config *c)
{
    struct params *all = new_params(c, &one_rank, 0);
    struct pieces *s = describe_all(all, &one_rank);
    free_params(all);
    return s;
}

struct pieces *cut_state(const struct config *c, const struct mesh *mesh)
{
    struct model *m = outline_model(c, mesh);
    struct pieces *s = describe_all(m->params, m->mesh);
    for (struct kept_tensor *t = s->tensor; t < s->tensor + s->n; t++)
        for (int k = 0; k < (is_shared_out(mesh, t->role) ? mesh->dp : 1); k++)
            for (int j = 0; j < mesh->tp; j++) {
                int rank = rank_at(mesh, k, stage_of(m, t->unit)) + j;
                add_pieces(m, t, rank, held_by(m, t->unit, rank, t->role));
            }
    free_model(m);
    return s;
}

size_t count_pieces(const struct pieces *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->tensor[i].n;
    return n;
}

void free_pieces(struct pieces *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->tensor[i].piece);
    free(s->tensor);
    free(s);
}
