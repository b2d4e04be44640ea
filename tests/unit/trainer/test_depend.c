/* test_depend.c - which task waits for which.
 *
 * It tests depend() of src/trainer/step.  It catches a missing edge, one edge too many, and a wait that other waits
 * imply.
 *
 * To see it fail: in note_touch() of depend.c, write EDGE_DATA for EDGE_REUSE in the condition.
 *
 * The edges of the journey (support_schedule.h) were worked out on paper.  test_verify.c proves the same list,
 * test_depend_random.c tests random lists, test_execute.c runs, and test_place.c where bytes lie.
 */
#include "tests/support/support_schedule.h"
#include "trainer/mesh/mesh.h"

struct expected { /* `to` depends on `from`; previous: on its run of the step before */
    uint32_t to, from;
    bool previous;
    enum edge_kind kind;
    bool wait; /* WAITED, or IMPLIED by other waits */
};
enum { IMPLIED = false, WAITED = true };

static const struct edge *find_edge(const struct list *list, const struct expected *expected)
{
    const struct task *task = list->tasks[expected->to];
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
        if (edge->producer == expected->from && edge->previous == expected->previous)
            return edge;
    return NULL;
}

static const char *edge_words(enum edge_kind kind, bool wait)
{
    return lasting("%s, %s", kind == EDGE_DATA ? "data" : "reuse", wait == WAITED ? "waited" : "implied");
}

static void expect_edge(const struct list *list, const struct expected *expected)
{
    const struct edge *edge = find_edge(list, expected);
    if (edge && edge->kind == expected->kind && edge->needs_wait == expected->wait)
        return;
    test_failed("edge from %u%s to %u: expected %s, got %s\n", expected->from,
                expected->previous ? " of the step before" : "", expected->to,
                edge_words(expected->kind, expected->wait), edge ? edge_words(edge->kind, edge->needs_wait) : "none");
}

/* Fails unless the list has these n edges, and no other. */
static void expect_edges(const struct list *list, const struct expected *expected, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        expect_edge(list, &expected[i]);
    for (size_t i = 0; i < list->n; i++)
        found += list->tasks[i]->n_edges;
    if (found != n)
        test_failed("%zu edges, expected %zu\n", found, n);
}

/* Task 0 waits for `show` of the step before, because r's bytes become h.  Everything else of the step before follows
 * from that: even p need not be waited for. */
TEST(the_journey_has_the_edges_that_a_hand_finds)
{
    struct journey journey = new_journey(no_work, NULL);
    must(finish_lists(journey.pool, &journey.list, 1));
    assert_int_equal(journey.h->address, journey.r->address);
    static const struct expected edges[] = {
        {.to = 0, .from = 4, .previous = true, .kind = EDGE_REUSE, .wait = IMPLIED},
        {.to = 0, .from = 5, .previous = true, .kind = EDGE_REUSE, .wait = WAITED},
        {.to = 1, .from = 0, .previous = false, .kind = EDGE_DATA, .wait = WAITED},
        {.to = 1, .from = 1, .previous = true, .kind = EDGE_REUSE, .wait = IMPLIED},
        {.to = 1, .from = 2, .previous = true, .kind = EDGE_REUSE, .wait = IMPLIED},
        {.to = 2, .from = 1, .previous = false, .kind = EDGE_DATA, .wait = WAITED},
        {.to = 2, .from = 2, .previous = true, .kind = EDGE_REUSE, .wait = IMPLIED},
        {.to = 2, .from = 3, .previous = true, .kind = EDGE_REUSE, .wait = IMPLIED},
        {.to = 3, .from = 2, .previous = false, .kind = EDGE_DATA, .wait = IMPLIED},
        {.to = 3, .from = 3, .previous = true, .kind = EDGE_DATA, .wait = IMPLIED},
        {.to = 3, .from = 4, .previous = true, .kind = EDGE_DATA, .wait = IMPLIED},
        {.to = 4, .from = 3, .previous = false, .kind = EDGE_DATA, .wait = WAITED},
        {.to = 4, .from = 0, .previous = false, .kind = EDGE_REUSE, .wait = IMPLIED},
        {.to = 4, .from = 1, .previous = false, .kind = EDGE_REUSE, .wait = IMPLIED},
        {.to = 5, .from = 4, .previous = false, .kind = EDGE_DATA, .wait = WAITED},
    };
    expect_edges(journey.list, edges, COUNT(edges));
    assert_true(journey.list->tasks[0]->flush);
    assert_true(journey.list->tasks[3]->flush);
    assert_false(journey.list->tasks[2]->flush);
    end_journey(&journey);
}

/* Between contexts a move is staged: download, upload, and the download's end must be known in the other context. */
static void expect_staged_moves(bool apart)
{
    struct machine *machine = open_two(apart);
    struct list *list = new_list_on(machine);
    struct pool *pool = list->pool;
    struct tensor *a = new_array(pool, &machine->devices[0], "a", 64, PERSISTENT),
                  *b = new_array(pool, &machine->devices[1], "b", 64, PERSISTENT);
    add_fill(list, "fill", a, 5);
    tag_tasks(list, 3, NONE, ROLE_FORWARD);
    add_move(list, "move", b, a, FOR_MOVES);
    must(finish_lists(pool, &list, 1));
    bool staged = apart || getenv("YARD_SEPARATE_CONTEXTS");
    assert_int_equal(machine->n_contexts, staged ? 2 : 1);
    assert_int_equal(list->n, staged ? 3 : 2);
    assert_int_equal(list->tasks[1]->layer, 3);
    assert_int_equal(list->tasks[1]->notify, staged ? 1u << 1 : 0);
    assert_true(list->tasks[0]->flush);
    execute(list, 1);
    drain(list);
    float value[64];
    read_tensor(b, value);
    assert_close(value[0], 5, 0);
    assert_close(value[63], 5, 0);
    end_list(list);
}

TEST(moves_within_a_context_are_one_copy) { expect_staged_moves(false); }

TEST(moves_between_contexts_are_staged) { expect_staged_moves(true); }
