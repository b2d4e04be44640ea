/* pieces.c - which rank keeps which part of the state: follows from the mesh's own cut, and from nothing else.
 *
 * Tensor parallelism gives a member a part of a parameter: rows of each section, or columns.  ZeRO cuts what a member
 * keeps of a unit, one parameter behind another, into flat shards.  So a piece is one of these:
 *
 *     box    all that a member has of a section: whole rows, or a range of columns
 *     flat   a shard's range of a parameter that is not cut by columns: elements that follow one another in the tensor
 *     box    of one that is: the shard's range of the member's columns is a ragged row, whole rows, and a ragged row
 *
 *         . . a a . .        a: columns 2 and 3 are the member's; its elements 1 to 5 are
 *         . . a a . .        the ragged row (0, 3), the rows 1 and 2, and nothing behind
 *         . . a a . .
 *
 * What several ranks hold alike is the first one's.
 *
 * A snapshot's payloads hold what tasks updated, which may be less than a shard: then pieces end there too.
 */
#include "snap.h"

const char *const kept_name[KEPT_ROLES] = {"value", "m", "v"};

/* ---- a piece ---------------------------------------------------------------------------------------------------- */

size_t tensor_elements(const struct kept_tensor *t) { return (size_t)(t->shape[0] * t->shape[1]); }

size_t piece_elements(const struct piece *p)
{
    size_t rows = (size_t)(p->end[0] - p->begin[0]);
    return p->flat ? rows : rows * (size_t)(p->end[1] - p->begin[1]);
}

size_t element_of(const struct kept_tensor *t, const struct piece *p, size_t i, size_t *run)
{
    size_t columns = (size_t)t->shape[1], width = p->flat ? columns : (size_t)(p->end[1] - p->begin[1]);
    bool through = p->flat || width == columns; /* no row's end is one of a run */
    *run = through ? piece_elements(p) - i : width - i % width;
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

struct cutting { /* what one rank has of a tensor */
    struct kept_tensor *tensor;
    int rank;
    struct part part; /* the member's */
    size_t at;        /* of the part's first element in memory, before the shard's begin is taken off */
    struct shard held;
    const struct snap_part *stored; /* NULL: in a file of the rank's own, and open_ranks() says where */
    uint64_t from;                  /* byte of the slot at which that begins */
};

/* Adds the piece whose first element is the part's element e. */
static void add_piece(const struct cutting *c, struct piece p, size_t e)
{
    struct kept_tensor *t = c->tensor;
    size_t cap = t->n;
    t->piece = grow(t->piece, &cap, t->n + 1, sizeof *t->piece);
    p.rank = c->rank;
    p.at = c->at + e - c->held.begin;
    p.offset = c->stored ? c->from + ELEMENT_BYTES * (p.at - c->stored->begin) : 0;
    t->piece[t->n++] = p;
}

static void add_box(const struct cutting *c, size_t row, size_t rows, size_t column, size_t columns, size_t e)
{
    struct piece p = {.begin = {(int64_t)row, (int64_t)column},
                      .end = {(int64_t)(row + rows), (int64_t)(column + columns)}};
    if (rows)
        add_piece(c, p, e);
}

/* Elements [begin, end) of a part that is whole rows of each section. */
static void cut_rows(const struct cutting *c, size_t begin, size_t end)
{
    size_t width = c->part.end - c->part.begin, columns = (size_t)c->tensor->shape[1];
    for (size_t run = begin / width; run * width < end; run++) {
        size_t first = MAX(begin, run * width), last = MIN(end, (run + 1) * width);
        size_t at = run * c->part.length + c->part.begin + first - run * width;
        if (last - first == width)
            add_box(c, at / columns, width / columns, 0, columns, first);
        else
            add_piece(c, (struct piece){.flat = true, .begin = {(int64_t)at}, .end = {(int64_t)(at + last - first)}},
                      first);
    }
}

/* Of one that is columns: a ragged row, whole rows, a ragged row. */
static void cut_columns(const struct cutting *c, size_t begin, size_t end)
{
    size_t width = c->part.end - c->part.begin, column = c->part.begin;
    size_t first = ceil_div(begin, width), last = end / width; /* whole rows */
    if (first > last) {                                        /* all in one row */
        add_box(c, last, 1, column + begin % width, end - begin, begin);
        return;
    }
    if (begin % width)
        add_box(c, begin / width, 1, column + begin % width, width - begin % width, begin);
    add_box(c, first, last - first, column, width, first * width);
    if (end % width)
        add_box(c, last, 1, column, end % width, last * width);
}

static struct cutting cutting_of(const struct model *m, struct kept_tensor *t, int rank)
{
    const struct param *whole = &m->params->param[t->param], *p = &params_of(m, rank)->param[t->param];
    struct cutting c = {.tensor = t, .rank = rank, .at = p->offset, .held = held_by(m, t->unit, rank, t->role)};
    c.part = part_of(&p->cut, whole->shape, tp_of(m->mesh, rank), m->mesh->tp);
    if (c.part.begin == 0 && c.part.end == c.part.length) /* all of it */
        c.part = (struct part){1, tensor_elements(t), 0, tensor_elements(t)};
    return c;
}

static size_t part_elements(const struct cutting *c) { return (c->part.end - c->part.begin) * c->part.runs; }

/* What the range of the rank's unit has of its part. */
static struct shard within_part(const struct cutting *c, struct shard unit)
{
    size_t begin = MAX(unit.begin, c->at) - c->at;
    size_t end = unit.end > c->at ? MIN(unit.end - c->at, part_elements(c)) : 0;
    return (struct shard){begin, MAX(begin, end)};
}

static void cut_range(const struct model *m, const struct cutting *c, struct shard range)
{
    const struct cut *cut = &m->params->param[c->tensor->param].cut;
    bool by_columns = c->part.runs > 1 && cut->split == SPLIT_COLUMNS;
    CHECK(!by_columns || cut->sections == 1, "%s is cut by columns in %d sections", c->tensor->name, cut->sections);
    if (range.begin < range.end && by_columns)
        cut_columns(c, range.begin, range.end);
    else if (range.begin < range.end)
        cut_rows(c, range.begin, range.end);
}

static bool is_cut(const struct model *m, const struct kept_tensor *t)
{
    return m->part[0]->param[t->param].cut.split != SPLIT_NONE;
}

static void cut_tensor(const struct model *m, struct kept_tensor *t)
{
    for (int k = 0; k < (is_shared_out(m->mesh, t->role) ? m->mesh->dp : 1); k++)
        for (int j = 0; j < (is_cut(m, t) ? m->mesh->tp : 1); j++) {
            struct cutting c = cutting_of(m, t, rank_at(m->mesh, k, stage_of(m, t->unit)) + j);
            cut_range(m, &c, within_part(&c, c.held));
        }
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static void describe_tensor(struct kept_tensor *t, const struct params *all, int param, enum kept role)
{
    const struct param *p = &all->param[param];
    int axis = p->cut.split == SPLIT_NONE ? -1 : p->cut.split == SPLIT_COLUMNS;
    *t = (struct kept_tensor){.param = param, .unit = p->unit, .role = role, .rank = p->rank, .axis = axis};
    memcpy(t->name, p->name, sizeof t->name);
    memcpy(t->shape, p->shape, sizeof t->shape);
    t->sections = p->cut.sections;
}

static struct pieces *describe_all(const struct params *all)
{
    struct pieces *s = allocate(1, sizeof *s);
    s->config = all->config;
    s->tensor = allocate((size_t)all->n * KEPT_ROLES, sizeof *s->tensor);
    for (int u = 0; u < all->n_units; u++)
        for (int role = 0; role < KEPT_ROLES; role++)
            for (int i = all->unit[u].first; i < all->unit[u].first + all->unit[u].n; i++)
                describe_tensor(&s->tensor[s->n++], all, i, (enum kept)role);
    return s;
}

struct pieces *whole_state(const struct config *c)
{
    struct params *all = new_params(c, &one_rank, 0);
    struct pieces *s = describe_all(all);
    free_params(all);
    return s;
}

/* ---- as payloads have it ---------------------------------------------------------------------------------------- */

/* If the part stores element `at` of the tensor, of those that a member has, cuts a piece from there to the part's end,
 * which is returned; else 0. */
static size_t cut_from(const struct model *m, struct kept_tensor *t, const struct snap_part *stored, uint64_t from,
                       size_t at)
{
    struct cutting c = cutting_of(m, t, stored->rank);
    struct shard has =
        within_part(&c, (struct shard){c.held.begin + stored->begin, MIN(c.held.begin + stored->end, c.held.end)});
    if (at < has.begin || at >= has.end)
        return 0;
    c.stored = stored;
    c.from = from + stored->at;
    cut_range(m, &c, (struct shard){at, has.end});
    return has.end;
}

/* A piece of `member` from element `at` on: its end; 0: no part has it. */
static size_t find_stored(const struct model *m, struct kept_tensor *t, int member, const struct snap_plan *plan,
                          const struct snapshot *s, size_t at)
{
    size_t end = 0;
    for (size_t i = 0; i < plan->n && !end; i++)
        for (size_t k = 0; k < plan->payload[i].n && !end; k++) {
            const struct snap_part *p = &plan->payload[i].part[k];
            if (p->unit == t->unit && p->role == t->role && (member < 0 || tp_of(m->mesh, p->rank) == member))
                end = cut_from(m, t, p, s->payload[i].at, at);
        }
    return end;
}

/* Each element once, though several ranks may store it. */
static void cut_stored_tensor(const struct model *m, struct kept_tensor *t, const struct snap_plan *plan,
                              const struct snapshot *s)
{
    for (int j = 0; j < (is_cut(m, t) ? m->mesh->tp : 1); j++) {
        struct cutting c = cutting_of(m, t, rank_at(m->mesh, 0, stage_of(m, t->unit)) + j);
        for (size_t at = 0, end; at < part_elements(&c); at = end) {
            end = find_stored(m, t, is_cut(m, t) ? j : -1, plan, s, at);
            if (!end)
                fail(EXIT_USAGE, "no task of role update stores element %zu of %s, %s: this cannot be snapshot", at,
                     t->name, kept_name[t->role]);
        }
    }
}

/* plan NULL: as the mesh cuts. */
static struct pieces *cut_all(const struct config *c, const struct mesh *mesh, const struct snap_plan *plan,
                              const struct snapshot *stored)
{
    struct model *m = outline_model(c, mesh);
    struct pieces *s = describe_all(m->params);
    s->dp = mesh->dp, s->pp = mesh->pp, s->tp = mesh->tp, s->zero = mesh->zero;
    for (size_t i = 0; i < s->n; i++)
        if (plan)
            cut_stored_tensor(m, &s->tensor[i], plan, stored);
        else
            cut_tensor(m, &s->tensor[i]);
    free_model(m);
    return s;
}

struct pieces *cut_state(const struct config *c, const struct mesh *m) { return cut_all(c, m, NULL, NULL); }

struct pieces *cut_stored(const struct snap_plan *plan, const struct snapshot *s)
{
    return cut_all(plan->config, plan->mesh, plan, s);
}

int most_ranks(const struct pieces *p) { return p->dp * p->pp * p->tp; }

void free_pieces(struct pieces *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->tensor[i].piece);
    free(s->tensor);
    free(s);
}
