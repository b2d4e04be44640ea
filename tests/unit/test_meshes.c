/* test_meshes.c - plan --search: on small cases it finds the front of all candidates, simulated one by one;
 * no candidate undercuts a bound of its own, and each row's command comes to the row's time in the row's bytes.
 */
#include "tests/support/support_paper.h"
#include "tools/meshes/meshes.h"

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
    {2, "--model tiny --batch 2 --device-mem 400K"}, /* what is swapped fits */
};

static struct mesh_search search_case(int i, bool prunes)
{
    const size_t model = (size_t)i / COUNT(machines);
    const char *hardware = write_hardware("paper.txt", &machines[(size_t)i % COUNT(machines)]);
    char *words = format_string("%s --hardware %s", cases[model].words, hardware);
    struct mesh_search x = new_mesh_search(settings_of(words), cases[model].devices);
    x.prunes = prunes;
    proof_options.verify = false; /* which settings_of() has set */
    search_meshes(&x);
    return x;
}

/* Bounds that are sums of the times they bound may exceed them by rounding. */
static void expect_bounded(const char *what, double bound, double value, const struct mesh_candidate *c)
{
    char mesh[64];
    if (bound > value * (1 + 1e-9))
        test_failed("%s: at least %.9g by its bound, but %.9g, of %s, zero %d, %s, %d x %d\n", what, bound, value,
                    format_mesh(mesh, &c->mesh), c->mesh.zero, c->pipeline, c->micros, c->micro_batch);
}

static void expect_bounds(const struct mesh_search *x)
{
    for (const struct planned *o = x->planned; o < x->planned + x->n; o++) {
        const struct mesh_candidate *c = &o->candidate;
        expect_bounded("time", c->seconds, o->seconds, c);
        expect_bounded("state", c->state, o->bytes, c);
        if (!c->recompute && !c->swap)
            expect_bounded("memory", c->bytes, o->bytes, c);
    }
}

static void expect_same_front(struct mesh_search *x, struct mesh_search *each, const char *words)
{
    const size_t n = find_front(x, x->budget), expected = find_front(each, each->budget);
    if (n != expected)
        test_failed("%s: %zu rows, expected %zu\n", words, n, expected);
    for (size_t i = 0; i < n; i++) {
        const struct planned *found = &x->planned[i], *best = &each->planned[i];
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
        struct mesh_search x = search_case(i, true);
        expect_bounds(&each);
        all += each.n;
        simulated += x.n;
        expect_same_front(&x, &each, cases[(size_t)i / COUNT(machines)].words);
        free_mesh_search(&each);
        free_mesh_search(&x);
    }
    if (simulated >= all)
        test_failed("the bounds rule nothing out: %zu of %zu are simulated\n", simulated, all);
}

TEST(rows_are_commands_that_run_in_their_bytes)
{
    const char *hardware = write_hardware("paper.txt", &machines[0]);
    json_t *front =
        json_at(yard_json("plan --model tiny --batch 8 --hardware %s -d 4 --search --json", hardware), "front");
    assert_true(json_array_size(front) > 2);
    for (size_t i = 0; i < json_array_size(front); i++) {
        const json_t *row = json_array_get(front, i);
        const char *words = text_at(row, "command") + strlen("yard ");
        const json_t *plan = yard_json("%s --device-mem %.0f --json", words, number_at(row, "device_bytes"));
        expect_number("the command's step", number_at(plan, "simulation.step_ms"), number_at(row, "step_ms"));
    }
}

/* Tutorials 6, 9 and 18: meshes that are tried one by one. */
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
