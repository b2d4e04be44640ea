/* ckpt_diff.c - yard ckpt diff: which tensors differ, and by how much. */
#include "ckpt.h"
#include "planning/console/table.h"

/* Returns the later one if both are of the same run; else NULL. */
static const struct checkpoint *later_of(const struct checkpoint *a, const struct checkpoint *b)
{
    int order = BY(a->session, b->session, COMPARE(a->step, b->step));
    if (a->run_id == NOT_KNOWN || a->run_id != b->run_id || order == 0)
        return NULL;
    return order > 0 ? a : b;
}

static void print_diff_json(const struct checkpoint *a, const struct checkpoint *b, struct table *differing)
{
    char run[2][RUN_WORD];
    const struct checkpoint *later = later_of(a, b);
    json_t *all = json_object();
    json_object_set_new(all, "steps", json_pack("[i, i]", (int)a->step, (int)b->step));
    json_object_set_new(all, "runs", json_pack("[s?, s?]", format_run(run[0], a), format_run(run[1], b)));
    set_json_text(all, "later", later ? later->path : NULL);
    set_json_truth(all, "same", differing->n == 0);
    set_json_integer(all, "tensors", (json_int_t)a->cut->n);
    json_object_set_new(all, "different", table_json(differing));
    print_json(all);
}

static void print_diff(const struct checkpoint *a, const struct checkpoint *b, struct table *differing)
{
    const struct checkpoint *later = later_of(a, b);
    print_line(stdout, "steps %u and %u: %zu of %zu tensors differ", a->step, b->step, differing->n, a->cut->n);
    if (a->run_id == NOT_KNOWN || b->run_id == NOT_KNOWN)
        print_line(stdout, "yard cannot tell whether one run wrote both");
    else if (a->run_id != b->run_id)
        print_line(stdout, "they are of two runs");
    else if (later)
        print_line(stdout, "they are of one run, and the later is %s", later->path);
    else
        print_line(stdout, "they are of one run, and of the same moment");
    if (differing->n)
        print_table(stdout, differing);
}

/* The tensors that differ, a row each. */
static struct table *compare_tensors(struct checkpoint *a, struct checkpoint *b)
{
    static const struct column columns[] = {{"tensor", "name", CELL_TEXT, 27, 0},
                                            {"role", "role", CELL_TEXT, 6, 0},
                                            {"elements", "elements", CELL_COUNT, 10, 0},
                                            {"largest", "max", CELL_SHORT, 12, 0},
                                            {"relative", "relative", CELL_SHORT, 12, 0}};
    struct table *out = new_table(columns, COUNT(columns));
    if (!same_sizes(&a->cut->config, &b->cut->config))
        fail(EXIT_FAILED, "%s and %s are models of unlike sizes: `yard ckpt ls` shows them", a->path, b->path);
    for (size_t i = 0; i < a->cut->n; i++) {
        const struct kept_tensor *tensor = &a->cut->tensors[i];
        struct difference difference = compare_tensor(a, b, i);
        if (difference.elements)
            ROW(out, text_cell(tensor->name), text_cell(kept_name[tensor->role]),
                number_cell((double)difference.elements), number_cell(difference.most),
                number_cell(difference.distance / difference.norm));
    }
    return out;
}

enum exit_code diff_checkpoints(char **paths)
{
    struct checkpoint *a = open_checkpoint(paths[0]), *b = open_checkpoint(paths[1]);
    struct table *out = compare_tensors(a, b);
    if (asked_ckpt.json)
        print_diff_json(a, b, out);
    else
        print_diff(a, b, out);
    enum exit_code code = out->n ? EXIT_FAILED : EXIT_OK;
    if (out->n)
        print_problem("yard: ",
                      new_problem(code, "%s and %s differ in %zu tensor%s", a->path, b->path, out->n, PLURAL(out->n)));
    free_table(out);
    free_checkpoint(a);
    free_checkpoint(b);
    return code;
}
