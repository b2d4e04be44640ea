/* mesh.c - coordinates of ranks, layers of stages, shards of units, parts of tensors. */
#include "mesh.h"

#include "cl/shared.h" /* defines: NORM_BLOCK */

const struct mesh one_rank = {.dp = 1, .pp = 1, .tp = 1, .chunks = 1, .first_layer = (int[]){0, 1}};

/* ---- coordinates ----------------------------------------------------------------------------------------------- */

int n_ranks(const struct mesh *m) { return m->dp * m->pp * m->tp; }
int n_stages(const struct mesh *m) { return m->pp * m->chunks; }
int pp_of(const struct mesh *m, int stage)
{
    int p = stage % m->pp;
    int chunk = stage / m->pp;
    if (m->folded && chunk % 2 == 1)
        return m->pp - 1 - p;
    return p;
}
int rank_at(const struct mesh *m, int dp, int stage) { return (dp * m->pp + pp_of(m, stage)) * m->tp; }
int dp_of(const struct mesh *m, int rank) { return rank / (m->pp * m->tp); }
int tp_of(const struct mesh *m, int rank) { return rank % m->tp; }
bool has_stage(const struct mesh *m, int rank, int stage) { return rank / m->tp % m->pp == pp_of(m, stage); }
void free_mesh(struct mesh *m) { free(m->first_layer); }

/* ---- what the user writes -------------------------------------------------------------------------------------- */

struct axis {
    const char *name; /* "dp=" */
    int *ranks;       /* where its number goes */
    bool given;
};

/* Reads "dp=2" at the beginning of a text.  Returns what follows; NULL: the text begins with something else. */
static const char *parse_axis(const char *text, struct axis axes[3])
{
    for (struct axis *a = axes; a < axes + 3; a++) {
        if (strncmp(text, a->name, 3) != 0 || a->given)
            continue;
        char *end;
        long n = strtol(text + 3, &end, 10);
        if (n < 1 || n > MOST_RANKS)
            return NULL;
        a->given = true;
        *a->ranks = (int)n;
        return end;
    }
    return NULL;
}

struct problem *parse_mesh(const char *text, int ranks, struct mesh *m)
{
    struct axis axes[3] = {
        {.name = "dp=", .ranks = &m->dp}, {.name = "pp=", .ranks = &m->pp}, {.name = "tp=", .ranks = &m->tp}};
    *m = (struct mesh){.dp = text ? 1 : ranks, .pp = 1, .tp = 1, .chunks = 1};
    const char *at = text;
    while (at) {
        at = parse_axis(at, axes);
        if (!at || (*at && *at != ','))
            return new_problem(
                EXIT_USAGE,
                "--mesh %s: expected dp=A,pp=B,tp=C, each once, with numbers from 1 to %d; an omitted axis is 1", text,
                MOST_RANKS);
        at = *at == ',' ? at + 1 : NULL;
    }
    double devices = (double)m->dp * m->pp * m->tp;
    if (devices > MOST_RANKS)
        return new_problem(EXIT_USAGE, "--mesh %s asks for %.0f devices, the product of its numbers; the most are %d",
                           text, devices, MOST_RANKS);
    return NULL;
}

char *format_mesh(char out[64], const struct mesh *m)
{
    snprintf(out, 64, "dp=%d,pp=%d,tp=%d", m->dp, m->pp, m->tp);
    return out;
}

/* Part k of n of `things` begins at thing kE/n, rounded down; part n: the end. */
static size_t part_begin(size_t things, int k, int n) { return things * (size_t)k / (size_t)n; }

/* The layers of each stage as the user wrote them: "3,5,4". */
static struct problem *parse_stages(struct mesh *m, int layers, const char *stages)
{
    int n = n_stages(m);
    const char *at = stages;
    for (int s = 0; s < n; s++) {
        char *end;
        long own = strtol(at, &end, 10);
        char after = s + 1 < n ? ',' : '\0';
        if (end == at || own < 1 || own > layers || *end != after)
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

struct problem *cut_layers(struct mesh *m, int layers, const char *stages)
{
    int n = n_stages(m);
    m->first_layer = allocate((size_t)n + 1, sizeof *m->first_layer);
    if (layers < n)
        return new_problem(
            EXIT_USAGE,
            "pp=%d with %d stage%s per device wants at least %d layers, the model has %d: use pp=%d, or --layers %d",
            m->pp, m->chunks, m->chunks == 1 ? "" : "s", n, layers, MAX(layers / m->chunks, 1), n);
    for (int s = 0; s <= n; s++)
        m->first_layer[s] = (int)part_begin((size_t)layers, s, n);
    if (!stages)
        return NULL;
    return parse_stages(m, layers, stages);
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
    size_t rows = (size_t)shape[0], columns = (size_t)shape[1];
    size_t elements = rows * columns;
    if (c->split == SPLIT_NONE)
        return (struct part){.runs = 1, .length = elements, .begin = 0, .end = elements};
    size_t runs = (size_t)c->sections;
    size_t grain = (size_t)c->grain; /* elements that stay together */
    if (c->split == SPLIT_ROWS)
        grain *= columns;
    else
        runs *= rows; /* each row has some elements of the part */
    size_t length = elements / runs;
    size_t grains = length / grain;
    return (struct part){.runs = runs,
                         .length = length,
                         .begin = part_begin(grains, k, n) * grain,
                         .end = part_begin(grains, k + 1, n) * grain};
}
