/* pieces.c - which rank keeps which part of the state: it follows from the mesh's cut, and from nothing else.
 *
 * Tensor parallelism gives a rank a part of a parameter: rows of each section, or columns.  ZeRO puts all that a rank
 * has of a unit in a row, one parameter after another, and cuts it into flat shards.  So a piece is one of these:
 *
 *     box    all that a rank has of a section: whole rows, or a range of columns
 *     flat   a shard's range of a parameter that is not cut by columns: elements that follow one another in the tensor
 *     boxes  of a parameter that is cut by columns, a shard's range: a ragged row, whole rows, and a ragged row
 *
 *         . . a a . .        a: columns 2 and 3 are the rank's; its elements 1 to 5 are
 *         . . a a . .        the ragged row (0, 3), the rows 1 and 2, and no second ragged row
 *         . . a a . .
 *
 * Elements that several ranks hold alike belong to the piece of the first of these ranks.
 *
 * A caller that stores less than a shard at a time, as techniques/snapshot does, has pieces that end where its stored
 * ranges end (add_pieces()).
 */
#include "pieces.h"

const char *const kept_name[KEPT_ROLES] = {"value", "m", "v"};

/* ---- a piece ---------------------------------------------------------------------------------------------------- */

size_t tensor_elements(const struct kept_tensor *t) { return (size_t)(t->shape[0] * t->shape[1]); }

size_t piece_elements(const struct piece *p)
{
    size_t n = (size_t)(p->end[0] - p->begin[0]); /* flat: elements; box: rows */
    if (p->flat)
        return n;
    return n * (size_t)(p->end[1] - p->begin[1]);
}

size_t element_of(const struct kept_tensor *t, const struct piece *p, size_t i, size_t *stretch)
{
    *stretch = piece_elements(p) - i;
    if (p->flat)
        return (size_t)p->begin[0] + i;
    size_t columns = (size_t)t->shape[1];
    size_t width = (size_t)(p->end[1] - p->begin[1]);
    size_t row = (size_t)p->begin[0] + i / width;
    if (width < columns) /* then a stretch ends with its row */
        *stretch = width - i % width;
    return row * columns + (size_t)p->begin[1] + i % width;
}

char *piece_name(char out[96], const struct kept_tensor *t, size_t i)
{
    snprintf(out, 96, "%s/%s/%zu", kept_name[t->role], t->name, i);
    return out;
}

/* ---- cutting ---------------------------------------------------------------------------------------------------- */

/* The piece has n elements of the tensor, from element `first` on. */
static void set_range(struct piece *x, size_t first, size_t n)
{
    x->flat = true;
    x->begin[0] = (int64_t)first;
    x->end[0] = (int64_t)(first + n);
}

/* Makes the piece a box: n elements in so many rows, the first of them at element `first` of a tensor of `columns`. */
static void set_box(struct piece *x, size_t first, size_t n, size_t rows, size_t columns)
{
    x->begin[0] = (int64_t)(first / columns);
    x->end[0] = x->begin[0] + (int64_t)rows;
    x->begin[1] = (int64_t)(first % columns);
    x->end[1] = x->begin[1] + (int64_t)(n / rows);
}

/* The part of the tensor that the rank has.  A parameter that is not cut, or cut into one, is a single run. */
static struct part part_of_rank(const struct model *m, const struct kept_tensor *t, int rank)
{
    const struct cut *cut = &params_of(m, rank)->param[t->param].cut;
    struct part part = part_of(cut, m->params->param[t->param].shape, tp_of(m->mesh, rank), m->mesh->tp);
    if (part.begin == 0 && part.end == part.length)
        part = (struct part){.runs = 1, .length = tensor_elements(t), .begin = 0, .end = tensor_elements(t)};
    return part;
}

/* The rank's part of the tensor is runs of elements that are next to each other in the tensor: where rows are cut, a
 * run is the rank's rows of a section; where columns are cut, its columns of a row.
 *
 *     rows      a whole run is a box, and less of one is flat
 *     columns   all is boxes: less of a run is a ragged row, and whole runs in a row are one box together */
void add_pieces(const struct model *m, struct kept_tensor *t, int rank, struct shard held)
{
    const struct param *p = &params_of(m, rank)->param[t->param];
    const struct cut *cut = &p->cut;
    if (cut->split == SPLIT_NONE && tp_of(m->mesh, rank) > 0)
        return;
    struct part part = part_of_rank(m, t, rank);
    bool by_columns = part.runs > 1 && cut->split == SPLIT_COLUMNS;
    CHECK(!by_columns || cut->sections == 1, "%s is cut by columns in %d sections", t->name, cut->sections);
    size_t width = part.end - part.begin, columns = (size_t)t->shape[1];
    size_t done = MAX(held.begin, p->offset) - p->offset; /* elements, counted in the rank's part of the parameter */
    size_t end = 0;
    if (held.end > p->offset)
        end = MIN(held.end - p->offset, width * part.runs);
    while (done < end) {
        size_t within = done % width;
        size_t whole = within ? 0 : (end - done) / width; /* runs that begin here and are held whole */
        if (!by_columns)
            whole = MIN(whole, 1);
        size_t n = whole ? whole * width : MIN(width - within, end - done);
        size_t runs_before = done / width;
        size_t first = runs_before * part.length + part.begin + within; /* element of the tensor */
        struct piece x = {.rank = rank, .memory_offset = p->offset + done - held.begin};
        if (by_columns)
            set_box(&x, first, n, MAX(whole, 1), columns);
        else if (whole)
            set_box(&x, first, n, n / columns, columns);
        else
            set_range(&x, first, n);
        size_t cap = t->n; /* a tensor has few pieces: the array grows by one each time */
        *APPEND(t->piece, t->n, cap) = x;
        done += n;
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static struct kept_tensor describe_tensor(const struct param *p, int i, int unit, enum kept role)
{
    struct kept_tensor t = {.param = i, .unit = unit, .role = role, .dims = p->n_dims, .sections = p->cut.sections};
    memcpy(t.name, p->name, sizeof t.name);
    memcpy(t.shape, p->shape, sizeof t.shape);
    t.axis = p->cut.split == SPLIT_COLUMNS;
    if (p->cut.split == SPLIT_NONE)
        t.axis = -1;
    return t;
}

/* All tensors, without pieces, for the mesh that is to cut them. */
static struct pieces *describe_all(const struct params *all, const struct mesh *m)
{
    struct pieces *s = allocate(1, sizeof *s);
    s->config = all->config;
    s->mesh = *m;
    s->mesh.first_layer = NULL;
    s->tensor = allocate((size_t)all->n * KEPT_ROLES, sizeof *s->tensor);
    for (int u = 0; u < all->n_units; u++)
        for (int role = 0; role < KEPT_ROLES; role++)
            for (int i = all->unit[u].first_param; i < all->unit[u].first_param + all->unit[u].n_params; i++)
                s->tensor[s->n++] = describe_tensor(&all->param[i], i, u, (enum kept)role);
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
    for (struct kept_tensor *t = s->tensor; t < s->tensor + s->n; t++) {
        /* How many data-parallel ranks keep different parts; without ZeRO the first one's are everybody's. */
        int replicas = is_shared_out(mesh, t->role) ? mesh->dp : 1;
        for (int k = 0; k < replicas; k++)
            for (int j = 0; j < mesh->tp; j++) {
                int rank = rank_at(mesh, k, stage_of(m, t->unit)) + j;
                add_pieces(m, t, rank, held_by(m, t->unit, rank, t->role));
            }
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
