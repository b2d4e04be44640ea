/* gather_pass.c - --zero 3 as a pass: its run, and its report.  The technique itself is in gather.c. */
#include "gather.h"
#include "planning/pass/traits.h"

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* Bytes of the shards on the device that has most of them. */
static size_t most_shard_bytes(const struct pool *pool)
{
    int n_devices = pool->machine->n_devices;
    size_t *shard_bytes = allocate_each(n_devices + 1, sizeof *shard_bytes); /* by device */
    for (size_t i = 0; i < pool->n; i++)
        if (pool->tensors[i]->replica.is_shard)
            shard_bytes[pool->tensors[i]->device->index] += pool->tensors[i]->bytes;
    size_t most = 0;
    for (int d = 0; d < n_devices; d++)
        most = MAX(most, shard_bytes[d]);
    free(shard_bytes);
    return most;
}

/* The report's sentence about a list in which so many windows are gathered.  The caller frees it. */
static char *describe_gather(const struct pool *pool, size_t n_gathered)
{
    char bytes[NUMBER_TEXT];
    return format_string("parameters are kept in shards of at most %s per device; in a step they are gathered %zu "
                         "times, a layer at a time, %d ahead",
                         format_bytes(bytes, (double)most_shard_bytes(pool)), n_gathered, WINDOWS_AHEAD);
}

static bool wants_gather(const struct run_facts *facts) { return facts->gather; }

/* false: no parameters lie in shards, and the list is as it was. */
static bool run_gather(struct list *list, const struct costs *costs, const struct run_facts *facts,
                       struct pass_report *report)
{
    (void)costs;
    struct edit *edit = open_edit(list);
    size_t n_gathered = gather_parameters(list, edit, find_wanted(SENDS_COPIES, facts) != NULL);
    if (n_gathered > 0) {
        commit_edit(edit);
        report->reason = describe_gather(list->pool, n_gathered);
    } else {
        undo_edit(edit);
        report->reason = copy_string("no parameters lie in shards");
    }
    return n_gathered > 0;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static const struct pass_traits traits = {
    .always = IN_EVERY_LIST | TAKES_UNKNOWN_ROOM,
    .blamed_at_end = "--zero 3",
};
static const struct pass pass = {
    .runs_at = 20,
    .name = "gather",
    .wanted = wants_gather,
    .run = run_gather,
    .turned_on = {"--zero 3"},
    .traits = &traits,
};
static const struct training_parts training = {.enables = "zero=3"};
static const struct planning_parts planning = {.pass = &pass};
const struct module module_gather = {
    .name = "gather",
    .needs = "pass",
    .planning = &planning,
    .training = &training,
};
