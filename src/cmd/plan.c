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
    else
        fprintf(stderr,
                p->n == 1
                    ? "verify: %zu tasks: consistent with the list as it is written, and every conflict is ordered\n"
                    : "verify: %zu tasks of the train list, and those of the others: every read sees the right value, "
                      "every conflict is ordered,\n        provided that tasks touch what they declare (train "
                      "--serial --audit checks that)\n",
                p->list[0]->n);
    return wrong ? EXIT_FAILED : EXIT_OK;
}

static void print_plan(const struct plan *p, const struct simulation *sim)
{
    const struct settings *s = p->settings;
    const struct step *list = p->list[0];
    const struct machine *m = list->pool->machine;
    bool shown = s->print || (!s->verify && !sim);
    print_reports(stdout, p->passes, p->n_passes);
    if (shown)
        printf("list %s: %zu tasks, by lane (--print shows each, --simulate the period)\n", list->name, list->n);
    for (int lane = 0; lane < m->n_lanes && shown; lane++) { /* those without a task are left out */
        size_t tasks = 0;
        for (size_t i = 0; i < list->n; i++)
            tasks += list->task[i]->lane->index == lane;
        if (tasks > 0)
            printf("  %-24s %7zu\n", m->lane[lane]->name, tasks);
    }
    if (shown)
        print_memory(stdout, list->pool, p->list, p->n);
    if (sim)
        print_simulation(stdout, sim, p->costs);
    if (s->print) {
        print_step(stdout, list);
        print_map(stdout, list->pool, list);
    }
}

static int show_plan(const struct plan *p)
{
    const struct settings *s = p->settings;
    bool simulate = s->simulate || s->print_list; /* a list is printed with how long each task takes alone */
    struct simulation *sim = simulate ? must_simulate(p->list[0], p->costs) : NULL;
    if (s->print_list) {
        write_list(stdout, p->list[0], sim->seconds);
        return s->verify ? prove(p) : EXIT_OK;
    }
    if (s->json) {
        json_t *plan = plan_json(p->list[0]->pool, p->list, p->n);
        json_object_set_new(plan, "passes", reports_json(p->passes, p->n_passes));
        if (sim)
            json_object_set_new(plan, "simulation", simulation_json(sim));
        json_dumpf(plan, stdout, JSON_COMPACT);
        putchar('\n');
    } else
        print_plan(p, sim);
    char *path = trace_path(s);
    if (sim && path)
        write_simulation(sim, path, p->title);
    if (sim && s->view)
        show_trace(path, !s->trace);
    return s->verify ? prove(p) : EXIT_OK;
}

static int plan_model(const struct settings *o)
{
    struct trainer *t = new_trainer(o, LIST_TRAIN | LIST_EVAL | LIST_SAMPLE, o->data.path != NULL, true);
    struct plan p = {.settings = o,
                     .list = {t->train, t->sample, t->eval},
                     .values = {t->values, t->sample_values, t->eval_values},
                     .n = t->eval ? 3 : 2,
                     .costs = t->costs,
                     .passes = t->passes,
                     .n_passes = t->n_passes,
                     .title = describe_shape(t)};
    int code = show_plan(&p);
    free_trainer(t);
    return code;
}

static int plan_list(const struct settings *o)
{
    struct step *s = read_list(o->list);
    set_budgets(s->pool->machine, o->device_memory, o->host_memory);
    if (o->what_if)
        apply_what_if_to_list(s, o->what_if);
    if (o->clip > 0)
        gate_updates(s);
    struct values *values = number_values(s); /* as it is written: before passes, and before addresses are given */
    struct pass_options options = pass_options_of(o);
    struct plan plan = {.settings = o, .list = {s}, .values = {values}, .n = 1, .title = o->list};
    plan.passes = run_passes(s, NULL, &options, o->after, &plan.n_passes);
    struct problem *p = place(s->pool, &s, 1, true);
    if (p)
        fail(p->code, "%s: %s", o->list, p->sentence);
    depend(s, true);
    return show_plan(&plan);
}

int cmd_plan(int argc, char **argv)
{
    struct settings *s = parse_settings(CMD_PLAN, argc, argv);
    if ((s->trace || s->view) && !s->simulate)
        fail(EXIT_USAGE, "yard plan --%s %s what is simulated: add --simulate", s->trace ? "trace" : "view",
             s->trace ? "writes" : "shows");
    return s->list ? plan_list(s) : s->memory ? plan_memory(s) : plan_model(s);
}
