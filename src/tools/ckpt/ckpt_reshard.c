/* ckpt_reshard.c - yard ckpt reshard: the same state, cut for another mesh; or the copies that this takes. */
#include "ckpt.h"
#include "planning/console/arguments.h"
#include "planning/console/table.h"
#include "techniques/checkpoint/files.h"
#include "trainer/train/train.h"

/* Cuts the stages of the mesh as the pipeline's order wants them, where that fits.  turn_order: the recorded one; NULL:
 * none was. */
static void follow_order(struct mesh *mesh, const struct turn_order *turn_order, int layers)
{
    bool fits = turn_order && turn_order->chunks * mesh->pp <= layers;
    if (fits && turn_order->written)
        fits = turn_order->written->devices == mesh->pp;
    if (fits && mesh->pp > 1) {
        mesh->chunks = turn_order->chunks;
        mesh->folded = turn_order->folded;
    }
}

/* The mesh that --mesh and --zero name; what they leave open is as it was in training.  Recorded stages are kept where
 * they fit. */
static struct mesh make_mesh(const struct checkpoint *from, int zero)
{
    struct mesh mesh;
    const struct config *config = &from->cut->config;
    const char *stages = recorded_option(from, "stages");
    must(parse_mesh(asked_ckpt.mesh, 1, &mesh));
    mesh.zero = option_given(&ckpt_options, "zero") ? asked_ckpt.zero : zero;
    follow_order(&mesh, turn_order_of(recorded_option(from, "pipeline")), config->layers);
    must(cut_layers_as_recorded(&mesh, config->layers, *stages ? stages : NULL));
    must(tp_problem(config, &mesh));
    return mesh;
}

/* Describes the same state, to be written to `path` with other pieces.  With --mesh the new mesh is also the new
 * strategy; without it the pieces are merged, and the strategy stays. */
static struct checkpoint *recut(const struct checkpoint *from, const char *path)
{
    struct mesh strategy = read_strategy(from), mesh = make_mesh(from, strategy.zero);
    struct checkpoint *to = new_checkpoint_like(from, path);
    char text[MESH_TEXT];
    to->cut = new_cut_tensors(&from->cut->config, &mesh);
    set_json_text(to->options, "mesh", format_mesh(text, asked_ckpt.mesh ? &mesh : &strategy));
    json_object_set_new(to->options, "zero", json_sprintf("%d", mesh.zero));
    free_mesh(&mesh);
    return to;
}

/* Where a piece begins in all that its rank has of the tensor: the bytes of the rank's pieces in front of it. */
static size_t bytes_before(const struct kept_tensor *tensor, size_t piece)
{
    size_t elements = 0;
    for (size_t i = 0; i < piece; i++)
        if (tensor->pieces[i].rank == tensor->pieces[piece].rank)
            elements += piece_elements(&tensor->pieces[i]);
    return ELEMENT_BYTES * elements;
}

static void list_copy(struct table *out, const struct copies *plan, const struct copy *copy)
{
    size_t from_byte = bytes_before(plan->from, copy->from_piece) + ELEMENT_BYTES * copy->from_offset;
    size_t to_byte = bytes_before(plan->to, copy->to_piece) + ELEMENT_BYTES * copy->to_offset;
    ROW(out, text_cell(plan->from->name), text_cell(kept_name[plan->from->role]),
        number_cell(plan->from->pieces[copy->from_piece].rank), number_cell((double)from_byte),
        number_cell(plan->to->pieces[copy->to_piece].rank), number_cell((double)to_byte),
        number_cell((double)(ELEMENT_BYTES * copy->n)));
}

/* Prints the copies of all tensors, after a proof of each tensor's plan. */
static void print_plan(const struct checkpoint *from, const struct checkpoint *to)
{
    static const struct column columns[] = {
        {"tensor", "tensor", CELL_TEXT, 27, 0},  {"role", "role", CELL_TEXT, 6, 0},
        {"from", "from_rank", CELL_COUNT, 6, 0}, {"at byte", "from_offset", CELL_COUNT, 12, 0},
        {"to", "to_rank", CELL_COUNT, 6, 0},     {"at byte", "to_offset", CELL_COUNT, 12, 0},
        {"bytes", "bytes", CELL_COUNT, 12, 0}};
    struct table *out = new_table(columns, COUNT(columns));
    for (size_t i = 0; i < from->cut->n; i++) {
        struct copies plan;
        must(plan_copies(&from->cut->tensors[i], &to->cut->tensors[i], from->path, &plan));
        must(prove_copies(&plan));
        for (size_t k = 0; k < plan.n; k++)
            list_copy(out, &plan, &plan.items[k]);
        free(plan.items);
    }
    if (asked_ckpt.json) {
        print_json(json_pack("{s:o}", "copies", table_json(out)));
    } else {
        print_table(stdout, out);
        printf("\n%zu copies write every element once: proved\n", out->n);
    }
    free_table(out);
}

static void print_reshard_json(const struct checkpoint *to, const struct mesh *strategy, uint64_t moved, double seconds)
{
    json_t *all = json_object();
    set_json_text(all, "checkpoint", to->path);
    json_object_set_new(all, "mesh", mesh_json(&to->cut->mesh));
    json_object_set_new(all, "strategy", mesh_json(strategy));
    set_json_integer(all, "read", (json_int_t)moved);
    set_json_integer(all, "written", (json_int_t)moved);
    json_object_set_new(all, "seconds", json_real(seconds));
    print_json(all);
}

/* Prints what was written: `moved` bytes were read, and as many written, in `seconds`. */
static void report_reshard(const struct checkpoint *to, uint64_t moved, double seconds)
{
    char bytes[NUMBER_TEXT], held[MESH_TEXT], mesh[MESH_TEXT];
    const struct mesh strategy = read_strategy(to);
    if (asked_ckpt.json)
        print_reshard_json(to, &strategy, moved, seconds);
    else
        print_line(stdout, "%s: %s, zero %d, of strategy %s; %s read, %s written, in %.3f s", to->path,
                   format_mesh(held, &to->cut->mesh), strategy.zero, format_mesh(mesh, &strategy),
                   format_bytes(bytes, (double)moved), bytes, seconds);
}

enum exit_code reshard_checkpoint(char **paths)
{
    struct checkpoint *from = open_checkpoint(paths[0]), *to = recut(from, paths[1]);
    if (asked_ckpt.plan) {
        print_plan(from, to);
    } else {
        claim_output("ckpt reshard", paths[1], NULL);
        expect_free("ckpt reshard", paths[1]);
        uint64_t begin = now_ns();
        uint64_t moved = reshard_into(from, to);
        report_reshard(to, moved, (double)(now_ns() - begin) * 1e-9);
    }
    free_checkpoint(to);
    free_checkpoint(from);
    return EXIT_OK;
}
