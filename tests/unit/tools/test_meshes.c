/* test_meshes.c - the command `yard plan --search`.
 *
 * It tests src/tools/meshes.  It checks that the search finds the *front*, the plans that no other plan beats in both
 * time and bytes; that no candidate is better than the bound by which the search might rule it out; and that each row's
 * command takes the row's time in the row's bytes.  It catches a bound that is too high, so that the best plan is never
 * simulated, and a row whose command plans something else.
 *
 * To see it fail: in front.c, take the plan of most bytes: > least in place of <.
 *
 * The cases are small, so that all candidates can be simulated here one by one.
 */
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_training.h"
#include "tools/meshes/mesh_search.h"

#include <math.h>

/* Slow links, fast ones, and launches that take longer than the work. */
static const struct speeds machines[] = {
    {.per_link = 2, .bytes_per_s = 1e10, .launch = 1e-6, .link = 1e8, .latency = 1e-5},
    {.per_link = 1, .bytes_per_s = 1e9, .launch = 1e-6, .link = 1e10, .latency = 1e-6},
    {.per_link = 4, .bytes_per_s = 1e11, .launch = 1e-4, .link = 1e9, .latency = 1e-4},
};
static const struct {
    int devices;
    const char *words; /* options, between spaces; those of a CPU's list, which has fewer tasks */
} cases[] = {
    {2, "--model tiny --batch 2"},
    {2, "--model tiny --batch 4 --clip 0"},
    {4, "--model tiny --batch 4"},
    {4, "--model tiny --batch 8"},
    {4, "--model tiny --batch 4 --layers 4 --clip 0"},
    {4, "--model tiny --batch 4 --layers 8 --untied"},
    {5, "--model tiny --batch 5 --layers 5 --zero 3"},
    {6, "--model tiny --batch 6 --layers 6 --heads 4 --attention flash --micro-batch 1"},
    {8, "--model tiny --batch 4 --layers 4 --heads 4 --pipeline zbh2"},
    {2, "--model tiny --batch 2 --device-mem 400K"}, /* it fits only where something is swapped */
};

/* A search without verify, which parse_words() has set. */
static struct mesh_search make_search(const char *words, int devices)
{
    struct mesh_search search = make_mesh_search(parse_words(words), devices);
    asked_proof.verify = false;
    return search;
}

static struct mesh_search search_case(int i, bool prunes)
{
    size_t model = (size_t)i / COUNT(machines);
    const char *hardware = write_hardware("paper.txt", &machines[(size_t)i % COUNT(machines)]);
    char *words = lasting("%s --hardware %s", cases[model].words, hardware);
    struct mesh_search search = make_search(words, cases[model].devices);
    search.prunes = prunes;
    search_meshes(&search);
    return search;
}

/* Bounds that are sums of the times they bound may exceed them by rounding. */
static void expect_bounded(const char *what, double bound, double value, const struct mesh_candidate *candidate)
{
    char mesh[MESH_TEXT];
    if (bound > value * (1 + 1e-9))
        test_failed("%s: at least %.9g by its bound, but %.9g, of %s, zero %d, %s, %d x %d\n", what, bound, value,
                    format_mesh(mesh, &candidate->mesh), candidate->mesh.zero, candidate->pipeline, candidate->micros,
                    candidate->micro_batch);
}

static void expect_bounds(const struct mesh_search *search)
{
    for (const struct mesh_outcome *outcome = search->outcomes; outcome < search->outcomes + search->n_outcomes;
         outcome++) {
        const struct mesh_candidate *candidate = &outcome->candidate;
        expect_bounded("time", candidate->least_seconds, outcome->seconds, candidate);
        expect_bounded("state", candidate->least_state, outcome->bytes, candidate);
        if (!candidate->recompute && !candidate->swap)
            expect_bounded("memory", candidate->least_bytes, outcome->bytes, candidate);
    }
}

static void expect_same_front(struct mesh_search *search, struct mesh_search *each, const char *words)
{
    size_t n = sort_front(search, search->budget), expected = sort_front(each, each->budget);
    if (n != expected)
        test_failed("%s: %zu rows, expected %zu\n", words, n, expected);
    for (size_t i = 0; i < n; i++) {
        const struct mesh_outcome *found = &search->outcomes[i], *best = &each->outcomes[i];
        if (found->seconds != best->seconds || found->bytes != best->bytes)
            test_failed("%s: row %zu: %g s in %g bytes, expected %g s in %g\n", words, i, found->seconds, found->bytes,
                        best->seconds, best->bytes);
    }
}

LAW(the_search_finds_what_all_simulated_one_by_one_have)
{
    const struct cases these = cases_of(9, COUNT(cases) * COUNT(machines));
    size_t simulated = 0, all = 0;
    for (int i = these.begin; i < these.end; i++) {
        struct mesh_search each = search_case(i, false);
        struct mesh_search search = search_case(i, true);
        expect_bounds(&each);
        all += each.n_outcomes;
        simulated += search.n_outcomes;
        expect_same_front(&search, &each, cases[(size_t)i / COUNT(machines)].words);
        free_mesh_search(&each);
        free_mesh_search(&search);
    }
    if (simulated >= all)
        test_failed("the bounds rule nothing out: %zu of %zu are simulated\n", simulated, all);
}

/* Links on which a step's gradients and new values take about as long as its work, or longer. */
static const struct {
    int devices, per_link;
    const char *upload; /* bytes per second */
    const char *words;
} slow_links[] = {
    /* Units are large for their work, on links that three devices share: ranks begin a step one after another, and
     * buffers are as large as activations. */
    {.devices = 2,
     .per_link = 3,
     .upload = "3e6",
     .words = "--clip 0 --layers 1 --heads 2 --channels 32 --seq-len 64 --batch 2 --micro-batch 1 --zero 2"},
    {.devices = 4,
     .per_link = 3,
     .upload = "3e5",
     .words = "--clip 0 --layers 2 --heads 12 --channels 192 --seq-len 64 --batch 4"},
    /* With clipping, the link is never idle: the first unit's values are among all that it carries in a step. */
    {.devices = 3,
     .per_link = 1,
     .upload = "4.6e3",
     .words = "--clip 1 --layers 1 --heads 2 --channels 32 --seq-len 64 --batch 3"},
    /* The same, where a bound that counts these values twice rules the fastest row out. */
    {.devices = 2,
     .per_link = 3,
     .upload = "2.367e4",
     .words = "--clip 1 --layers 1 --heads 2 --channels 64 --seq-len 64 --batch 4"},
    /* Three of four ranks share a link, and the three have less than three fourths of the elements. */
    {.devices = 4,
     .per_link = 3,
     .upload = "8.85e3",
     .words = "--clip 0 --layers 2 --heads 2 --channels 128 --seq-len 64 --batch 4"},
    /* Gradients travel before the backward of their unit ends. */
    {.devices = 4,
     .per_link = 1,
     .upload = "1.7e6",
     .words = "--clip 0 --layers 3 --heads 2 --channels 96 --seq-len 8 --batch 4 --micro-batch 1"},
};

TEST(bounds_hold_where_links_are_slow)
{
    for (size_t i = 0; i < COUNT(slow_links); i++) {
        const char *hardware = write_text("slow.txt",
                                          "hardware = slow\n"
                                          "devices = 4\n"
                                          "devices_per_link = %d\n"
                                          "flops = 1e8\n"
                                          "efficiency = 0.5\n"
                                          "bandwidth = 1e12\n"
                                          "launch = 1e-300\n"
                                          "vector = 4\n"
                                          "host_bandwidth = 1e10\n"
                                          "host_launch = 1e-6\n"
                                          "link upload = %s 0\n"
                                          "link download = 1e12 0\n"
                                          "memory = 1G\n"
                                          "host_memory = 1G\n",
                                          slow_links[i].per_link, slow_links[i].upload);
        const char *words = lasting("--model tiny %s --hardware %s", slow_links[i].words, hardware);
        struct mesh_search each = make_search(words, slow_links[i].devices);
        each.prunes = false;
        search_meshes(&each);
        expect_bounds(&each);
        struct mesh_search search = make_search(words, slow_links[i].devices);
        search_meshes(&search);
        expect_same_front(&search, &each, words);
        free_mesh_search(&search);
        free_mesh_search(&each);
    }
}

/* ---- tried one by one, by the words of a command ----------------------------------------------------------------- */

/* The outcome of these options; INFINITY: they cannot be planned. */
static struct mesh_outcome plan_words(const char *words)
{
    struct problem *problem;
    struct settings *settings = parse_words(words);
    asked_proof.verify = false;
    struct trainer *trainer = try_to_plan(settings, LIST_TRAIN, &problem);
    struct mesh_outcome outcome = {.seconds = INFINITY, .bytes = INFINITY};
    free(problem);
    if (!trainer)
        return outcome;
    struct simulation *simulation = must_simulate(trainer->train_list, costs_of(trainer));
    outcome.seconds = simulation->period;
    outcome.bytes = 0;
    for (int i = 0; i < trainer->machine->n_devices; i++)
        outcome.bytes = fmax(outcome.bytes, (double)trainer->machine->devices[i].placed_bytes);
    free_simulation(simulation);
    free_trainer(trainer);
    return outcome;
}

/* Is one of these, beside the plan itself, as good as it? */
static bool has_as_good(const struct mesh_outcome *all, size_t n, const struct mesh_outcome *outcome)
{
    for (const struct mesh_outcome *other = all; other < all + n; other++)
        if (other != outcome && other->seconds <= outcome->seconds * (1 + 1e-9) && other->bytes <= outcome->bytes)
            return true;
    return false;
}

static void expect_as_good(const struct mesh_search *search, size_t n, const struct mesh_outcome *outcome,
                           const char *words)
{
    if (isfinite(outcome->seconds) && !has_as_good(search->outcomes, n, outcome))
        test_failed("%s: %g ms in %g bytes, and no row of the search is as good\n", words, 1e3 * outcome->seconds,
                    outcome->bytes);
}

enum { MOST_WAYS = 64 };
struct ways { /* to train on two devices */
    const char *words[MOST_WAYS];
    struct mesh_outcome outcomes[MOST_WAYS];
    size_t n;
};

static void try_way(struct ways *ways, const char *words)
{
    assert_below(ways->n, MOST_WAYS);
    ways->words[ways->n] = words;
    ways->outcomes[ways->n] = plan_words(words);
    ways->n++;
}

static void try_ways(struct ways *ways, const char *common)
{
    for (int micro = 1; micro <= 4; micro *= 2) {
        for (int zero = 0; zero <= 3 && micro <= 2; zero++)
            try_way(ways, lasting("%s --mesh dp=2 --micro-batch %d --zero %d", common, micro, zero));
        for (int order = 0; order < PIPELINES; order++)
            try_way(ways,
                    lasting("%s --mesh pp=2 --micro-batch %d --pipeline %s", common, micro, pipeline_name[order]));
        try_way(ways, lasting("%s --mesh tp=2 --micro-batch %d", common, micro));
    }
}

/* No mesh, ZeRO, order or micro-batch that a reader may name is better than all rows, nor is recomputation in one of
 * the ways that no other way beats. */
LAW(no_way_on_two_devices_is_better_than_all_rows)
{
    static const char *const recompute[] = {"full", "selective"};
    const struct cases these = cases_of(1, COUNT(machines));
    for (int i = these.begin; i < these.end; i++) {
        const char *hardware = write_hardware("paper.txt", &machines[i]);
        const char *common = lasting("--model tiny --batch 4 -d 2 --hardware %s", hardware);
        struct mesh_search search = make_mesh_search(parse_words(common), 2);
        struct ways ways = {.n = 0};
        search_meshes(&search);
        size_t rows = sort_front(&search, INFINITY);
        try_ways(&ways, common);
        for (size_t k = 0; k < ways.n; k++) {
            expect_as_good(&search, rows, &ways.outcomes[k], ways.words[k]);
            for (size_t r = 0; r < COUNT(recompute) && !has_as_good(ways.outcomes, ways.n, &ways.outcomes[k]); r++) {
                const char *words = lasting("%s --recompute %s", ways.words[k], recompute[r]);
                struct mesh_outcome again = plan_words(words);
                expect_as_good(&search, rows, &again, words);
            }
        }
        free_mesh_search(&search);
    }
}

/* Meshes that an ended search has not simulated are no faster than it says; a search that is not ended says less. */
TEST(an_ended_search_bounds_what_it_left)
{
    const char *hardware = write_hardware("paper.txt", &machines[1]);
    char *words = lasting("--model tiny --batch 4 -d 4 --hardware %s", hardware);
    struct mesh_search all = make_search(words, 4);
    all.prunes = false;
    search_meshes(&all);
    assert_int_equal(all.left, 0);
    assert_close(all.left_seconds, INFINITY, 0);
    for (size_t limit = 1; limit < all.n_candidates; limit *= 4) {
        struct mesh_search ended = make_search(words, 4);
        ended.prunes = false;
        ended.limit = limit;
        search_meshes(&ended);
        assert_int_equal(ended.left, all.n_candidates - limit);
        for (size_t i = 0; i < all.n_outcomes; i++) {
            const struct mesh_outcome *row = &all.outcomes[i];
            bool is_plain = row->candidate.recompute == 0 && row->candidate.swap == 0;
            if (is_plain && !has_as_good(ended.outcomes, ended.n_outcomes, row))
                expect_bounded("what is left", ended.left_seconds, row->seconds, &row->candidate);
        }
        free_mesh_search(&ended);
    }
    free_mesh_search(&all);
}

static void expect_same_search(const struct mesh_search *a, const struct mesh_search *b)
{
    assert_int_equal(a->too_large, b->too_large);
    assert_int_equal(a->too_slow, b->too_slow);
    assert_int_equal(a->n_outcomes, b->n_outcomes);
    for (size_t i = 0; i < a->n_outcomes; i++) {
        assert_int_equal(a->outcomes[i].candidate.number, b->outcomes[i].candidate.number);
        assert_close(a->outcomes[i].seconds, b->outcomes[i].seconds, 0);
        assert_close(a->outcomes[i].bytes, b->outcomes[i].bytes, 0);
    }
}

/* Candidates that several processes begin too early are not counted. */
TEST(any_number_of_processes_finds_the_same)
{
    size_t too_slow = 0;
    for (size_t m = 0; m < COUNT(machines); m++) {
        const char *hardware = write_hardware("paper.txt", &machines[m]);
        const char *words = lasting("--model tiny --batch 4 --hardware %s", hardware);
        struct mesh_search one = make_search(words, 4);
        one.processes = 1;
        search_meshes(&one);
        too_slow += one.too_slow;
        for (int processes = 2; processes <= 7; processes += 5) {
            struct mesh_search several = make_search(words, 4);
            several.processes = processes;
            search_meshes(&several);
            expect_same_search(&one, &several);
            free_mesh_search(&several);
        }
        free_mesh_search(&one);
    }
    assert_above(too_slow, 0);
}

TEST(what_does_not_fit_is_swapped)
{
    const char *hardware = write_hardware("paper.txt", &machines[0]);
    const char *words = lasting("--model tiny --batch 2 --device-mem 400K --hardware %s", hardware);
    struct mesh_search search = make_mesh_search(parse_words(words), 2);
    size_t swapped = 0;
    search_meshes(&search);
    size_t n = sort_front(&search, search.budget);
    for (size_t i = 0; i < n; i++)
        if (search.outcomes[i].candidate.swap != 0)
            swapped++;
    assert_above(swapped, 0);
    free_mesh_search(&search);
}

TEST(each_row_takes_less_memory_than_those_before_it)
{
    struct mesh_outcome rows[] = {{.seconds = 3, .bytes = 10}, {.seconds = 1, .bytes = 20}, {.seconds = 2, .bytes = 20},
                                  {.seconds = 1, .bytes = 21}, {.seconds = 4, .bytes = 9},  {.seconds = 5, .bytes = 9}};
    struct mesh_search search = {.outcomes = rows, .n_outcomes = COUNT(rows)};
    static const double seconds[] = {1, 3, 4}, bytes[] = {20, 10, 9};
    assert_int_equal(sort_front(&search, 20), COUNT(bytes));
    for (size_t i = 0; i < COUNT(bytes); i++) {
        expect_number("seconds", rows[i].seconds, seconds[i]);
        expect_number("bytes", rows[i].bytes, bytes[i]);
    }
}

/* The words of the command in `text`, without the name of the program before them; NULL: it has no command. */
static const char *words_of_command(const char *text)
{
    const char *plan = strstr(text, " plan ");
    return plan ? plan + 1 : NULL;
}

TEST(rows_are_commands_that_run_in_their_bytes)
{
    const char *hardware = write_hardware("paper.txt", &machines[0]);
    json_t *front =
        json_at(yard_json("plan --model tiny --batch 8 --hardware %s -d 4 --search --json", hardware), "front");
    assert_above(json_array_size(front), 2);
    for (size_t i = 0; i < json_array_size(front); i++) {
        const json_t *row = json_array_get(front, i);
        const char *words = words_of_command(text_at(row, "command"));
        const json_t *plan = yard_json("%s --device-mem %.0f --json", words, number_at(row, "device_bytes"));
        expect_number("the command's step", number_at(plan, "simulation.step_ms"), number_at(row, "step_ms"));
    }
}

TEST(the_mebibytes_that_a_row_shows_are_enough)
{
    struct ran ran = expect_yard(EXIT_OK, "MiB", "plan --model tiny --batch 8 --hardware %s -d 4 --search",
                                 write_hardware("paper.txt", &machines[0]));
    int rows = 0;
    char *rest = NULL;
    for (char *line = strtok_r(ran.out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char mib[32];
        const char *words = words_of_command(line);
        if (words && sscanf(line, " %*f %31s", mib) == 1) {
            expect_yard(EXIT_OK, "simulated step", "%s --device-mem %s%c", words, mib, 'M');
            rows++;
        }
    }
    assert_above(rows, 2);
}

/* Tutorials 4, 9 and 11: meshes that are tried one by one. */
static const char *const by_hand[][2] = {
    {"plan --model gpt2 --batch 8 --hardware data/hardware/server.txt", "--mesh dp=4"},
    {"plan --model gpt2 --vocab 256 --layers 8 --batch 8 --micro-batch 1 --hardware data/hardware/server.txt",
     "--mesh pp=4 --pipeline zbh2"},
    {"plan --model gpt2 --vocab 256 --batch 8 --hardware data/hardware/server.txt", "--mesh tp=4"},
};

LAW(the_search_finds_at_least_what_a_reader_finds_by_hand)
{
    const struct cases these = cases_of(1, COUNT(by_hand));
    for (int i = these.begin; i < these.end; i++) {
        double found = number_at(yard_json("%s -d 4 --search --json", by_hand[i][0]), "front.0.step_ms");
        double tried =
            number_at(yard_json("%s %s --simulate --json", by_hand[i][0], by_hand[i][1]), "simulation.step_ms");
        if (found > tried * (1 + 1e-9))
            test_failed("%s: %g ms, by hand %g ms\n", by_hand[i][0], found, tried);
    }
}
