/* mesh.c - coordinates of ranks, layers of stages, shards of units, parts of tensors. */
#include "mesh.h"

#include "../../../cl/shared.h" /* defines: NORM_BLOCK */

const struct mesh one_rank = {.dp = 1, .pp = 1, .tp = 1, .chunks = 1, .first_layer = (int[]){0, 1}};

/* ---- coordinates ----------------------------------------------------------------------------------------------- */

int n_ranks(const struct mesh *m) { return m->dp * m->pp * m->tp; }
int n_stages(const struct mesh *m) { return m->pp * m->chunks; }
int pp_of(const struct mesh *m, int stage)
{
    int p = stage % m->pp;
    return m->folded && stage / m->pp % 2 ? m->pp - 1 - p : p;
}
int rank_at(const struct mesh *m, int dp, int stage) { return (dp * m->pp + pp_of(m, stage)) * m->tp; }
int dp_of(const struct mesh *m, int rank) { return rank / (m->pp * m->tp); }
int tp_of(const struct mesh *m, int rank) { return rank % m->tp; }
bool has_stage(const struct mesh *m, int rank, int stage) { return rank / m->tp % m->pp == pp_of(m, stage); }
void free_mesh(struct mesh *m) { free(m->first_layer); }

/* ---- what the user writes -------------------------------------------------------------------------------------- */

struct problem *parse_mesh(const char *text, int ranks, struct mesh *m)
{
    static const char *const names[] = {"dp=", "pp=", "tp="};
    int *axis[] = {&m->dp, &m->pp, &m->tp};
    bool given[3] = {false};
    *m = (struct mesh){.dp = text ? 1 : ranks, .pp = 1, .tp = 1, .chunks = 1};
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char *end = NULL;
        long n = 0;
        for (int i = 0; i < 3; i++)
            if (strncmp(at, names[i], 3) == 0 && !given[i]) {
                n = strtol(at + 3, &end, 10);
                given[i] = true;
                *axis[i] = (int)MIN(n, MAX_RANKS);
            }
        if (!end || n < 1 || n > MAX_RANKS || (*end && *end != ','))
            return new_problem(
                EXIT_USAGE,
                "--mesh %s: expected dp=A,pp=B,tp=C, each once, with numbers from 1 to %d; an omitted axis is 1", text,
                MAX_RANKS);
    }
    double devices = (double)m->dp * m->pp * m->tp;
    if (devices > MAX_RANKS)
        return new_problem(EXIT_USAGE, "--mesh %s asks for %.0f devices, the product of its numbers; the most are %d",
                           text, devices, MAX_RANKS);
    return NULL;
}

char *format_mesh(char out[64], const struct mesh *m)
{
    snprintf(out, 64, "dp=%d,pp=%d,tp=%d", m->dp, m->pp, m->tp);
    return out;
}

/* Part k of n of `things` begins at thing kE/n, rounded down; part n: the end. */
static size_t part_begin(size_t things, int k, int n) { return things * (size_t)k / (size_t)n; }

struct problem *cut_layers(struct mesh *m, int layers, const char *stages)
{
    int n = n_stages(m);
    m->first_layer = allocate((size_t)n + 1, sizeof *m->first_layer);
    if (layers < n)
        return new_problem(EXIT_USAGE,
                           "pp=%d with %d stage%s per device wants at least %d layers, the model has %d: use pp=%d",
                           m->pp, m->chunks, m->chunks == 1 ? "" : "s", n, layers, MAX(layers / m->chunks, 1));
    for (int s = 0; s <= n; s++)
        m->first_layer[s] = (int)part_begin((size_t)layers, s, n);
    const char *at = stages;
    for (int s = 0; s < n && stages; s++) {
        char *end;
        long own = strtol(at, &end, 10);
        if (end == at || own < 1 || own > layers || *end != (s + 1 < n ? ',' : '\0'))
            return new_problem(EXIT_USAGE, "--stages %s: expected %d numbers of layers, from 1 up, with commas between",
                               stages, n);
        m->first_layer[s + 1] = m->first_layer[s] + (int)own;
        at = end + 1;
    }
    if (m->first_layer[n] != layers)
        return new_problem(EXIT_USAGE, "--stages %s has %d layers in all, the model %d", stages, m->first_layer[n],
                           layers);
    return NULL;
}

/* ---- shards ---------------------------------------------------------------------------------------------------- */

struct shard flat_part(size_t elements, size_t grain, int k, int n)
{
    size_t grains = ceil_div(elements, grain);
    return (struct shard){MIN(part_begin(grains, k, n) * grain, elements),
                          MIN(part_begin(grains, k + 1, n) * grain, elements)};
}

struct shard shard_of(size_t elements, int k, int n) { return flat_part(elements, NORM_BLOCK, k, n); }

/* ---- parts ----------------------------------------------------------------------------------------------------- */

struct part part_of(const struct cut *c, const int64_t shape[2], int k, int n)
{
    size_t rows = (size_t)shape[0], columns = (size_t)shape[1], sections = (size_t)c->sections;
    bool by_columns = c->split == SPLIT_COLUMNS;
    size_t runs = by_columns ? rows * sections : sections, length = rows * columns / runs;
    size_t grain = (size_t)c->grain * (by_columns ? 1 : columns), grains = length / grain;
    if (c->split == SPLIT_NONE)
        return (struct part){1, rows * columns, 0, rows * columns};
    return (struct part){runs, length, part_begin(grains, k, n) * grain, part_begin(grains, k + 1, n) * grain};
}
