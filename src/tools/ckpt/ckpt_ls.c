/* ckpt_ls.c - yard ckpt ls: what is in a checkpoint, and which rank has which part. */
#include "ckpt.h"
#include "planning/console/table.h"
#include "techniques/checkpoint/files.h"

enum { CUT_TEXT = 32, PIECE_TEXT = 128 }; /* how many bytes the arrays of these functions have */

/* "rows", "columns in 3": how tensor parallelism cuts it. */
static void format_cut(char out[CUT_TEXT], const struct kept_tensor *tensor)
{
    static const char *const axes[] = {"rows", "columns"};
    const char *axis = tensor->axis == NONE ? "-" : axes[tensor->axis];
    if (tensor->dims == 1 && tensor->axis == 0)
        axis = "elements";
    if (tensor->sections > 1)
        snprintf(out, CUT_TEXT, "%s in %d", axis, tensor->sections);
    else
        snprintf(out, CUT_TEXT, "%s", axis);
}

/* "0: 64-128", "0: [0:64]" or "0: [0:64, 0:32]": the rank, and what it has. */
static void format_piece(char out[PIECE_TEXT], const struct kept_tensor *tensor, const struct piece *piece)
{
    const long long begin[2] = {piece->begin[0], piece->begin[1]}, end[2] = {piece->end[0], piece->end[1]};
    if (piece->flat)
        snprintf(out, PIECE_TEXT, "%d: %lld-%lld", piece->rank, begin[0], end[0]);
    else if (tensor->dims == 1)
        snprintf(out, PIECE_TEXT, "%d: [%lld:%lld]", piece->rank, begin[0], end[0]);
    else
        snprintf(out, PIECE_TEXT, "%d: [%lld:%lld, %lld:%lld]", piece->rank, begin[0], end[0], begin[1], end[1]);
}

static void add_tensor_rows(struct table *out, const struct kept_tensor *tensor)
{
    const char *name = tensor->name, *role = kept_name[tensor->role];
    char shape[SHAPE_TEXT], cut[CUT_TEXT], text[PIECE_TEXT];
    format_shape(shape, tensor->dims, tensor->shape);
    format_cut(cut, tensor);
    for (size_t i = 0; i < tensor->n_pieces; i++) {
        format_piece(text, tensor, &tensor->pieces[i]);
        if (i == 0)
            ROW(out, text_cell(name), text_cell(role), text_cell(shape), text_cell(cut), text_cell(text));
        else
            ROW(out, text_cell(""), text_cell(""), text_cell(""), text_cell(""), text_cell(text));
    }
}

static void print_ls_json(const struct checkpoint *checkpoint)
{
    const struct checkpoint_form *form = checkpoint->single_file ? checkpoint->single_file->form : NULL;
    const struct mesh strategy = read_strategy(checkpoint);
    char run[RUN_WORD];
    json_t *all = json_object();
    set_json_text(all, "checkpoint", checkpoint->path);
    set_json_integer(all, "step", checkpoint->step);
    set_json_text(all, "run", format_run(run, checkpoint));
    set_json_integer(all, "session", checkpoint->session);
    set_json_text(all, "program", *checkpoint->program ? checkpoint->program : NULL);
    if (form)
        json_object_set_new(all, form->name, form->to_json(checkpoint));
    json_object_set_new(all, "mesh", mesh_json(&checkpoint->cut->mesh));
    json_object_set_new(all, "strategy", mesh_json(&strategy));
    json_object_set_new(all, "tensors", tensors_json(checkpoint));
    print_json(all);
}

static void print_run_and_model(const struct checkpoint *checkpoint)
{
    char run[RUN_WORD], bytes[NUMBER_TEXT], sizes[SIZES_BYTES], mesh[MESH_TEXT];
    const struct cut_tensors *cut = checkpoint->cut;
    const struct mesh strategy = read_strategy(checkpoint);
    size_t elements = 0;
    for (size_t i = 0; i < cut->n; i++)
        elements += tensor_elements(&cut->tensors[i]);
    print_line(stdout, "checkpoint  %s: step %u, %lld sequences", checkpoint->path, checkpoint->step,
               (long long)checkpoint->samples);
    if (checkpoint->single_file)
        checkpoint->single_file->form->print(checkpoint);
    print_line(stdout, "run         %s, session %lld; written by %s%s", format_run(run, checkpoint) ? run : "not known",
               (long long)checkpoint->session, *checkpoint->program ? "yard " : "an older yard", checkpoint->program);
    print_line(stdout, "model       %s", describe_sizes(sizes, &cut->config));
    print_line(stdout, "mesh        %s, zero %d; %zu tensors, %s", format_mesh(mesh, &cut->mesh), cut->mesh.zero,
               cut->n, format_bytes(bytes, (double)(ELEMENT_BYTES * elements)));
    printf("strategy    %s, zero %d\n", format_mesh(mesh, &strategy), strategy.zero);
}

static void print_ls(const struct checkpoint *checkpoint)
{
    static const struct column columns[] = {{"tensor", NULL, CELL_TEXT, 27, 0},
                                            {"role", NULL, CELL_TEXT, 6, 0},
                                            {"shape", NULL, CELL_TEXT, 13, 0},
                                            {"cut by", NULL, CELL_TEXT, 13, 0},
                                            {"rank: what it has", NULL, CELL_TEXT, 30, 0}};
    struct table *out = new_table(columns, COUNT(columns));
    for (size_t i = 0; i < checkpoint->cut->n; i++)
        add_tensor_rows(out, &checkpoint->cut->tensors[i]);
    print_run_and_model(checkpoint);
    print_table(stdout, out);
    free_table(out);
}

enum exit_code list_checkpoint(char **paths)
{
    struct checkpoint *checkpoint = open_checkpoint(paths[0]);
    if (asked_ckpt.json)
        print_ls_json(checkpoint);
    else
        print_ls(checkpoint);
    free_checkpoint(checkpoint);
    return EXIT_OK;
}
