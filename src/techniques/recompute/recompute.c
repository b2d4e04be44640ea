/* recompute.c - activations are made again instead of kept.
 *
 * The tensors that a layer's forward leaves for its backward lie in memory for most of a step.  With recomputation the
 * layer keeps less.  Right before its backward, as much of its forward is repeated, into new tensors, as the backward
 * reads:
 *
 *     kept            forward 0 .. forward 1 .. backward 1 ............... backward 0
 *     x of layer 0    |=====================================================|
 *
 *     made again      forward 0 .. forward 1 .. backward 1 .. forward 0' .. backward 0
 *     x of layer 0    |=======|                               |=============|
 *
 * The rule.
 *
 *     full         of each layer only its input is kept.  The forward is computed almost twice, for a third more work;
 *                  what nothing reads again, as the layer's last product, is not repeated
 *     selective    only what is large and cheap is dropped: the (T, T) matrices of attention and GELU's output
 *     auto         only what the budget needs, by the search of --swap auto (techniques/swap/swap_auto.c)
 *
 * The rewrite is remake_tensors() (planning/pass/remake.c).
 *
 * Source: "Training Deep Nets with Sublinear Memory Cost" (Chen et al. 2016), full; "Reducing Activation Recomputation
 * in Large Transformer Models" (Korthikanti et al. 2022), selective.
 */
#include "recompute.h"

/* Where the layer's backward first reads the tensor.  NONE: it never does, or the tensor is not only for that:
 *
 *     - a task of another layer or micro-batch uses it,
 *     - a task uses it that is neither forward nor backward,
 *     - a forward uses it after a backward. */
static int first_backward_reader(const struct uses *uses, const struct tensor *tensor)
{
    const struct use_range found = uses_of(uses, tensor);
    const struct task *maker = found.n ? found.uses[0].task : NULL;
    int reader = NONE;
    for (size_t i = 0; i < found.n; i++) {
        const struct task *task = found.uses[i].task;
        if (task->layer < 0 || task->layer != maker->layer || task->micro != maker->micro)
            return NONE;
        if (reader == NONE && task->role == ROLE_BACKWARD)
            reader = found.uses[i].position;
        enum role expected = reader == NONE ? ROLE_FORWARD : ROLE_BACKWARD;
        if (task->role != expected)
            return NONE;
    }
    return reader;
}

/* ---- the rules --------------------------------------------------------------------------------------------------- */

/* Does the rule mean tensors of this kind, whatever their uses are?  `auto` may make all again that `full` does. */
static bool is_meant(const struct tensor *tensor, enum recompute mode)
{
    return mode != RECOMPUTE_SELECTIVE || tensor->extra.cheap;
}

int *remade_by_rule(const struct uses *uses, const struct pool *pool, enum recompute mode)
{
    int *first_reader = allocate(uses->n_tensors, sizeof *first_reader);
    for (size_t i = 0; i < uses->n_tensors; i++) {
        const struct tensor *tensor = pool->tensors[i];
        first_reader[i] = NONE;
        if (!is_meant(tensor, mode) || !may_leave(uses, tensor, 1u << MEM_ACTIVATIONS))
            continue;
        int reader = first_backward_reader(uses, tensor);
        if (reader != NONE && may_remake(uses, tensor, reader))
            first_reader[i] = reader;
    }
    return first_reader;
}

/* The report's sentence, which the caller frees.  repeated: how many tasks; bytes: of the activations that are not
 * kept. */
static char *describe_remade(enum recompute mode, size_t repeated, double bytes)
{
    const char *rule = mode == RECOMPUTE_SELECTIVE ? "selective" : "full";
    char size[NUMBER_TEXT];
    if (repeated == 0)
        return copy_string("the list keeps no activation of a layer that could be made again");
    return format_string("%s: %zu tasks repeated; %s of activations not kept", rule, repeated,
                         format_bytes(size, bytes));
}

bool recompute_by_rule(struct list *list, enum recompute mode, struct pass_report *report)
{
    struct pool *pool = list->pool;
    struct uses *uses = new_uses(list->tasks, list->n, pool);
    size_t n_before = list->n;
    int *first_reader = remade_by_rule(uses, pool, mode);
    double bytes = 0;
    for (size_t i = 0; i < uses->n_tensors; i++)
        if (first_reader[i] != NONE)
            bytes += (double)pool->tensors[i]->bytes;
    struct edit *edit = open_edit(list);
    free(remake_tensors(edit, pool, uses, first_reader, REMAKE_AT_BACKWARD));
    commit_edit(edit);
    report->reason = describe_remade(mode, list->n - n_before, bytes);
    free_uses(uses);
    free(first_reader);
    return list->n > n_before;
}
