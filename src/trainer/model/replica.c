/* replica.c - a rank's part of parameters, gradients and optimizer state on its device.
 *
 * A rank has the units of its stages.  Data-parallel ranks hold the same units; with ZeRO each keeps Adam's state of
 * its own shard only.  A tied head on another device than the embedding is a copy of it, with a gradient of its own.
 *
 * With ZeRO-3 parameters lie in shards too.  Lists are built as if every rank had all parameters of its units; then the
 * pass `gather` makes each of these tensors live only while a layer is at work.
 */
#include "model.h"

int first_unit(const struct model *m, int stage)
{
    if (stage == 0)
        return 0;
    if (stage == n_stages(m->mesh))
        return m->params->n_units;
    return 1 + m->mesh->first_layer[stage];
}

int stage_of(const struct model *m, int unit)
{
    int stage = 0;
    while (unit >= first_unit(m, stage + 1))
        stage++;
    return stage;
}

const struct params *params_of(const struct model *m, int rank) { return m->part[tp_of(m->mesh, rank)]; }

bool is_shared_out(const struct mesh *mesh, enum kept role)
{
    if (mesh->dp == 1 || role == KEPT_GRADIENT)
        return false;
    return mesh->zero >= (role == KEPT_VALUE ? 3 : 1);
}

struct shard held_by(const struct model *m, int unit, int rank, enum kept role)
{
    size_t n = params_of(m, rank)->unit[unit].elements;
    if (!is_shared_out(m->mesh, role))
        return (struct shard){0, n};
    return shard_of(n, dp_of(m->mesh, rank), m->mesh->dp);
}

static struct tensor *new_kept(struct model *m, const struct replica *r, enum memory_class class, const char *name,
                               struct shape shape)
{
    const struct tensor_form form = {.device = r->device, .class = class, .name = name, .shape = shape};
    struct tensor *t = new_tensor(m->pool, &form);
    t->persistent = class != MEM_GRADIENTS || !m->gradients.dropped;
    t->is_buffer = !t->persistent; /* what is kept of it is a shard of the sum over ranks */
    return t;
}

static struct tensor *unit_tensor(struct model *m, const struct replica *r, enum memory_class class, const char *what,
                                  int unit, size_t elements)
{
    char name[48];
    snprintf(name, sizeof name, "%s.%d", what, unit);
    return new_kept(m, r, class, name, SHAPE((int64_t)elements));
}

/* The unit's parameters on the first data-parallel rank, at r's place in its tensor-parallel group. */
static const struct tensor *first_of(const struct model *m, const struct replica *r, int unit)
{
    int rank = rank_at(m->mesh, 0, stage_of(m, unit)) + tp_of(m->mesh, r->rank);
    return m->replica[rank].value[unit];
}

static void make_unit(struct model *m, struct replica *r, int unit)
{
    size_t n = params_of(m, r->rank)->unit[unit].elements;
    struct shard mine = held_by(m, unit, r->rank, KEPT_M);
    bool empty = mine.begin == mine.end;
    r->value[unit] = unit_tensor(m, r, MEM_PARAMETERS, "param", unit, n);
    r->value[unit]->replica.of = first_of(m, r, unit);
    if (is_shared_out(m->mesh, KEPT_VALUE) && !empty) {
        struct tensor *shard = unit_tensor(m, r, MEM_PARAMETERS, "shard", unit, mine.end - mine.begin);
        shard->replica.of = first_of(m, r, unit);
        shard->replica.begin = mine.begin * ELEMENT_BYTES;
        shard->replica.is_shard = true;
        r->shard[unit] = shard;
    }
    if (!m->training)
        return;
    r->grad[unit] = unit_tensor(m, r, MEM_GRADIENTS, "grad", unit, n);
    if (empty)
        return;
    r->m[unit] = unit_tensor(m, r, MEM_OPTIMIZER, "adam.m", unit, mine.end - mine.begin);
    r->v[unit] = unit_tensor(m, r, MEM_OPTIMIZER, "adam.v", unit, mine.end - mine.begin);
}

/* A rank with the first stage has a gradient of the look-up.  A rank with the last stage has the head: the embedding
 * itself if it has that too, else a copy (which the replica of a group of sequences shares with its rank's). */
static void make_tied_head(struct model *m, struct replica *r)
{
    const struct param *wte = &params_of(m, r->rank)->param[0];
    bool first = has_stage(m->mesh, r->rank, 0), last = has_stage(m->mesh, r->rank, n_stages(m->mesh) - 1);
    struct weight *head = &r->other[HEAD];
    if (first && m->training)
        r->lookup_grad =
            as_buffer(new_kept(m, r, MEM_GRADIENTS, "grad.wte.lookup", SHAPE(wte->shape[0], wte->shape[1])));
    if (first && last)
        *head = r->other[WTE];
    if (first || !last)
        return;
    if (!head->value) {
        head->value = as_buffer(new_kept(m, r, MEM_PARAMETERS, "param.head", SHAPE(wte->rows, wte->shape[1])));
        head->value->replica.of = first_of(m, r, 0);
        head->value->replica.begin = wte->offset * ELEMENT_BYTES;
    }
    head->cut = wte->cut;
    head->first = wte->first;
    if (m->training)
        head->grad = as_buffer(new_kept(m, r, MEM_GRADIENTS, "grad.head", SHAPE(wte->rows, wte->shape[1])));
}

/* The first parameter of a unit that is no layer. */
static enum other_param first_other(const struct params *p, int unit)
{
    if (unit == 0)
        return WTE;
    return p->config.tied ? LNF_W : HEAD;
}

/* Parameters by name, as views of the units' tensors. */
static void make_weights(struct model *m, struct replica *r)
{
    r->by_param = allocate((size_t)m->params->n, sizeof *r->by_param);
    for (int i = 0; i < m->params->n; i++) {
        const struct param *p = &params_of(m, r->rank)->param[i];
        struct tensor *values = r->value[p->unit], *gradients = r->grad[p->unit];
        struct weight *w = &r->by_param[i];
        if (!values)
            continue;
        const struct shape shape = {.n_dims = p->n_dims, .size = {p->rows, p->shape[1]}};
        w->value = new_view(m->pool, values, p->name, p->offset, shape);
        if (gradients)
            w->grad = new_view(m->pool, gradients, JOINED("grad.", p->name), p->offset, shape);
        w->cut = p->cut;
        w->first = p->first;
        int nth = i - m->params->unit[p->unit].first_param; /* its number among the unit's parameters */
        if (p->layer < 0)
            r->other[(int)first_other(m->params, p->unit) + nth] = *w;
    }
    if (m->params->config.tied)
        make_tied_head(m, r);
}

/* A replica with the same parameters, and gradients of its own for a second group of sequences. */
static void make_group(struct model *m, struct replica *r)
{
    size_t n = (size_t)m->params->n_units;
    struct replica *group = copy_bytes(r, sizeof *r);
    group->grad = allocate(n, sizeof *group->grad);
    for (int u = 0; u < (int)n; u++)
        if (r->value[u])
            group->grad[u] = as_buffer(unit_tensor(m, r, MEM_GRADIENTS, "grad.group", u, count_elements(r->value[u])));
    make_weights(m, group);
    r->second_set = group;
}

static void make_replica(struct model *m, int rank)
{
    struct replica *r = &m->replica[rank];
    size_t n = (size_t)m->params->n_units;
    r->rank = rank;
    r->device = &m->pool->machine->device[rank];
    r->value = allocate(n, sizeof *r->value);
    r->grad = allocate(n, sizeof *r->grad);
    r->m = allocate(n, sizeof *r->m);
    r->v = allocate(n, sizeof *r->v);
    r->shard = allocate(n, sizeof *r->shard);
    for (int u = 0; u < (int)n; u++)
        if (has_stage(m->mesh, rank, stage_of(m, u)))
            make_unit(m, r, u);
    make_weights(m, r);
    if (m->training) {
        r->control = new_kept(m, r, MEM_WORK, "control", SHAPE(CONTROL_SIZE));
        r->state = new_kept(m, r, MEM_WORK, "state", SHAPE(STATE_SIZE));
    }
    if (m->gradients.grouped)
        make_group(m, r);
}

struct model *outline_model(const struct config *c, const struct mesh *mesh)
{
    check_config(c);
    struct model *m = allocate(1, sizeof *m);
    m->params = new_params(c, &one_rank, 0);
    m->part = allocate((size_t)mesh->tp, sizeof(struct params *));
    for (int k = 0; k < mesh->tp; k++)
        m->part[k] = new_params(c, mesh, k);
    m->mesh = mesh;
    return m;
}

struct model *new_model(struct pool *p, const struct config *c, const struct mesh *mesh, enum model_use use,
                        struct gradients gradients)
{
    struct model *m = outline_model(c, mesh);
    m->pool = p;
    m->training = use == TO_TRAIN;
    m->gradients = gradients;
    m->replica = allocate((size_t)n_ranks(mesh), sizeof *m->replica);
    for (int r = 0; r < n_ranks(mesh); r++)
        make_replica(m, r);
    return m;
}

static void free_replica(struct replica *r)
{
    free(r->value);
    free(r->grad);
    free(r->m);
    free(r->v);
    free(r->shard);
    free(r->by_param);
    if (r->second_set) { /* all its other arrays are those of r */
        free(r->second_set->grad);
        free(r->second_set->by_param);
        free(r->second_set);
    }
}

void free_model(struct model *m)
{
    for (int rank = 0; m->replica && rank < n_ranks(m->mesh); rank++)
        free_replica(&m->replica[rank]);
    for (int k = 0; k < m->mesh->tp; k++)
        free_params(m->part[k]);
    free_params(m->params);
    free(m->replica);
    free(m->part);
    free(m);
}

/* ---- set-up and saving ----------------------------------------------------------------------------------------- */

struct tensor *tensor_of(const struct replica *r, int unit, enum kept role)
{
    if (role == KEPT_GRADIENT)
        return r->grad[unit];
    if (role == KEPT_M)
        return r->m[unit];
    if (role == KEPT_V)
        return r->v[unit];
    return r->shard[unit] ? r->shard[unit] : r->value[unit];
}

enum way { TO_DEVICE, FROM_DEVICE };
/* Copies between `part`, a rank's part of a parameter, and the tensor in which the rank keeps all, a shard or nothing
 * of this part. */
static void copy_kept(const struct model *m, int param, int rank, enum kept role, enum way way, float *part)
{
    const struct param *p = &params_of(m, rank)->param[param];
    struct shard held = held_by(m, p->unit, rank, role);
    size_t begin = MAX(held.begin, p->offset);
    size_t end = MIN(held.end, p->offset + param_elements(p));
    struct tensor *t = tensor_of(&m->replica[rank], p->unit, role);
    if (!t || begin >= end)
        return;
    size_t first_byte = ELEMENT_BYTES * (begin - held.begin);
    size_t bytes = ELEMENT_BYTES * (end - begin);
    float *values = part + (begin - p->offset);
    if (way == TO_DEVICE)
        write_bytes_of(t, first_byte, bytes, values);
    else
        read_bytes_of(t, first_byte, bytes, values);
}

enum part_copy { INTO_WHOLE, OUT_OF_WHOLE };
/* Copies between a whole parameter and rank k's part of it: from the part into the whole, or the part out of it. */
static void copy_part(const struct model *m, int param, int k, enum part_copy copy, float *to, const float *from)
{
    const struct param *p = &m->params->param[param];
    struct part part = part_of(&m->part[k]->param[param].cut, p->shape, k, m->mesh->tp);
    size_t n = part.end - part.begin;
    for (size_t i = 0; i < part.runs; i++) {
        size_t in_whole = i * part.length + part.begin;
        size_t in_part = i * n;
        if (copy == INTO_WHOLE)
            memcpy(to + in_whole, from + in_part, n * sizeof *to);
        else
            memcpy(to + in_part, from + in_whole, n * sizeof *to);
    }
}

/* A tied head that is a copy of the embedding is written with it. */
void write_param(struct model *m, int param, enum kept role, const float *values)
{
    bool with_head = param == 0 && role == KEPT_VALUE && m->params->config.tied && !is_shared_out(m->mesh, KEPT_VALUE);
    for (int k = 0; k < m->mesh->tp; k++) {
        float *part = allocate(param_elements(&m->part[k]->param[param]), sizeof *part);
        copy_part(m, param, k, OUT_OF_WHOLE, part, values);
        for (int rank = k; rank < n_ranks(m->mesh); rank += m->mesh->tp) {
            const struct weight *wte = &m->replica[rank].other[WTE];
            const struct weight *head = &m->replica[rank].other[HEAD];
            copy_kept(m, param, rank, role, TO_DEVICE, part);
            if (with_head && head->value && head->value != wte->value)
                write_bytes_of(head->value, 0, ELEMENT_BYTES * param_elements(&m->part[k]->param[param]), part);
        }
        free(part);
    }
}

/* The whole is put together from the parts of tensor-parallel ranks, each part from shards of data-parallel ranks. */
void read_param(struct model *m, int param, enum kept role, float *values)
{
    int stage = stage_of(m, m->params->param[param].unit);
    int ranks = is_shared_out(m->mesh, role) ? m->mesh->dp : 1;
    for (int k = 0; k < m->mesh->tp; k++) {
        float *part = allocate(param_elements(&m->part[k]->param[param]), sizeof *part);
        for (int dp = 0; dp < ranks; dp++)
            copy_kept(m, param, rank_at(m->mesh, dp, stage) + k, role, FROM_DEVICE, part);
        copy_part(m, param, k, INTO_WHOLE, values, part);
        free(part);
    }
}
