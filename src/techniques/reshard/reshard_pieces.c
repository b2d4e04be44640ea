/* reshard_pieces.c - which rank keeps which part of the state: it follows from the mesh's cut, and from nothing else.
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
#include "reshard.h"
#include "trainer/base/module.h"

const char *const kept_name[STORED_ROLES] = {"value", "m", "v"};

/* ---- a piece ----------------------------------------------------------------------------------------------------- */

size_t tensor_elements(const struct kept_tensor *tensor) { return (size_t)(tensor->shape[0] * tensor->shape[1]); }

size_t piece_elements(const struct piece *piece)
{
    size_t n = (size_t)(piece->end[0] - piece->begin[0]); /* flat: elements; box: rows */
    if (piece->flat)
        return n;
    return n * (size_t)(piece->end[1] - piece->begin[1]);
}

size_t element_of(const struct kept_tensor *tensor, const struct piece *piece, size_t i, size_t *stretch)
{
    *stretch = piece_elements(piece) - i;
    if (piece->flat)
        return (size_t)piece->begin[0] + i;
    size_t columns = (size_t)tensor->shape[1];
    size_t width = (size_t)(piece->end[1] - piece->begin[1]);
    size_t row = (size_t)piece->begin[0] + i / width;
    if (width < columns) /* then a stretch ends with its row */
        *stretch = width - i % width;
    return row * columns + (size_t)piece->begin[1] + i % width;
}

char *piece_name(char out[PIECE_NAME], const struct kept_tensor *tensor, size_t i)
{
    snprintf(out, PIECE_NAME, "%s/%s/%zu", kept_name[tensor->role], tensor->name, i);
    return out;
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

/* The piece has n elements of the tensor, from element `first` on. */
static void set_range(struct piece *piece, size_t first, size_t n)
{
    piece->flat = true;
    piece->begin[0] = (int64_t)first;
    piece->end[0] = (int64_t)(first + n);
}

/* Makes the piece a box: n elements in `rows` rows, the first of them at element `first` of a tensor of `columns`. */
static void set_box(struct piece *piece, size_t first, size_t n, size_t rows, size_t columns)
{
    piece->begin[0] = (int64_t)(first / columns);
    piece->end[0] = piece->begin[0] + (int64_t)rows;
    piece->begin[1] = (int64_t)(first % columns);
    piece->end[1] = piece->begin[1] + (int64_t)(n / rows);
}

/* The part of the tensor that the rank has.  A parameter that is not cut, or cut into one, is a single stretch. */
static struct part part_of_rank(const struct model *model, const struct kept_tensor *tensor, int rank)
{
    const struct cut *cut = &params_of(model, rank)->items[tensor->param].cut;
    struct part part =
        part_of(cut, model->params->items[tensor->param].shape, tp_of(model->mesh, rank), model->mesh->tp);
    if (part.begin == 0 && part.end == part.length)
        part = (struct part){
            .stretches = 1, .length = tensor_elements(tensor), .begin = 0, .end = tensor_elements(tensor)};
    return part;
}

/* The rank's part of the tensor is stretches of elements that are next to each other in the tensor: where rows are cut,
 * a stretch is the rank's rows of a section; where columns are cut, its columns of a row.
 *
 *     rows      a whole stretch is a box, and less of one is flat
 *     columns   all is boxes: less of a stretch is a ragged row, and whole stretches in a row are one box together */
struct rank_part {
    struct part part;
    bool by_columns;
    size_t columns; /* the tensor's */
};

/* Makes the piece that begins with element `begin` of the rank's part and ends at element `end` or before.  It has
 *
 *     by columns    all whole stretches that follow, or else the rest of one: a box
 *     by rows       one whole stretch: a box
 *                   or else the rest of one: a range of elements
 *
 * Returns how many elements it has. */
static size_t cut_piece(struct piece *piece, const struct rank_part *rank_part, size_t begin, size_t end)
{
    const struct part *part = &rank_part->part;
    size_t width = part->end - part->begin;
    size_t within = begin % width;
    size_t whole = within ? 0 : (end - begin) / width; /* stretches that begin here and are held whole */
    if (!rank_part->by_columns)
        whole = MIN(whole, 1);
    size_t n = whole ? whole * width : MIN(width - within, end - begin);
    size_t stretches_before = begin / width;
    size_t first = stretches_before * part->length + part->begin + within; /* element of the tensor */
    if (rank_part->by_columns)
        set_box(piece, first, n, MAX(whole, 1), rank_part->columns);
    else if (whole)
        set_box(piece, first, n, n / rank_part->columns, rank_part->columns);
    else
        set_range(piece, first, n);
    return n;
}

void add_pieces(const struct model *model, struct kept_tensor *tensor, int rank, struct range held)
{
    const struct param *param = &params_of(model, rank)->items[tensor->param];
    const struct cut *cut = &param->cut;
    if (cut->split == SPLIT_NONE && tp_of(model->mesh, rank) > 0)
        return;
    struct rank_part rank_part = {.part = part_of_rank(model, tensor, rank), .columns = (size_t)tensor->shape[1]};
    rank_part.by_columns = rank_part.part.stretches > 1 && cut->split == SPLIT_COLUMNS;
    CHECK(!rank_part.by_columns || cut->sections == 1, "%s is cut by columns in %d sections", tensor->name,
          cut->sections);
    /* Elements are counted in the rank's part of the parameter. */
    size_t done = MAX(held.begin, param->offset) - param->offset;
    size_t end = 0;
    if (held.end > param->offset)
        end = MIN(held.end - param->offset, (rank_part.part.end - rank_part.part.begin) * rank_part.part.stretches);
    while (done < end) {
        struct piece piece = {.rank = rank, .memory_offset = param->offset + done - held.begin};
        done += cut_piece(&piece, &rank_part, done, end);
        tensor->pieces = reallocate(tensor->pieces, tensor->n_pieces + 1, sizeof piece); /* a tensor has few pieces */
        tensor->pieces[tensor->n_pieces] = piece;
        tensor->n_pieces++;
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static struct kept_tensor make_kept_tensor(const struct param *param, int i, int unit, enum kept role)
{
    struct kept_tensor tensor = {
        .param = i, .unit = unit, .role = role, .dims = param->n_dims, .sections = param->cut.sections};
    memcpy(tensor.name, param->name, sizeof tensor.name);
    memcpy(tensor.shape, param->shape, sizeof tensor.shape);
    if (param->cut.split == SPLIT_NONE)
        tensor.axis = NONE;
    else if (param->cut.split == SPLIT_ROWS)
        tensor.axis = 0;
    else
        tensor.axis = 1;
    return tensor;
}

/* All tensors, without pieces, for the mesh that is to cut them. */
static struct cut_tensors *collect_kept_tensors(const struct params *params, const struct mesh *mesh)
{
    struct cut_tensors *state = allocate(1, sizeof *state);
    state->config = params->config;
    state->mesh = *mesh;
    state->mesh.first_layer = NULL;
    state->tensors = allocate_each(params->n * STORED_ROLES, sizeof *state->tensors);
    for (int unit = 0; unit < params->n_units; unit++)
        for (int role = 0; role < STORED_ROLES; role++)
            for (int i = 0; i < params->units[unit].n_params; i++) {
                int param = params->units[unit].first_param + i;
                state->tensors[state->n++] = make_kept_tensor(&params->items[param], param, unit, (enum kept)role);
            }
    return state;
}

struct cut_tensors *new_uncut_tensors(const struct config *config)
{
    struct params *params = new_params(config, &one_rank, 0);
    struct cut_tensors *state = collect_kept_tensors(params, &one_rank);
    free_params(params);
    return state;
}

static void cut_tensor(const struct model *model, struct kept_tensor *tensor)
{
    const struct mesh *mesh = model->mesh;
    /* How many data-parallel ranks keep different parts; without ZeRO the first one's are everybody's. */
    int replicas = is_shared_out(mesh, tensor->role) ? mesh->dp : 1;
    for (int dp = 0; dp < replicas; dp++)
        for (int tp = 0; tp < mesh->tp; tp++) {
            int rank = rank_at(mesh, dp, stage_of(model, tensor->unit)) + tp;
            add_pieces(model, tensor, rank, held_by(model, tensor->unit, rank, tensor->role));
        }
}

struct cut_tensors *new_cut_tensors(const struct config *config, const struct mesh *mesh)
{
    struct model *model = outline_model(config, mesh);
    struct cut_tensors *state = collect_kept_tensors(model->params, model->mesh);
    for (struct kept_tensor *tensor = state->tensors; tensor < state->tensors + state->n; tensor++)
        cut_tensor(model, tensor);
    free_model(model);
    return state;
}

size_t count_pieces(const struct cut_tensors *state)
{
    size_t n = 0;
    for (size_t i = 0; i < state->n; i++)
        n += state->tensors[i].n_pieces;
    return n;
}

void free_cut_tensors(struct cut_tensors *state)
{
    for (size_t i = 0; i < state->n; i++)
        free(state->tensors[i].pieces);
    free(state->tensors);
    free(state);
}

/* The folder adds no option and no command: others call its functions.  By this struct make knows the
 * folder, and leaves it out (WITHOUT=) with those that need it. */
const struct module module_reshard = {
    .name = "reshard",
};
