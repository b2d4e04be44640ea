/* mesh.c - coordinates of ranks, layers of stages, shards of units, parts of tensors. */
#include "mesh.h"

#include "cl/shared.h"

const struct mesh one_rank = {.dp = 1, .pp = 1, .tp = 1, .chunks = 1, .first_layer = (int[]){0, 1}};

/* ---- coordinates ------------------------------------------------------------------------------------------------- */

int n_ranks(const struct mesh *mesh) { return mesh->dp * mesh->pp * mesh->tp; }
int n_stages(const struct mesh *mesh) { return mesh->pp * mesh->chunks; }

int pp_of(const struct mesh *mesh, int stage)
{
    int coordinate = stage % mesh->pp;
    int chunk = stage / mesh->pp;
    if (mesh->folded && chunk % 2 == 1)
        return mesh->pp - 1 - coordinate;
    return coordinate;
}

int rank_at(const struct mesh *mesh, int dp, int stage) { return (dp * mesh->pp + pp_of(mesh, stage)) * mesh->tp; }
int dp_of(const struct mesh *mesh, int rank) { return rank / (mesh->pp * mesh->tp); }
int tp_of(const struct mesh *mesh, int rank) { return rank % mesh->tp; }

bool has_stage(const struct mesh *mesh, int rank, int stage)
{
    return rank / mesh->tp % mesh->pp == pp_of(mesh, stage);
}

void free_mesh(struct mesh *mesh) { free(mesh->first_layer); }

/* ---- what the user writes ---------------------------------------------------------------------------------------- */

struct axis {
    const char *name; /* "dp=" */
    int *ranks;       /* where its number goes */
    bool given;
};

/* Reads "dp=2" at the beginning of a text.  Returns what follows; NULL: the text begins with something else. */
static const char *parse_axis(const char *text, struct axis axes[3])
{
    for (struct axis *axis = axes; axis < axes + 3; axis++) {
        if (strncmp(text, axis->name, 3) != 0 || axis->given)
            continue;
        char *end;
        long ranks = strtol(text + 3, &end, 10);
        if (ranks < 1 || ranks > MOST_RANKS)
            return NULL;
        axis->given = true;
        *axis->ranks = (int)ranks;
        return end;
    }
    return NULL;
}

struct problem *parse_mesh(const char *text, int ranks, struct mesh *mesh)
{
    struct axis axes[3] = {
        {.name = "dp=", .ranks = &mesh->dp}, {.name = "pp=", .ranks = &mesh->pp}, {.name = "tp=", .ranks = &mesh->tp}};
    *mesh = (struct mesh){.dp = text ? 1 : ranks, .pp = 1, .tp = 1, .chunks = 1};
    const char *at = text;
    while (at) {
        at = parse_axis(at, axes);
        if (!at || (*at && *at != ','))
            return new_problem(EXIT_USAGE,
                               "--mesh takes dp=A,pp=B,tp=C, each once, with numbers from 1 to %d, not \"%s\"; an "
                               "omitted axis is 1",
                               MOST_RANKS, text);
        at = *at == ',' ? at + 1 : NULL;
    }
    double devices = (double)mesh->dp * mesh->pp * mesh->tp;
    if (devices > MOST_RANKS)
        return new_problem(EXIT_USAGE, "--mesh %s asks for %.0f devices, the product of its numbers; %d are possible",
                           text, devices, MOST_RANKS);
    return NULL;
}

char *format_mesh(char out[MESH_TEXT], const struct mesh *mesh)
{
    snprintf(out, MESH_TEXT, "dp=%d,pp=%d,tp=%d", mesh->dp, mesh->pp, mesh->tp);
    return out;
}

/* Part k of n of `things` begins at thing kE/n, rounded down; part n: the end. */
static size_t part_begin(size_t things, int k, int n) { return things * (size_t)k / (size_t)n; }

/* The layers of each stage as the user wrote them: "3,5,4". */
static struct problem *parse_stages(struct mesh *mesh, int layers, const char *stages)
{
    int n = n_stages(mesh);
    const char *at = stages;
    for (int stage = 0; stage < n; stage++) {
        char *end;
        long own = strtol(at, &end, 10);
        char after = stage + 1 < n ? ',' : '\0';
        if (end == at || own < 1 || own > layers || *end != after)
            return new_problem(EXIT_USAGE, "--stages %s: expected %d numbers of layers, from 1 up, with commas between",
                               stages, n);
        mesh->first_layer[stage + 1] = mesh->first_layer[stage] + (int)own;
        at = end + 1;
    }
    if (mesh->first_layer[n] != layers)
        return new_problem(EXIT_USAGE, "--stages %s has %d layers in all, and must have %d", stages,
                           mesh->first_layer[n], layers);
    return NULL;
}

struct problem *cut_layers(struct mesh *mesh, int layers, const char *stages)
{
    int n = n_stages(mesh);
    mesh->first_layer = allocate_each(n + 1, sizeof *mesh->first_layer);
    if (layers < n)
        return new_problem(EXIT_USAGE,
                           "pp=%d with %d stage%s per device needs at least %d layers, the model has %d: use pp=%d, "
                           "or --layers %d",
                           mesh->pp, mesh->chunks, PLURAL(mesh->chunks), n, layers, MAX(layers / mesh->chunks, 1), n);
    for (int stage = 0; stage <= n; stage++)
        mesh->first_layer[stage] = (int)part_begin((size_t)layers, stage, n);
    if (!stages)
        return NULL;
    return parse_stages(mesh, layers, stages);
}

struct problem *cut_layers_as_recorded(struct mesh *mesh, int layers, const char *stages)
{
    struct problem *problem = cut_layers(mesh, layers, stages);
    if (!problem)
        return NULL;
    free(problem);
    free_mesh(mesh);
    return cut_layers(mesh, layers, NULL);
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

struct range flat_part(size_t elements, size_t grain, int k, int n)
{
    size_t grains = ceil_div(elements, grain);
    return (struct range){MIN(part_begin(grains, k, n) * grain, elements),
                          MIN(part_begin(grains, k + 1, n) * grain, elements)};
}

struct range shard_of(size_t elements, int k, int n) { return flat_part(elements, NORM_BLOCK, k, n); }

/* ---- parts ------------------------------------------------------------------------------------------------------- */

struct part part_of(const struct cut *cut, const int64_t shape[2], int k, int n)
{
    size_t rows = (size_t)shape[0], columns = (size_t)shape[1];
    size_t elements = rows * columns;
    if (cut->split == SPLIT_NONE)
        return (struct part){.stretches = 1, .length = elements, .begin = 0, .end = elements};
    size_t stretches = (size_t)cut->sections;
    size_t grain = (size_t)cut->grain; /* elements that stay together */
    if (cut->split == SPLIT_ROWS)
        grain *= columns;
    else
        stretches *= rows; /* each row has some elements of the part */
    size_t length = elements / stretches;
    size_t grains = length / grain;
    return (struct part){.stretches = stretches,
                         .length = length,
                         .begin = part_begin(grains, k, n) * grain,
                         .end = part_begin(grains, k + 1, n) * grain};
}
