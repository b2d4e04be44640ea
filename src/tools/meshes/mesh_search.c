/* mesh_search.c - yard plan --search: which mesh, ZeRO, order of micro-batches, recomputation and swap?
 *
 *     candidates   all meshes of N devices, each with all else there is to choose
 *     bounds       of each, in microseconds: bounds.c
 *     simulation   from the least bound of time on, of those that are not ruled out: candidates.c
 *     front        of these, what takes less memory than all that is faster: front.c
 *     techniques   the fastest of the front again, with recomputation, and with swap where they do not fit
 *     table        the front of all that fits
 *
 * A candidate is ruled out if its state alone exceeds the budget; or if something that was simulated is no slower than
 * the bound of its time, and needs no more than the bound of its memory.  So no row of the front is lost.
 *
 * The search of many devices takes long.  An interrupt ends it early: the table then has the front of what was
 * simulated, and says how short a step of the others could be.  Since the least bounds come first, the fast rows come
 * early.
 */
#include "mesh_search.h"
#include "planning/console/table.h"
#include "planning/lists/plan_command.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "techniques/recompute/recompute.h"
#include "techniques/swap/swap.h"

#include <math.h>
#include <unistd.h>

static bool asked_search; /* is --search given? */

/* ---- candidates -------------------------------------------------------------------------------------------------- */

struct mesh_search make_mesh_search(const struct settings *settings, int devices)
{
    struct mesh_search search = {.given = settings,
                                 .settings = *settings,
                                 .devices = devices,
                                 .prunes = true,
                                 .limit = SIZE_MAX,
                                 .left_seconds = INFINITY};
    search.processes = (int)sysconf(_SC_NPROCESSORS_ONLN);
    search.settings.devices = NULL;
    search.settings.turn_order = &pipeline_orders[PIPELINE_1F1B];
    search.settings.device_memory = NO_LIMIT;
    search.settings.batch = 1;
    search.settings.micro_batch = 1;
    struct trainer *trainer = plan_training(&search.settings, OPEN_GIVEN_DATA);
    const struct costs *costs = costs_of(trainer);
    if (devices > costs->devices)
        fail(EXIT_USAGE, "--search -d %d: %s has devices = %lld: use a smaller -d, or a copy with devices = %d",
             devices, costs->label, (long long)costs->devices, devices);
    search.config = trainer->config;
    search.budget = (double)(settings->device_memory ? settings->device_memory : costs->memory);
    free_trainer(trainer);
    search.settings.data.path = NULL; /* from here on tokens are random: of the data only the vocabulary counts */
    search.settings.vocab = search.config.vocab;
    search.settings.batch = settings->batch;
    return search;
}

static const struct sketch *sketch_for(struct mesh_search *search, int tp, int micro_batch)
{
    for (size_t i = 0; i < search->n_sketches; i++)
        if (search->sketches[i]->tp == tp && search->sketches[i]->micro_batch == micro_batch)
            return search->sketches[i];
    struct sketch *sketch = new_sketch(&search->settings, tp, micro_batch);
    if (sketch) {
        GROW(search->sketches, search->cap_sketches, search->n_sketches + 1);
        search->sketches[search->n_sketches++] = sketch;
    }
    return sketch;
}

/* Can the order be taken with `micros` micro-batches? */
static bool takes_micros(const struct turn_order *turn_order, const struct mesh *mesh, int micros)
{
    if (mesh->pp == 1)
        return true;
    if (turn_order->written)
        return turn_order->written->devices == mesh->pp && turn_order->written->micros == micros;
    if (turn_order->folded)
        return micros >= 2 * mesh->pp;
    return turn_order->chunks == 1 || micros % mesh->pp == 0;
}

/* Is this level of ZeRO tried with the candidate's mesh and micro-batches? */
static bool takes_level(const struct mesh_search *search, const struct mesh_candidate *candidate, int zero)
{
    bool chooses = candidate->mesh.dp > 1 && !was_given("zero");
    if (!chooses)
        return zero == search->given->zero;
    return zero != 2 || candidate->micros == 1; /* ZeRO 2 with several micro-batches is ZeRO 1 */
}

static void add_levels(struct mesh_search *search, const struct mesh_candidate *like)
{
    const struct sketch *sketch = sketch_for(search, like->mesh.tp, like->micro_batch);
    if (!sketch)
        return;
    for (int zero = 0; zero <= 3; zero++) {
        struct mesh_candidate candidate = *like;
        if (!takes_level(search, like, zero))
            continue;
        candidate.number = (int)search->n_candidates;
        candidate.mesh.zero = zero;
        set_bounds(&candidate, sketch, search->settings.clip > 0);
        GROW(search->candidates, search->cap_candidates, search->n_candidates + 1);
        search->candidates[search->n_candidates++] = candidate;
    }
}

/* Adds the candidates of a mesh with this order of micro-batches: one for each micro-batch size, a power of two unless
 * it was given, and each ZeRO level. */
static void add_order(struct mesh_search *search, struct mesh mesh, const struct turn_order *turn_order,
                      const char *name)
{
    int share = search->settings.batch / mesh.dp; /* the sequences of a replica */
    if (mesh.pp > 1) {
        mesh.chunks = turn_order->chunks;
        mesh.folded = turn_order->folded;
    }
    struct problem *problem = cut_layers(&mesh, search->config.layers, NULL);
    if (!problem)
        problem = tp_problem(&search->config, &mesh);
    GROW(search->meshes, search->cap_meshes, search->n_meshes + 1);
    search->meshes[search->n_meshes++] = mesh;
    int begin = 1, end = share;
    if (was_given("micro-batch")) {
        begin = search->given->micro_batch;
        end = begin;
    }
    for (int b = begin; b <= end && !problem; b *= 2) {
        struct mesh_candidate candidate = {
            .mesh = mesh, .turn_order = turn_order, .pipeline = name, .micro_batch = b, .micros = share / b};
        if (search->settings.batch % (mesh.dp * b) == 0 && takes_micros(turn_order, &mesh, candidate.micros))
            add_levels(search, &candidate);
    }
    free(problem);
}

static void add_candidates(struct mesh_search *search)
{
    int n = search->devices;
    for (int dp = 1; dp <= n; dp++)
        for (int pp = 1; pp <= n; pp++) {
            if (n % (dp * pp))
                continue;
            struct mesh mesh = {.dp = dp, .pp = pp, .tp = n / dp / pp, .chunks = 1};
            if (pp > 1 && was_given("pipeline"))
                add_order(search, mesh, search->given->turn_order, search->given->pipeline);
            else
                for (int o = 0; o < (pp > 1 ? PIPELINES : 1); o++)
                    add_order(search, mesh, &pipeline_orders[o], pipeline_name[o]);
        }
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

void search_meshes(struct mesh_search *search)
{
    add_candidates(search);
    if (search->n_candidates == 0)
        fail(EXIT_USAGE,
             "--search: %d devices cannot be arranged for this training: a pipeline has at most %d stages (layers), "
             "a layer at most %d parts (heads), and dp times --micro-batch must divide --batch %d; use another -d, "
             "--batch or --micro-batch",
             search->devices, search->config.layers, search->config.heads, search->settings.batch);
    simulate_candidates(search);
    simulate_with_techniques(search);
    erase_line();
}

void free_mesh_search(struct mesh_search *search)
{
    for (size_t i = 0; i < search->n_sketches; i++)
        free_sketch(search->sketches[i]);
    for (size_t i = 0; i < search->n_meshes; i++)
        free_mesh(&search->meshes[i]);
    free(search->problem);
    free(search->sketches);
    free(search->meshes);
    free(search->candidates);
    free(search->outcomes);
}

/* ---- what is printed --------------------------------------------------------------------------------------------- */

static void append_option(char **command, const struct option *option)
{
    append_text(command, " --%s", option->name);
    if (option->type == OPT_FLAG)
        return;
    char *text = option_text(option);
    append_text(command, " ");
    append_quoted(command, text);
    free(text);
}

/* Adds the options that the user has given, but for those that the search chooses. */
static void append_given_options(char **command)
{
    for (const struct option *option = next_given(NULL); option; option = next_given(option))
        if (!has_word("search devices mesh zero pipeline micro-batch recompute swap json", option->name))
            append_option(command, option);
}

/* The command that plans an outcome.  The caller frees it. */
static char *make_command(const struct mesh_candidate *candidate)
{
    char mesh[MESH_TEXT];
    char *command = NULL;
    append_quoted(&command, program_name);
    append_text(&command, " plan");
    append_given_options(&command);
    append_text(&command, " --mesh %s --micro-batch %d", format_mesh(mesh, &candidate->mesh), candidate->micro_batch);
    if (candidate->mesh.dp > 1 || was_given("zero"))
        append_text(&command, " --zero %d", candidate->mesh.zero);
    if (candidate->mesh.pp > 1) {
        append_text(&command, " --pipeline ");
        append_quoted(&command, candidate->pipeline);
    }
    if (candidate->recompute != RECOMPUTE_OFF)
        append_text(&command, " --recompute %s", word_of("recompute", (int)candidate->recompute));
    if (candidate->swap != SWAP_OFF)
        append_text(&command, " --swap %s", word_of("swap", (int)candidate->swap));
    append_text(&command, " --simulate");
    return command;
}

/* A row for each of the first n outcomes; ended by free_table(). */
static struct table *new_search_table(const struct mesh_search *search, size_t n)
{
    static const struct column columns[] = {{"step ms", "step_ms", CELL_FIXED, 10, 3},
                                            {"MiB", NULL, CELL_FIXED, 8, 1},
                                            {NULL, "device_bytes", CELL_COUNT, 0, 0},
                                            {"command", "command", CELL_TEXT, 4096, 0}};
    struct table *table = new_table(columns, COUNT(columns));
    for (const struct mesh_outcome *outcome = search->outcomes; outcome < search->outcomes + n; outcome++) {
        char *words = make_command(&outcome->candidate);
        /* In tenths of a MiB, rounded up: what is printed must be enough. */
        double tenths = ceil(10 * outcome->bytes / (1 << 20));
        ROW(table, number_cell(1e3 * outcome->seconds), number_cell(tenths / 10), number_cell(outcome->bytes),
            text_cell(words));
        free(words);
    }
    return table;
}

static void print_search(const struct mesh_search *search, size_t n)
{
    struct table *table = new_search_table(search, n);
    if (search->given->json) {
        json_t *all = json_object();
        json_object_set_new(all, "front", table_json(table));
        set_json_integer(all, "candidates", (json_int_t)search->n_candidates);
        set_json_integer(all, "too_large", (json_int_t)search->too_large);
        set_json_integer(all, "too_slow", (json_int_t)search->too_slow);
        set_json_integer(all, "not_simulated", (json_int_t)search->left);
        if (search->left > 0)
            json_object_set_new(all, "not_simulated_ms", json_real(1e3 * search->left_seconds));
        print_json(all);
    } else {
        printf("%zu candidates on %d device%s: the bound of memory rules out %zu, that of time %zu\n",
               search->n_candidates, search->devices, PLURAL(search->devices), search->too_large, search->too_slow);
        print_table(stdout, table);
    }
    free_table(table);
}

/* Says what an interrupt has left out. */
static void tell_what_is_left(const struct mesh_search *search)
{
    if (search->left > 0)
        inform(
            "the search was interrupted: %zu candidates were not simulated; no step of theirs takes less than %.3f ms",
            search->left, 1e3 * search->left_seconds);
    else
        inform("the search was interrupted: not all rows were tried with --recompute and --swap");
}

static _Noreturn void fail_for_memory(const struct mesh_search *search)
{
    double least = INFINITY;
    for (size_t i = 0; i < search->n_outcomes; i++)
        least = fmin(least, search->outcomes[i].bytes);
    if (search->n_outcomes == 0)
        for (size_t i = 0; i < search->n_candidates; i++)
            least = fmin(least, search->candidates[i].least_state);
    fail(EXIT_USAGE,
         "--search: nothing fits in %.0f bytes per device: %s %.0f; use a larger --device-mem, more "
         "devices or a smaller model",
         search->budget,
         search->n_outcomes ? "the least that was found needs" : "parameters, gradients and optimizer alone need",
         least);
}

static enum exit_code plan_search(const struct settings *settings)
{
    struct mesh_search search = make_mesh_search(settings, n_paper_devices(settings));
    defer_interrupts("the list that is simulated");
    search_meshes(&search);
    size_t n = sort_front(&search, search.budget);
    if (interrupted())
        tell_what_is_left(&search);
    else if (search.n_outcomes == 0 && search.problem)
        fail_with(search.problem);
    else if (n == 0)
        fail_for_memory(&search);
    print_search(&search, n);
    free_mesh_search(&search);
    return interrupted() ? EXIT_INTERRUPTED : EXIT_OK;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static bool wants_search(void) { return asked_search; }

static void check_search_options(struct settings *settings)
{
    const struct predict_options *options = &asked_predict;
    if (!asked_search || asked_plan.list) /* the latter is refused elsewhere */
        return;
    if (!options->hardware)
        fail(EXIT_USAGE, "--search plans for a machine that is described: add --hardware FILE, such as "
                         "data/hardware/server.txt");
    if (!n_paper_devices(settings))
        fail(EXIT_USAGE, "--search needs -d N, the number of devices of %s that it uses", options->hardware);
    if (options->what_if && strstr(options->what_if, "mem="))
        fail(EXIT_USAGE, "--search and --what-if %s: give the memory of a device as --device-mem", options->what_if);
    settings->demands.sweeps = true;
}

static const struct option options[] = {
    {.name = "search",
     .type = OPT_FLAG,
     .value = &asked_search,
     .group = GROUP_PREDICTING,
     .classes = OF_PLAN,
     .help = "look for the best way to train on -d N devices of --hardware: the mesh, and --zero, --pipeline "
             "and --micro-batch unless given, then --recompute and --swap. The table has the fastest way and "
             "those that need less memory. Ctrl-C ends the search early (tutorials/04-predicting-a-step.md)"},
};
static const char simulates[] = "the search simulates, and prints a table and nothing else";
static const char is_chosen[] = "the search chooses it";
static const char moves[] = "the bounds by which the search excludes candidates hold only without it";
static const struct option_rule rules[] = {{"search", EXCLUDES, "list", "the search makes lists of its own"},
                                           {"search", EXCLUDES, "simulate", simulates},
                                           {"search", EXCLUDES, "verify", simulates},
                                           {"search", EXCLUDES, "print", simulates},
                                           {"search", EXCLUDES, "print-list", simulates},
                                           {"search", EXCLUDES, "print-schedule", simulates},
                                           {"search", EXCLUDES, "memory", simulates},
                                           {"search", EXCLUDES, "after", simulates},
                                           {"search", EXCLUDES, "mesh", is_chosen},
                                           {"search", EXCLUDES, "stages", is_chosen},
                                           {"search", EXCLUDES, "recompute", is_chosen},
                                           {"search", EXCLUDES, "swap", is_chosen},
                                           {"search", EXCLUDES, "overlap", moves},
                                           {"search", EXCLUDES, "grad-groups", moves}};
static const struct other_plan plan = {wants_search, plan_search};
static const struct planning_parts planning = {.plan = &plan};
const struct module module_meshes = {
    .name = "meshes",
    .needs = "console gather lists predict recompute swap",
    .options = options,
    .n_options = COUNT(options),
    .rules = rules,
    .n_rules = COUNT(rules),
    .check_settings = check_search_options,
    .planning = &planning,
};
