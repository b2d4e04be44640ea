/* plan.c - yard plan: the step as it would run: printed, verified, simulated. */
#include "plan.h"
#include "../train/train.h"
#include "cmd.h"

#include <stdlib.h>

static int show_verdict(struct trainer *t)
{
    char *wrong = verify(t->train, t->values);
    if (!wrong && t->eval)
        wrong = verify(t->eval, t->eval_values);
    if (!wrong)
        wrong = verify(t->sample, t->sample_values);
    fflush(stdout); /* one file may take both */
    if (wrong)
        fprintf(stderr, "yard: verify: %s\n", wrong);
    else
        fprintf(stderr,
                "verify: %zu tasks of the train list, and those of the others: every read sees the right value, every "
                "conflict is ordered,\n"
                "        provided that tasks touch what they declare (train --serial --audit checks that)\n",
                t->train->n);
    int code = wrong ? EXIT_FAILED : EXIT_OK;
    free(wrong);
    return code;
}

static void trace_simulation(const struct settings *s, const struct simulation *sim, const char *title)
{
    char *path = trace_path(s);
    if (path)
        write_simulation(sim, path, title);
    if (s->view)
        show_trace(path, NULL, !s->trace);
    free(path);
}

static void show_simulation(struct trainer *t, const struct simulation *sim)
{
    const struct settings *s = t->settings;
    if (!s->json)
        print_simulation(stdout, sim, t->costs);
    char *title = describe_shape(t);
    trace_simulation(s, sim, title);
    free(title);
}

/* The plan is freed; sim NULL: nothing was simulated. */
static void print_plan(json_t *plan, const struct pass_report *reports, size_t n_reports, const struct simulation *sim)
{
    json_object_set_new(plan, "passes", reports_json(reports, n_reports));
    if (sim)
        json_object_set_new(plan, "simulation", simulation_json(sim));
    json_dumpf(plan, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(plan);
}

static void show(struct trainer *t)
{
    const struct settings *s = t->settings;
    struct step *lists[] = {t->train, t->sample, t->eval}; /* one arena: one list runs at a time */
    size_t n = t->eval ? 3 : 2;
    struct simulation *sim = s->simulate ? must_simulate(t->train, t->costs) : NULL;
    if (!s->json)
        print_reports(stdout, t->passes, t->n_passes);
    if (s->json) {
        print_plan(plan_json(t->pool, lists, n), t->passes, t->n_passes, sim);
    } else if (s->print || (!s->verify && !s->simulate)) {
        print_step(stdout, t->train);
        print_map(stdout, t->pool, t->train);
        print_memory(stdout, t->pool, lists, n);
    }
    if (sim) {
        show_simulation(t, sim);
        free_simulation(sim);
    }
}

/* ---- a step file ----------------------------------------------------------------------------------------------- */

/* How long each task of the list takes alone. */
static void show_list(const struct step *s, const struct costs *c)
{
    struct simulation *sim = must_simulate(s, c);
    write_list(stdout, s, sim->seconds);
    free_simulation(sim);
}

static int prove_list(const struct step *s, const struct values *values)
{
    char *wrong = verify(s, values);
    fflush(stdout);
    if (wrong)
        fprintf(stderr, "yard: verify: %s\n", wrong);
    else
        fprintf(stderr, "verify: %zu tasks: every read sees the right value, and every conflict is ordered\n", s->n);
    int code = wrong ? EXIT_FAILED : EXIT_OK;
    free(wrong);
    return code;
}

static void show_by_hand(struct step *s, const struct settings *o, const struct pass_report *reports, size_t n_reports)
{
    struct simulation *sim = o->simulate ? must_simulate(s, NULL) : NULL;
    if (!o->json)
        print_reports(stdout, reports, n_reports);
    if (o->json) {
        print_plan(plan_json(s->pool, &s, 1), reports, n_reports, sim);
    } else if (o->print || (!o->verify && !o->simulate)) {
        print_step(stdout, s);
        print_map(stdout, s->pool, s);
        print_memory(stdout, s->pool, &s, 1);
    }
    if (sim && !o->json)
        print_simulation(stdout, sim, NULL);
    if (sim)
        trace_simulation(o, sim, o->list);
    if (sim)
        free_simulation(sim);
}

static int plan_list(const struct settings *o)
{
    struct step *s = read_list(o->list);
    if (o->clip > 0) {
        depend(s, false);
        gate_updates(s);
    }
    struct values *values = number_values(s); /* as it is written: before passes, and before addresses are given */
    struct wishes wishes = wishes_of(o);
    size_t n_reports;
    struct pass_report *reports = run_passes(s, NULL, &wishes, o->after, &n_reports);
    struct problem *p = place(s->pool, &s, 1, true);
    if (p)
        fail(p->code, "%s: %s", o->list, p->sentence);
    depend(s, true);
    if (o->print_list)
        show_list(s, NULL);
    else
        show_by_hand(s, o, reports, n_reports);
    int code = o->verify ? prove_list(s, values) : EXIT_OK;
    free_reports(reports, n_reports);
    free_values(values);
    free_list(s);
    return code;
}

int cmd_plan(int argc, char **argv)
{
    char **words;
    int n_words;
    struct settings *s = parse_settings(CMD_PLAN, argc, argv, &words, &n_words);
    if (n_words)
        fail(EXIT_USAGE, "'%s' is not an option; see `yard plan --help`", words[0]);
    if ((s->trace || s->view) && !s->simulate)
        fail(EXIT_USAGE, "yard plan --%s %s what is simulated: add --simulate", s->trace ? "trace" : "view",
             s->trace ? "writes" : "shows");
    if (s->list) {
        free(words);
        return plan_list(s);
    }
    if (s->memory) {
        free(words);
        return plan_memory(s);
    }
    struct trainer *t = new_trainer(s, LIST_TRAIN | LIST_EVAL | LIST_SAMPLE, s->data != NULL, true);
    if (s->print_list)
        show_list(t->train, t->costs);
    else
        show(t);
    int code = s->verify ? show_verdict(t) : EXIT_OK;
    free_trainer(t);
    free(words);
    return code;
}
