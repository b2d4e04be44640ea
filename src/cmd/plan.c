/* plan.c - yard plan: the step as it would run: printed, verified, simulated. */
#include "../train/train.h"
#include "cmd.h"

/* What is planned: a model's lists, or one of a step file. */
struct plan {
    const struct settings *settings;
    struct step *list[3]; /* one arena: one list runs at a time.  The first is the one for training. */
    const struct values *values[3];
    size_t n;
    const struct costs *costs;
    const struct pass_report *passes;
    size_t n_passes;
    const char *title;
};

static int prove(const struct plan *p)
{
    char *wrong = NULL;
    for (size_t i = 0; i < p->n && !wrong; i++)
        if (!(wrong = verify_devices(p->list[i])))
            wrong = verify(p->list[i], p->values[i]);
    fflush(stdout); /* one file may take both */
    if (wrong)
        fprintf(stderr, "yard: verify: %s\n", wrong);
    else if (p->n == 1)
        fprintf(stderr, "verify: %zu tasks: consistent with the list as it is written, and every conflict is ordered\n",
                p->list[0]->n);
    else
        fprintf(stderr,
                "verify: %zu tasks of the train list, and those of the others: every read sees the right value, every "
                "conflict is ordered,\n"
                "        provided that tasks touch what they declare (train --serial --audit checks that)\n",
                p->list[0]->n);
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

/* sim NULL: nothing was simulated. */
static void print_plan(const struct plan *p, const struct simulation *sim)
{
    json_t *plan = plan_json(p->list[0]->pool, p->list, p->n);
    json_object_set_new(plan, "passes", reports_json(p->passes, p->n_passes));
    if (sim)
        json_object_set_new(plan, "simulation", simulation_json(sim));
    json_dumpf(plan, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(plan);
}

static void show(const struct plan *p)
{
    const struct settings *s = p->settings;
    struct simulation *sim = s->simulate ? must_simulate(p->list[0], p->costs) : NULL;
    if (s->json)
        print_plan(p, sim);
    else
        print_reports(stdout, p->passes, p->n_passes);
    if (!s->json && (s->print || (!s->verify && !s->simulate))) {
        print_step(stdout, p->list[0]);
        print_map(stdout, p->list[0]->pool, p->list[0]);
        print_memory(stdout, p->list[0]->pool, p->list, p->n);
    }
    if (!sim)
        return;
    if (!s->json)
        print_simulation(stdout, sim, p->costs);
    trace_simulation(s, sim, p->title);
    free_simulation(sim);
}

static int show_plan(const struct plan *p)
{
    if (p->settings->print_list) {
        struct simulation *sim = must_simulate(p->list[0], p->costs); /* for how long each task takes alone */
        write_list(stdout, p->list[0], sim->seconds);
        free_simulation(sim);
    } else
        show(p);
    return p->settings->verify ? prove(p) : EXIT_OK;
}

static int plan_model(const struct settings *o)
{
    struct trainer *t = new_trainer(o, LIST_TRAIN | LIST_EVAL | LIST_SAMPLE, o->data != NULL, true);
    if (uncounted_work(t->train))
        note("CLBlast's work space is not in the bytes: a GPU would hold up to %s more (an estimate: only a GPU can "
             "tell)",
             format_bytes((char[32]){0}, (double)uncounted_work(t->train)));
    char *title = describe_shape(t);
    struct plan p = {.settings = o,
                     .list = {t->train, t->sample, t->eval},
                     .values = {t->values, t->sample_values, t->eval_values},
                     .n = t->eval ? 3 : 2,
                     .costs = t->costs,
                     .passes = t->passes,
                     .n_passes = t->n_passes,
                     .title = title};
    int code = show_plan(&p);
    free(title);
    free_trainer(t);
    return code;
}

static int plan_list(const struct settings *o)
{
    struct step *s = read_list(o->list);
    if (o->clip > 0) {
        depend(s, false);
        gate_updates(s);
    }
    struct values *values = number_values(s); /* as it is written: before passes, and before addresses are given */
    struct pass_options options = pass_options_of(o);
    struct plan plan = {.settings = o, .list = {s}, .values = {values}, .n = 1, .title = o->list};
    struct pass_report *reports = run_passes(s, NULL, &options, o->after, &plan.n_passes);
    plan.passes = reports;
    struct problem *p = place(s->pool, &s, 1, true);
    if (p)
        fail(p->code, "%s: %s", o->list, p->sentence);
    depend(s, true);
    int code = show_plan(&plan);
    free_reports(reports, plan.n_passes);
    free_values(values);
    free_list(s);
    return code;
}

int cmd_plan(int argc, char **argv)
{
    struct settings *s = parse_settings(CMD_PLAN, argc, argv);
    if ((s->trace || s->view) && !s->simulate)
        fail(EXIT_USAGE, "yard plan --%s %s what is simulated: add --simulate", s->trace ? "trace" : "view",
             s->trace ? "writes" : "shows");
    return s->list ? plan_list(s) : s->memory ? plan_memory(s) : plan_model(s);
}
