/* test_order.c - which task must come before which: updates that wait for the norm, slots, tasks that may be skipped,
 * and waits that no tensor says.
 *
 * It tests gate_updates(), which --clip calls (src/planning/lists), depend(), and verify_list() (src/planning/proof).
 * It checks that verify_list() accepts a right list.  Then the test takes one wait away or moves one task, and checks
 * that verify_list() names the two tasks that have lost their order.
 *
 * To see it fail: in gate.c, look for ROLE_NORM in place of ROLE_UPDATE where an update must know the norm.
 *
 * The lists are texts in this program.  Their orders and times were worked out by hand.
 */
#include "planning/lists/lists.h"
#include "planning/predict/predict.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"

/* ---- clipping ---------------------------------------------------------------------------------------------------- */

#define TWO_LAYERS                                                                                                     \
    GPU "tensor w gpu 4 parameters\ntensor v gpu 4 parameters\ntensor g gpu 4 gradients\ntensor f gpu 4 gradients\n"   \
        "task back gpu.compute 2 role=backward reads=w writes=g\n"                                                     \
        "task adam host.cpu 1 role=update reads=g,w writes=w\n"                                                        \
        "task tell host.report 1 reads=w\n"                                                                            \
        "task back gpu.compute 3 role=backward reads=v writes=f\n"                                                     \
        "task adam host.cpu 1 role=update reads=f,v writes=v\n"

static struct list *gated_list(const char *text)
{
    struct list *list = read_list_text("%s", text);
    gate_updates(list);
    struct values *values = hash_values(list);
    finish_list(list);
    struct problem *problem = verify_list(list, values);
    if (problem)
        test_failed("the list is wrong: %s\n", problem->sentence);
    free_values(values);
    return list;
}

/* By hand: backwards 0-5, then both updates; the second runs beside the next step's first backward. */
TEST(updates_wait_for_the_last_backward)
{
    struct list *list = gated_list(TWO_LAYERS);
    struct simulation *simulation = must_simulate(list, NULL);
    expect_order(list, "back back adam tell adam");
    expect_number("period", simulation->period, 6);
    expect_number("first update", simulation->moments[2].start, 5);
    end_simulation(simulation);
    list = gated_list(TWO_LAYERS "task norm host.disk 0.5 role=norm\ntask late host.cpu 1 role=update\n");
    simulation = must_simulate(list, NULL);
    /* A norm takes the backwards' place: updates wait for it.  It reads nothing and starts at 0, so the first update
     * starts when g is there. */
    expect_order(list, "back back norm adam tell adam late");
    expect_number("first update", simulation->moments[3].start, 2);
    end_simulation(simulation);
}

/* The second norm runs in every other step only; in the others the first one holds the update. */
TEST(a_gate_that_is_skipped_hides_no_other)
{
    struct list *list = gated_list(GPU "task norm gpu.compute 3 role=norm\ntask norm gpu.compute 1 every=2 role=norm\n"
                                       "task adam host.cpu 1 role=update\ntask adam host.cpu 1 role=update\n");
    struct simulation *simulation = must_simulate(list, NULL);
    const struct moment *first_step = simulation->moments;
    const struct moment *second_step = first_step + list->n;
    expect_number("update without the second norm", first_step[2].start, 3);
    expect_number("update after the second norm", second_step[2].start, 3 + 3 + 1);
    end_simulation(simulation);
}

static void gate_list(void *text) { gated_list(text); }

TEST(gradients_may_not_follow_from_updates)
{
    expect_refusal(
        gate_list,
        GPU "tensor w gpu 4 parameters\n"
            "task adam gpu.compute 1 role=update reads=w writes=w\n"
            "task back gpu.compute 1 role=backward reads=w\n",
        EXIT_USAGE,
        "task 1 back follows from an update, but --clip holds all updates until every task of its role, backward,");
}

TEST(who_reads_the_norm_is_not_gated)
{
    struct list *list = gated_list(GPU "tensor w gpu 4 parameters\ntensor n gpu 4 work\ntensor m gpu 4 work\n"
                                       "task norm gpu.compute 2 role=norm writes=n\n"
                                       "task pass host.cpu 1 reads=n writes=m\n"
                                       "task adam host.cpu 1 role=update reads=m,w writes=w\n"
                                       "task norm gpu.download 9 role=norm reads=n\n");
    expect_order(list, "norm pass adam norm");
    assert_int_equal(list->tasks[2]->extra.gate, GATE_NONE);
    free_list_and_machine(list);
}

TEST(verify_sees_an_update_that_is_not_gated)
{
    struct list *list = gated_list(TWO_LAYERS);
    struct task *adam = list->tasks[2];
    size_t dropped = 0;
    for (struct edge *edge = adam->edges; edge < adam->edges + adam->n_edges; edge++)
        if (edge->producer == 1 && !edge->previous) {
            assert_true(edge->needs_wait);
            edge->needs_wait = false;
            dropped++;
        }
    assert_int_equal(dropped, 1);
    expect_wrong("the list", verify_list(list, NULL), "task 2 adam, an update, may start before task 0 back has ended");
    free_list_and_machine(list);
}

/* ---- tasks that may be skipped ----------------------------------------------------------------------------------- */

/* b may be skipped, decided late: c waits for a by itself. */
TEST(verify_sees_who_wrote_before_a_task_that_may_be_skipped)
{
    const char *text = GPU "tensor x gpu 4 work keep\ntask a gpu.upload 1 writes=x\ntask b gpu.download 1 writes=x\n"
                           "task c gpu.compute 1 reads=x\n";
    struct list *list = read_list_text("%s", text);
    struct task *task = list->tasks[2];
    list->tasks[1]->extra.slot.needed = true;
    finish_list(list);
    expect_sound("the list", list, NULL);
    for (struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
        edge->needs_wait &= edge->producer != 0;
    expect_wrong("the list", verify_list(list, NULL),
                 "task 0 a and task 2 c touch the same bytes and nothing orders them");
    free_list_and_machine(list);
}

/* In step 5 the reader runs and the writer does not, though both run in step 1. */
TEST(verify_looks_at_all_sets_that_run_together)
{
    const char *text = GPU "tensor x gpu 4 work\ntask w gpu.compute 1 every=3 rest=1 writes=x\n"
                           "task r gpu.compute 1 every=4 rest=1 reads=x\n";
    struct list *list = read_list_text("%s", text);
    finish_list(list);
    expect_wrong("the list", verify_list(list, NULL), "task 1 r reads tensor x before anything is written to it");
    free_list_and_machine(list);
    text = GPU "tensor x gpu 4 work\ntask w gpu.compute 1 every=2 writes=x\ntask w gpu.compute 1 every=2 rest=1 "
               "writes=x\ntask r gpu.compute 1 reads=x\n";
    free_list_and_machine(read_text_list(text)); /* one of the two always runs */
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* Iterations have slots of their own, so nothing leads from one to the next.  In exchange an iteration may touch its
 * slot only while it has it. */
TEST(verify_sees_what_touches_a_slot_too_late)
{
    static const char *const lists[] = {
        "task copy gpu.download 1 reads=x writes=b\ntask persist host.disk 1 reads=b\ntask commit host.disk 1\n",
        "task copy gpu.download 1 reads=x writes=b\ntask persist host.cpu 1 reads=b\ntask commit host.disk 1\n",
        "task copy gpu.download 1 reads=x writes=b\ntask look host.cpu 1 reads=b\n"
        "task persist host.disk 1 reads=b\ntask commit host.disk 1\n",
        "task copy gpu.download 1 reads=x writes=b\ntask commit host.disk 1\ntask persist host.disk 1 reads=b\n"};
    static const char *const wrong[] = {
        NULL, "task 0 copy touches tensor b in a slot, and may run in a step that has returned its own",
        "task 1 look touches tensor b in a slot, and may run in a step that has none",
        "task 0 copy touches tensor b in a slot, and may run in a step that has returned its own"};
    for (int k = 0; k < 4; k++) {
        struct list *list = read_list_text(GPU "tensor x gpu 4 work keep\ntensor b host 4 work keep\n%s", lists[k]);
        for (size_t i = 0; i < list->n; i++) {
            struct task *task = list->tasks[i];
            task->extra.slot.needed = strcmp(task->name, "look") != 0;
            task->extra.slot.returns = strcmp(task->name, "commit") == 0;
            for (int a = 0; a < task->n_accesses; a++)
                if (task->accesses[a].tensor->device->is_host)
                    task->accesses[a].tensor->storage->extra.slots = &list->pool->slots;
        }
        finish_list(list);
        for (size_t e = 0; e < list->n_edges; e++)
            assert_false(list->edges[e].previous);
        if (wrong[k])
            expect_wrong("the list", verify_list(list, NULL), wrong[k]);
        else
            expect_sound("the list", list, NULL);
        free_list_and_machine(list);
    }
}

/* Nothing but an edge leads from the persist to the commit, which returns the slot.  It counts if it is a wait within
 * the iteration, and if the persist always runs. */
TEST(verify_trusts_only_what_always_runs_to_return_a_slot)
{
    enum { PERSIST = 1, COMMIT = 2 }; /* tasks, in the order of their lines */
    enum { TENSOR_B = 1 };
    static const struct {
        const char *what;
        bool needs_wait, previous; /* of the edge */
        bool persist_may_not_run;
        bool is_sound;
    } cases[] = {
        {"the commit waits for the persist", .needs_wait = true, .is_sound = true},
        {"the commit does not wait", .needs_wait = false},
        {"the commit waits for the persist of the iteration before", .needs_wait = true, .previous = true},
        {"the persist may not run", .needs_wait = true, .persist_may_not_run = true},
    };
    static const char *const text = GPU "tensor x gpu 4 work keep\ntensor b host 4 work keep\n"
                                        "task copy gpu.download 1 reads=x writes=b\n"
                                        "task persist host.cpu 1 reads=b\ntask commit host.disk 1\n";
    for (size_t k = 0; k < COUNT(cases); k++) {
        struct list *list = read_list_text("%s", text);
        struct edge edge = {.producer = PERSIST, .needs_wait = cases[k].needs_wait, .previous = cases[k].previous};
        for (size_t i = 0; i < list->n; i++)
            list->tasks[i]->extra.slot.needed = true;
        list->tasks[PERSIST]->extra.condition.needs = cases[k].persist_may_not_run;
        list->tasks[COMMIT]->extra.slot.returns = true;
        list->pool->tensors[TENSOR_B]->extra.slots = &list->pool->slots;
        finish_list(list);
        list->tasks[COMMIT]->edges = &edge;
        list->tasks[COMMIT]->n_edges = 1;
        if (cases[k].is_sound)
            expect_sound(cases[k].what, list, NULL);
        else
            expect_wrong(cases[k].what, verify_list(list, NULL),
                         "touches tensor b in a slot, and may run in a step that has returned its own");
        free_list_and_machine(list);
    }
}

/* An iteration reads from its slot only its own values: another iteration's value is in another slot. */
TEST(verify_sees_a_read_of_a_slot_before_its_write)
{
    struct list *list =
        read_list_text(GPU "tensor x gpu 4 work keep\ntensor b host 4 work keep\n"
                           "task persist host.disk 1 reads=b\ntask copy gpu.download 1 reads=x writes=b\n"
                           "task commit host.disk 1\n");
    for (size_t i = 0; i < list->n; i++)
        list->tasks[i]->extra.slot.needed = true;
    list->tasks[2]->extra.slot.returns = true;
    list->pool->tensors[1]->extra.slots = &list->pool->slots;
    finish_list(list);
    expect_wrong("the list", verify_list(list, NULL), "task 0 persist reads tensor b before anything is written to it");
    free_list_and_machine(list);
}

/* ---- waits that no tensor says ----------------------------------------------------------------------------------- */

/* The second launch waits for the last work of the step before. */
#define RELAY                                                                                                          \
    GPU "task launch host.cpu 1\ntask work gpu.compute 4 after=launch\ntask launch host.cpu 1 after=work'\n"           \
        "task work gpu.compute 2 after=launch\ntask sum gpu.download 3 after=work\n"                                   \
        "task end gpu.upload 1 after=sum,work,launch\n"

TEST(tasks_wait_for_those_that_are_named)
{
    struct simulation *simulation = simulate_text(RELAY);
    const struct task *again = simulation->list->tasks[2], *end = simulation->list->tasks[5];
    assert_int_equal(again->n_edges, 1);
    assert_int_equal(again->edges[0].producer, 3);
    assert_true(again->edges[0].previous);
    assert_true(again->edges[0].needs_wait);
    assert_int_equal(end->n_edges, 3);
    expect_number("work", simulation->moments[1].start, 1);
    expect_number("sum", simulation->moments[4].start, 1 + 4 + 2);
    expect_number("end", simulation->moments[5].start, 1 + 4 + 2 + 3);
    expect_number("period", simulation->period, 4 + 2); /* launches are hidden */
    expect_round_trip(simulation->list, simulation);
    end_simulation(simulation);
    expect_period(GPU "task a gpu.compute 2 after=c'\ntask b gpu.upload 3 after=a\ntask c host.cpu 1 after=b\n", 6, 1);
    expect_period(GPU "task a gpu.compute 2\ntask b gpu.upload 3 after=a\ntask c host.cpu 1 after=b\n", 3, 1);
    expect_period(GPU "task a host.cpu 2 every=2\ntask b gpu.compute 1 after=a\n", 1.5, 2);
}

/* The file names the awaited task, although its name alone would mean another task. */
TEST(who_is_awaited_has_a_name_of_its_own)
{
    struct paper paper = new_paper(1, &slow_speeds);
    struct lane *lane = paper.device->lanes[LANE_COMPUTE];
    struct task *first = add_paper(&paper, paper.host->lanes[LANE_CPU], "k", NULL, NULL, NULL);
    struct task *second = add_paper(&paper, lane, "k", NULL, NULL, NULL);
    struct task *third = add_paper(&paper, paper.host->lanes[LANE_DISK], "k", NULL, NULL, NULL);
    struct task *other = add_paper(&paper, lane, "k~2", NULL, NULL, NULL);
    add_after(paper.list, third, second, SAME_STEP);
    add_after(paper.list, third, other, STEP_BEFORE);
    add_after(paper.list, other, third, STEP_BEFORE);
    add_after(paper.list, other, third, SAME_STEP);
    add_after(paper.list, other, first, SAME_STEP);
    add_after(paper.list, first, second, STEP_BEFORE);
    finish_paper(&paper);
    char *text = list_as_text(paper.list, (double[]){1, 2, 3, 4});
    assert_contains(text, "task k~3 host.cpu 1 after=k~4'\ntask k~4 ");
    assert_contains(text, ".compute 2\ntask k host.disk 3 after=k~4,k~2'\n");
    assert_non_null(strstr(text, "task k~2 ") && strstr(text, ".compute 4 after=k~3,k,k'\n"));
    struct list *again = read_text_list(text);
    char *twice = list_as_text(again, (double[]){1, 2, 3, 4});
    assert_string_equal(text, twice);
    free(text);
    free(twice);
    free_list_and_machine(again);
    end_paper(&paper);
}

/* Tasks that follow from a held update are held with it. */
TEST(what_waits_for_an_update_is_held_with_it)
{
    struct list *list = gated_list(GPU "tensor w gpu 4 parameters\ntask back gpu.compute 1 role=backward\n"
                                       "task adam gpu.upload 1 role=update writes=w\ntask tell host.cpu 1 after=adam\n"
                                       "task free host.cpu 1 after=back\ntask back gpu.compute 1 role=backward\n");
    expect_order(list, "back free back adam tell");
    free_list_and_machine(list);
}

/* Each of these tasks is unordered without its wait.  verify_list() also sees a task that stands before all that it
 * waits for. */
TEST(verify_sees_a_task_that_does_not_wait)
{
    static const struct {
        size_t task;
        const char *says;
    } dropped[] = {
        {1, "task 1 work may start before task 0 launch has ended, which after= tells it to wait for"},
        {2,
         "task 2 launch may start before task 3 work of the step before has ended, which after= tells it to wait for"},
        {4, "task 4 sum may start before task 3 work has ended, which after= tells it to wait for"},
    };
    for (size_t i = 0; i < COUNT(dropped); i++) {
        struct list *list = read_text_list(RELAY);
        assert_true(list->tasks[dropped[i].task]->edges[0].needs_wait);
        list->tasks[dropped[i].task]->edges[0].needs_wait = false;
        expect_wrong("the list", verify_list(list, NULL), dropped[i].says);
        free_list_and_machine(list);
    }
    struct list *list = read_list_text(GPU "task a host.cpu 1\ntask b gpu.compute 1 after=a\n");
    struct task *a = list->tasks[0];
    list->tasks[0] = list->tasks[1];
    list->tasks[1] = a;
    finish_list(list);
    expect_wrong("the list", verify_list(list, NULL), "task 0 b comes before all that after= tells it to wait for");
    free_list_and_machine(list);
}
