/* replica.c - a rank's parameters, gradients and optimizer state on its device. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

int owner_of(const struct model *m, int unit) { return unit % m->n_ranks; }

/* The role of each parameter of a unit, in the table's order. */
static const enum layer_param layer_roles[LAYER_PARAMS] = {QKV_W, PROJ_W, FC_W,  FCPROJ_W, LN1_W, LN1_B,
                                                           QKV_B, PROJ_B, LN2_W, LN2_B,    FC_B,  FCPROJ_B};
static const enum other_param embedding_roles[] = {WTE, WPE}, final_roles[] = {HEAD, LNF_W, LNF_B};

static struct tensor *unit_tensor(struct model *m, const struct replica *r, enum memory_class class, const char *what,
                                  int unit)
{
    char name[48];
    snprintf(name, sizeof name, "%s.%d", what, unit);
    struct tensor *t =
        new_tensor(m->pool, r->device, class, name, FLOAT32, SHAPE((int64_t)m->params->unit[unit].elements));
    t->persistent = true;
    return t;
}

static struct weight views_of(struct model *m, const struct replica *r, const struct param *p)
{
    char *grad = format_string("grad.%s", p->name);
    struct tensor *value = r->value[p->unit], *of = r->grad[p->unit];
    struct weight w = {new_view(m->pool, value, p->name, p->offset, p->rank, p->shape),
                       of ? new_view(m->pool, of, grad, p->offset, p->rank, p->shape) : NULL};
    free(grad);
    return w;
}

static struct weight *role_of(const struct model *m, struct replica *r, int param)
{
    const struct param *p = &m->params->param[param];
    const struct unit *u = &m->params->unit[p->unit];
    int i = param - u->first;
    if (p->layer >= 0)
        return &r->layer[p->layer].w[layer_roles[i]];
    if (p->unit == 0)
        return &r->other[embedding_roles[i]];
    return &r->other[final_roles[i + m->params->config.tied]];
}

static void make_views(struct model *m, struct replica *r)
{
    for (int i = 0; i < m->params->n; i++) {
        r->by_param[i] = views_of(m, r, &m->params->param[i]);
        *role_of(m, r, i) = r->by_param[i];
    }
    if (m->params->config.tied)
        r->other[HEAD] = r->other[WTE];
}

static struct tensor *small_tensor(struct model *m, struct replica *r, const char *name, int64_t n)
{
    struct tensor *t = new_tensor(m->pool, r->device, MEM_WORK, name, FLOAT32, SHAPE(n));
    t->persistent = true;
    return t;
}

static void make_replica(struct model *m, int rank)
{
    struct replica *r = &m->replica[rank];
    const struct config *c = &m->params->config;
    size_t n = (size_t)m->params->n_units;
    r->rank = rank;
    r->device = &m->pool->machine->device[rank];
    r->value = allocate(n, sizeof *r->value);
    r->grad = allocate(n, sizeof *r->grad);
    r->m = allocate(n, sizeof *r->m);
    r->v = allocate(n, sizeof *r->v);
    r->layer = allocate((size_t)c->layers, sizeof *r->layer);
    r->by_param = allocate((size_t)m->params->n, sizeof *r->by_param);
    for (int u = 0; u < m->params->n_units; u++) {
        r->value[u] = unit_tensor(m, r, MEM_PARAMETERS, "param", u);
        if (!m->training)
            continue;
        r->grad[u] = unit_tensor(m, r, MEM_GRADIENTS, "grad", u);
        if (owner_of(m, u) != rank)
            continue;
        r->m[u] = unit_tensor(m, r, MEM_OPTIMIZER, "adam.m", u);
        r->v[u] = unit_tensor(m, r, MEM_OPTIMIZER, "adam.v", u);
    }
    make_views(m, r);
    if (!m->training)
        return;
    if (c->tied) {
        r->lookup_grad =
            new_tensor(m->pool, r->device, MEM_GRADIENTS, "grad.wte.lookup", FLOAT32, SHAPE(c->vocab, c->channels));
        r->lookup_grad->persistent = true;
    }
    r->control = small_tensor(m, r, "control", CONTROL_SIZE);
    r->state = small_tensor(m, r, "state", STATE_SIZE);
}

struct model *new_model(struct pool *p, const struct config *c, int n_ranks, bool training)
{
    check_config(c);
    struct model *m = allocate(1, sizeof *m);
    m->params = new_params(c);
    m->pool = p;
    m->n_ranks = n_ranks;
    m->training = training;
    m->replica = allocate((size_t)n_ranks, sizeof *m->replica);
    for (int r = 0; r < n_ranks; r++)
        make_replica(m, r);
    return m;
}

void free_model(struct model *m)
{
    for (int i = 0; i < m->n_ranks; i++) {
        struct replica *r = &m->replica[i];
        free(r->value), free(r->grad), free(r->m), free(r->v), free(r->layer), free(r->by_param);
    }
    free(m->replica);
    free_params(m->params);
    free(m);
}

void write_param(struct model *m, int param, const float *values)
{
    for (int r = 0; r < m->n_ranks; r++)
        write_tensor(m->replica[r].by_param[param].value, values);
}

static void clear_tensor(struct tensor *t)
{
    void *zeros = t ? allocate(t->bytes, 1) : NULL;
    if (t)
        write_tensor(t, zeros);
    free(zeros);
}

void clear_optimizer(struct model *m)
{
    for (int r = 0; r < m->n_ranks; r++) {
        for (int u = 0; u < m->params->n_units; u++) {
            clear_tensor(m->replica[r].m[u]);
            clear_tensor(m->replica[r].v[u]);
        }
        clear_tensor(m->replica[r].state);
    }
}

void read_param(struct model *m, int param, float *values) { read_tensor(m->replica[0].by_param[param].value, values); }

void read_gradient(struct model *m, int param, float *values)
{
    struct replica *r = &m->replica[0];
    read_tensor(r->by_param[param].grad, values);
}
