/* plan.c - yard plan: the step as it would run: printed, verified, simulated. */
#include "lists.h"
#include "plan_memory.h"
#include "trainer/cmd/cmd.h"
#include "trainer/train/train.h"

/* What is planned is a trainer: of a model, or with the one list of a step file and nothing else. */

/* all: its n lists, that for training first. */
static int prove(const struct trainer *t, struct step *const *all, size_t n)
{
    const struct values *const values[] = {t->values, t->sample_values, t->eval_values};
    char *wrong = NULL;
    for (size_t i = 0; i < n && !wrong; i++)
        if (!(wrong = verify_devices(all[i])))
            wrong = verify(all[i], values[i]);
    fflush(stdout); /* one file may take both */
    if (wrong)
        fprintf(stderr, "yard: verify: %s\n", wrong);
    else
        fprintf(stderr,
                n == 1
                    ? "verify: %zu tasks: consistent with the list as it is written, and every conflict is ordered\n"
                    : "verify: %zu tasks of the train list, and those of the others: every read sees the right value, "
                      "every conflict is ordered,\n        provided that tasks touch what they declare (train "
                      "--serial --audit checks that)\n",
                t->train->n);
    return wrong ? EXIT_FAILED : EXIT_OK;
}

/* By lane; those without a task are left out. */
static void print_task_counts(const struct step *list)
{
    const struct machine *m = list->pool->machine;
    printf("list %s: %zu tasks, by lane (--print shows each, --simulate the period)\n", list->name, list->n);
    for (int lane = 0; lane < m->n_lanes; lane++) {
        size_t tasks = 0;
        for (size_t i = 0; i < list->n; i++)
            tasks += list->task[i]->lane->index == lane;
        if (tasks > 0)
            printf("  %-24s %7zu\n", m->lane[lane]->name, tasks);
    }
}

static int show_plan(const struct trainer *t, const char *title)
{
    const struct settings *s = t->settings;
    struct step *const all[] = {t->train, t->sample, t->eval}; /* one arena: one list runs at a time */
    const size_t n = t->eval ? 3 : t->sample ? 2 : 1;
    bool simulate = s->simulate || s->print_list; /* a list is printed with how long each task takes alone */
    struct simulation *sim = simulate ? must_simulate(t->train, t->costs) : NULL;
    if (s->print_list) {
        write_list(stdout, t->train, sim->seconds);
        return s->verify ? prove(t, all, n) : EXIT_OK;
    }
    if (s->json) {
        json_t *plan = plan_json(t->pool, all, n);
        json_object_set_new(plan, "passes", reports_json(t->passes, t->n_passes));
        if (sim)
            json_object_set_new(plan, "simulation", simulation_json(sim));
        json_dumpf(plan, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        print_reports(stdout, t->passes, t->n_passes);
        if (s->print || (!s->verify && !sim)) {
            print_task_counts(t->train);
            print_memory(stdout, t->pool, all, n);
        }
        if (sim)
            print_simulation(stdout, sim, t->costs);
        if (s->print) {
            print_step(stdout, t->train);
            print_map(stdout, t->pool, t->train);
        }
    }
    char *path = trace_path(s);
    if (sim && path)
        write_simulation(sim, path, title);
    if (sim && s->view)
        show_trace(path, !s->trace);
    return s->verify ? prove(t, all, n) : EXIT_OK;
}

static int plan_model(const struct settings *o)
{
    struct trainer *t = new_trainer(o, LIST_TRAIN | LIST_EVAL | LIST_SAMPLE, o->data.path != NULL, true);
    int code = show_plan(t, describe_shape(t));
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
    /* as it is written: before passes, and before addresses are given */
    struct trainer t = {.settings = o, .pool = s->pool, .train = s, .values = number_values(s)};
    struct pass_options options = pass_options_of(o);
    t.passes = run_passes(s, NULL, &options, o->after, &t.n_passes);
    struct problem *p = place(s->pool, &s, 1, true);
    if (p)
        fail(p->code, "%s: %s", o->list, p->sentence);
    depend(s, true);
    return show_plan(&t, o->list);
}

static int run_plan(int argc, char **argv)
{
    struct settings *s = parse_settings(CMD_PLAN, argc, argv);
    if ((s->trace || s->view) && !s->simulate)
        fail(EXIT_USAGE, "yard plan --%s %s what is simulated: add --simulate", s->trace ? "trace" : "view",
             s->trace ? "writes" : "shows");
    return s->list ? plan_list(s) : s->memory ? plan_memory(s) : plan_model(s);
}

static const struct subcommand command = {50, "plan", "show a training step as a list of tasks, and its memory",
                                          run_plan, " simulate list print memory dry-run "};
const struct module module_lists = {.name = "lists", .called = true, .commands = &command, .n_commands = 1};
