/* plan.c - yard plan: the step as it would run. */
#include "../train/train.h"
#include "cmd.h"

#include <stdlib.h>

static int show_verdict(struct trainer *t)
{
    char *wrong = verify(t->train);
    if (wrong)
        fprintf(stderr, "yard: verify: %s\n", wrong);
    else
        fprintf(stderr, "verify: %zu tasks: every read sees the right value, every conflict is ordered\n", t->train->n);
    int code = wrong ? EXIT_FAILED : EXIT_OK;
    free(wrong);
    return code;
}

int cmd_plan(int argc, char **argv)
{
    char **words;
    int n_words, code = EXIT_OK;
    struct settings *s = parse_settings(CMD_PLAN, argc, argv, &words, &n_words);
    if (n_words)
        fail(EXIT_USAGE, "'%s' is not an option; see `yard plan --help`", words[0]);
    struct trainer *t = new_trainer(s, LIST_TRAIN, false, true);
    if (s->json)
        print_plan_json(stdout, t->pool, &t->train, 1);
    else if (s->print || !s->verify) {
        print_step(stdout, t->train);
        print_memory(stdout, t->pool, &t->train, 1);
    }
    if (s->verify)
        code = show_verdict(t);
    free_trainer(t);
    free(words);
    return code;
}
