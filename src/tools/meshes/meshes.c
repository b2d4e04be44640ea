/* meshes.c - yard plan --search: which mesh, ZeRO, order of micro-batches, recomputation and swap?
 *
 *     candidates   all meshes of N devices, each with all else there is to choose
 *     bounds       of each, in microseconds: bounds.c
 *     simulation   from the least bound of time on, of those that are not ruled out: trials.c
 *     front        of these, what takes less memory than all that is faster: front.c
 *     techniques   the fastest of the front again, with recomputation, and with swap where they do not fit
 *     table        the front of all that fits
 *
 * A candidate is ruled out if its state alone exceeds the budget; or if something that was simulated is no slower than
 * the bound of its time, and needs no more than the bound of its memory.  So no row of the front is lost.
 *
 * The search of many devices takes long.  An interrupt ends it early: the table then has the front of what was
 * simulated, and says how short a step of the others could be.  Since the least bounds come first, the
 * fast rows come early.
 */
#include "meshes.h"
#include "techniques/recompute/recompute.h"
#include "techniques/swap/swap.h"
#include "tools/command/table.h"
#include "tools/lists/plan_command.h"
#include "tools/predict/predict.h"

#include <math.h>
#include <unistd.h>

static bool wanted; /* --search */

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* What the search finds out before it chooses: the model's sizes, and what the machine has. */
struct mesh_search new_mesh_search(const struct settings *s, int devices)
{
    struct mesh_search x = {
        .asked = s, .settings = *s, .devices = devices, .prunes = true, .limit = SIZE_MAX, .left_seconds = INFINITY};
    x.processes = (int)sysconf(_SC_NPROCESSORS_ONLN);
    x.settings.devices = NULL;
    x.settings.order = &pipeline_orders[PIPELINE_1F1B];
    x.settings.device_memory = NO_LIMIT;
    x.settings.batch = 1;
    x.settings.micro_batch = 1;
    struct trainer *t = new_trainer(&x.settings, OPEN_GIVEN_DATA | PLAN_ONLY);
    const struct costs *c = costs_of(t);
    if (devices > c->devices)
        fail(EXIT_USAGE, "--search -d %d: %s has devices = %lld: use a smaller -d, or a copy with devices = %d",
             devices, c->path, (long long)c->devices, devices);
    x.config = t->config;
    x.budget = (double)(s->device_memory ? s->device_memory : c->memory);
    free_trainer(t);
    x.settings.data.path = NULL; /* from here on tokens are random: of the data only the vocabulary counts */
    x.settings.vocab = x.config.vocab;
    x.settings.batch = s->batch;
    return x;
}

static const struct sketch *find_sketch(struct mesh_search *x, int tp, int micro_batch)
{
    for (size_t i = 0; i < x->n_sketches; i++)
        if (x->sketch[i]->tp == tp && x->sketch[i]->micro_batch == micro_batch)
            return x->sketch[i];
    struct sketch *k = new_sketch(&x->settings, tp, micro_batch);
    if (k)
        *APPEND(x->sketch, x->n_sketches, x->cap_sketches) = k;
    return k;
}

/* Can the order be taken with so many micro-batches? */
static bool takes_micros(const struct turn_order *o, const struct mesh *m, int micros)
{
    if (m->pp == 1)
        return true;
    if (o->written)
        return o->written->devices == m->pp && o->written->micros == micros;
    return o->folded ? micros >= 2 * m->pp : o->chunks == 1 || micros % m->pp == 0;
}

/* ZeRO 2 with several micro-batches is ZeRO 1. */
static void add_levels(struct mesh_search *x, const struct mesh_candidate *like)
{
    const struct sketch *k = find_sketch(x, like->mesh.tp, like->micro_batch);
    const bool chooses = like->mesh.dp > 1 && !was_given("zero");
    for (int zero = 0; k && zero <= 3; zero++) {
        struct mesh_candidate c = *like;
        bool is_wanted = chooses ? zero != 2 || c.micros == 1 : zero == x->asked->zero;
        if (!is_wanted)
            continue;
        c.number = (int)x->n_candidates;
        c.mesh.zero = zero;
        set_bounds(&c, k, x->settings.clip > 0);
        *APPEND(x->candidate, x->n_candidates, x->cap_candidates) = c;
    }
}

/* Adds the candidates of a mesh with this order of micro-batches: one for each micro-batch size, a power of two unless
 * it was given, and each ZeRO level. */
static void add_order(struct mesh_search *x, struct mesh m, const struct turn_order *order, const char *name)
{
    const int share = x->settings.batch / m.dp;
    if (m.pp > 1) {
        m.chunks = order->chunks;
        m.folded = order->folded;
    }
    struct problem *wrong = cut_layers(&m, x->config.layers, NULL);
    if (!wrong)
        wrong = check_tp_ranks(&x->config, &m);
    *APPEND(x->mesh, x->n_meshes, x->cap_meshes) = m;
    int begin = 1, end = share;
    if (was_given("micro-batch")) {
        begin = x->asked->micro_batch;
        end = begin;
    }
    for (int b = begin; b <= end && !wrong; b *= 2) {
        struct mesh_candidate c = {.mesh = m, .order = order, .pipeline = name, .micro_batch = b, .micros = share / b};
        if (x->settings.batch % (m.dp * b) == 0 && takes_micros(order, &m, c.micros))
            add_levels(x, &c);
    }
    free(wrong);
}

static void add_candidates(struct mesh_search *x)
{
    const int n = x->devices;
    for (int dp = 1; dp <= n; dp++)
        for (int pp = 1; pp <= n; pp++) {
            if (n % (dp * pp))
                continue;
            struct mesh m = {.dp = dp, .pp = pp, .tp = n / dp / pp, .chunks = 1};
            if (pp > 1 && was_given("pipeline"))
                add_order(x, m, x->asked->order, x->asked->pipeline);
            else
                for (int o = 0; o < (pp > 1 ? PIPELINES : 1); o++)
                    add_order(x, m, &pipeline_orders[o], pipeline_name[o]);
        }
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

void search_meshes(struct mesh_search *x)
{
    add_candidates(x);
    if (x->n_candidates == 0)
        fail(EXIT_USAGE,
             "--search: no mesh of -d %d trains this: dp x --micro-batch must divide --batch %d, pp is %d layers "
             "at most, tp %d heads at most: use another -d, --batch or --micro-batch",
             x->devices, x->settings.batch, x->config.layers, x->config.heads);
    simulate_candidates(x);
    simulate_with_techniques(x);
    erase_line();
}

void free_mesh_search(struct mesh_search *x)
{
    for (size_t i = 0; i < x->n_sketches; i++)
        free_sketch(x->sketch[i]);
    for (size_t i = 0; i < x->n_meshes; i++)
        free_mesh(&x->mesh[i]);
    free(x->why_not);
    free(x->sketch);
    free(x->mesh);
    free(x->candidate);
    free(x->planned);
}

/* ---- what is printed --------------------------------------------------------------------------------------------- */

static char *command; /* the words of the command that plans an outcome */

/* Adds an option that the user has given, if the search does not choose it. */
static bool repeat_option(const struct option *o)
{
    if (has_word("search devices mesh zero pipeline micro-batch recompute swap json", o->name))
        return true;
    append_text(&command, " --%s", o->name);
    if (o->type == OPT_FLAG)
        return true;
    char *text = option_text(o);
    append_text(&command, " ");
    append_quoted(&command, text);
    free(text);
    return true;
}

/* The caller frees it. */
static char *command_of(const struct mesh_candidate *c)
{
    char mesh[64];
    command = copy_string("./yard plan");
    first_given(repeat_option);
    append_text(&command, " --mesh %s --micro-batch %d", format_mesh(mesh, &c->mesh), c->micro_batch);
    if (c->mesh.dp > 1 || was_given("zero"))
        append_text(&command, " --zero %d", c->mesh.zero);
    if (c->mesh.pp > 1) {
        append_text(&command, " --pipeline ");
        append_quoted(&command, c->pipeline);
    }
    if (c->recompute != RECOMPUTE_OFF)
        append_text(&command, " --recompute %s", word_of("recompute", c->recompute));
    if (c->swap != SWAP_OFF)
        append_text(&command, " --swap %s", word_of("swap", c->swap));
    append_text(&command, " --simulate");
    return command;
}

static void print_search(const struct mesh_search *x, size_t n)
{
    static const struct column columns[] = {{"step ms", "step_ms", CELL_FIXED, 10, 3},
                                            {"MiB", NULL, CELL_FIXED, 8, 1},
                                            {NULL, "device_bytes", CELL_COUNT, 0, 0},
                                            {"command", "command", CELL_TEXT, 4096, 0}};
    struct table *t = new_table(columns, COUNT(columns));
    for (const struct planned *o = x->planned; o < x->planned + n; o++) {
        char *words = command_of(&o->candidate);
        const double tenths = ceil(10 * o->bytes / (1 << 20)); /* rounded up, so that the row fits in what is printed */
        ROW(t, number_cell(1e3 * o->seconds), number_cell(tenths / 10), number_cell(o->bytes), text_cell(words));
        free(words);
    }
    if (x->asked->json) {
        json_t *j = json_pack("{s:o, s:I, s:I, s:I, s:I}", "front", table_json(t), "candidates",
                              (json_int_t)x->n_candidates, "too_large", (json_int_t)x->too_large, "too_slow",
                              (json_int_t)x->too_slow, "not_simulated", (json_int_t)x->left);
        if (x->left > 0)
            json_object_set_new(j, "not_simulated_ms", json_real(1e3 * x->left_seconds));
        print_json(j);
    } else {
        printf("%zu candidates on %d device%s: the bound of memory rules out %zu, that of time %zu\n", x->n_candidates,
               x->devices, x->devices == 1 ? "" : "s", x->too_large, x->too_slow);
        print_table(stdout, t);
    }
    free_table(t);
}

/* Says what an interrupt has left out. */
static void tell_what_is_left(const struct mesh_search *x)
{
    if (x->left > 0)
        note("the search was interrupted: %zu candidates were not simulated; no step of theirs takes less than %.3f ms",
             x->left, 1e3 * x->left_seconds);
    else
        note("the search was interrupted: not all rows were tried with --recompute and --swap");
}

_Noreturn static void fail_for_memory(const struct mesh_search *x)
{
    double least = INFINITY;
    for (size_t i = 0; i < x->n; i++)
        least = fmin(least, x->planned[i].bytes);
    for (size_t i = 0; i < x->n_candidates && x->n == 0; i++)
        least = fmin(least, x->candidate[i].state);
    fail(EXIT_USAGE,
         "--search: nothing fits in %.0f bytes per device: %s %.0f; use a larger --device-mem, more "
         "devices or a smaller model",
         x->budget, x->n ? "the least that was found needs" : "parameters, gradients and optimizer alone need", least);
}

static int plan_search(const struct settings *s)
{
    struct mesh_search x = new_mesh_search(s, counted_devices(s));
    defer_interrupts("the list that is simulated");
    search_meshes(&x);
    const size_t n = find_front(&x, x.budget);
    if (interrupted())
        tell_what_is_left(&x);
    else if (x.n == 0 && x.why_not)
        fail_with(x.why_not);
    else if (n == 0)
        fail_for_memory(&x);
    print_search(&x, n);
    free_mesh_search(&x);
    return interrupted() ? EXIT_INTERRUPTED : EXIT_OK;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static bool is_wanted(void) { return wanted; }

static void check_search_options(struct settings *s)
{
    const struct predict_options *o = &predict_options;
    if (!wanted || plan_options.list) /* the latter is refused elsewhere */
        return;
    if (!o->hardware)
        fail(EXIT_USAGE, "--search plans for a machine that is described: add --hardware FILE, such as "
                         "data/hardware/server.txt");
    if (!counted_devices(s))
        fail(EXIT_USAGE, "--search needs -d N, the number of devices of %s that it uses", o->hardware);
    if (o->what_if && strstr(o->what_if, "mem="))
        fail(EXIT_USAGE, "--search and --what-if %s: give the memory of a device as --device-mem", o->what_if);
    s->sweeps = true;
}

static const struct option options[] = {
    {.name = "search",
     .type = OPT_FLAG,
     .value = &wanted,
     .group = GROUP_PREDICTING,
     .commands = OF_PLAN,
     .help = "look for the best way to train on -d N devices of --hardware: meshes, --zero, --pipeline and "
             "--micro-batch (unless given). The ten fastest results are tried again with --recompute, and, where they "
             "do not fit into --device-mem, with --swap auto. Each row of the table is a command, with the time of its "
             "step and the --device-mem that it needs, in MiB. The row below it needs less memory and takes longer. "
             "Ctrl-C ends the search early, and prints the table of what it has found"},
};
static const char simulates[] = "the search simulates, and prints a table and nothing else";
static const char is_chosen[] = "the search chooses it";
static const char moves[] = "the bounds of the search hold without it";
static const struct option_rule rules[] = {{"search", "list", "the search makes lists of its own"},
                                           {"search", "simulate", simulates},
                                           {"search", "verify", simulates},
                                           {"search", "print", simulates},
                                           {"search", "print-list", simulates},
                                           {"search", "print-schedule", simulates},
                                           {"search", "memory", simulates},
                                           {"search", "after", simulates},
                                           {"search", "mesh", is_chosen},
                                           {"search", "stages", is_chosen},
                                           {"search", "recompute", is_chosen},
                                           {"search", "swap", is_chosen},
                                           {"search", "overlap", moves},
                                           {"search", "grad-groups", moves}};
static const struct other_plan plan = {is_wanted, plan_search};
const struct module module_meshes = {
    .name = "meshes",
    .needs = "command gather lists predict recompute swap",
    .options = options,
    .n_options = COUNT(options),
    .rules = rules,
    .n_rules = COUNT(rules),
    .check = check_search_options,
    .plan = &plan,
};
