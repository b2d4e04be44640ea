/* training.c - what a training has of proofs: the values of its lists as they were built, and the audit of a serial
 * run.
 */
#include "proof.h"

struct proof_options proof_options;
extern const struct module module_proof;

struct numbered { /* the values of a list */
    const struct step *list;
    struct values *values;
    struct numbered *next;
};

struct values *values_of(const struct trainer *t, const struct step *list)
{
    const struct numbered *n = *own_of(t, &module_proof);
    while (n && n->list != list)
        n = n->next;
    return n ? n->values : NULL;
}

static void number(struct trainer *t, struct step *list)
{
    struct numbered **all = (struct numbered **)own_of(t, &module_proof);
    if (!proof_options.verify || t->settings->trial)
        return;
    struct numbered *n = allocate(1, sizeof *n);
    n->list = list;
    n->values = number_values(list);
    n->next = *all;
    *all = n;
}

static void choose_runner(struct trainer *t)
{
    execution.alone = proof_options.audit && !t->settings->trial ? &audit_runner : NULL;
}

static void forget(struct trainer *t)
{
    for (struct numbered *n = *own_of(t, &module_proof), *next; n; n = next) {
        next = n->next;
        free_values(n->values);
        free(n);
    }
}

static void check(struct settings *s)
{
    if (proof_options.audit && !s->serial)
        fail(EXIT_USAGE, "--audit runs every task alone: add --serial");
}

static const struct option options[] = {
    {"audit", 0, OPT_FLAG, &proof_options.audit, NULL, NULL, 0, 0, GROUP_LOOKING, OF_TRAIN,
     "with --serial: run every task over three fillings of what it does not declare to read, and compare: for the data "
     "of this run, tasks touch what they declare and no more (slow)"},
    {"verify", 0, OPT_FLAG, &proof_options.verify, NULL, NULL, 0, 0, GROUP_LOOKING, OF_PLAN,
     "prove that every read sees the right value, that every conflict is ordered whatever the timing, and that memory "
     "is within the budgets, provided that tasks touch what they declare (train --serial --audit checks that)"},
};
static const struct hooks hooks = {.opened = choose_runner, .built = number, .leaves = forget};
const struct module module_proof = {
    .name = "proof", .place = 10, .options = options, .n_options = COUNT(options), .check = check, .hooks = &hooks};
