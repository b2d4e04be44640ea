/* test_board.c - moving the tasks of a step file by hand, as on the screen of `yard view`.
 *
 * It tests src/tools/board.  It checks that the list proves to compute the same values after each move that is
 * accepted, that a refusal says which task is in the way, that undo brings every byte back, and that what is saved
 * takes the time that was shown.  It catches a task that passes another one whose result it reads, and a move that
 * changes more than the order.
 *
 * To see it fail: in sink_along() of board.c, leave out the condition on the lane.
 *
 * The lists are those of data/steps.  verify_list(), and a simulation of what is saved, say what a move must come to.
 */
#include "planning/lists/lists.h"
#include "planning/predict/predict.h"
#include "planning/proof/proof.h"
#include "tests/support/support.h"
#include "tests/support/support_lists.h"
#include "tools/board/board.h"
#include "trainer/file/file.h"

#include <math.h>

static double number_of(const struct board *board, const char *key)
{
    json_t *all = board_json(board);
    double number = json_number_value(json_object_get(all, key));
    json_decref(all);
    return number;
}

static void expect_ms(const struct board *board, double ms)
{
    double now = number_of(board, "period_ms");
    if (fabs(now - ms) > 1e-9)
        test_failed("the period: expected %g ms, got %g\n", ms, now);
}

static struct list *finished(const char *path)
{
    struct list *list = read_list(path);
    finish_list(list);
    return list;
}

/* Saves the list of the board as a file of this name in the test's folder, and returns its path. */
static const char *save(const struct board *board, const char *name)
{
    const char *path = temp_path(name);
    must(save_board(board, path));
    return path;
}

/* The text of the list that is saved so; the caller frees it. */
static char *saved(const struct board *board, const char *name) { return read_text(save(board, name)); }

static size_t find_task(const struct list *list, const char *name, int layer)
{
    size_t i = 0;
    while (i < list->n && !(strcmp(list->tasks[i]->name, name) == 0 && list->tasks[i]->layer == layer))
        i++;
    assert_below(i, list->n);
    return i;
}

static struct problem *try_behind(struct board *board, size_t task, const struct list *list, int64_t behind,
                                  size_t *place)
{
    return try_move(board, &(struct move){task, (size_t)list->tasks[task]->lane->index, behind}, place);
}

/* ---- lists of data/ ---------------------------------------------------------------------------------------------- */

/* Each device sends to all others, and all begin with device a, whose link is then full while the other links wait.
 * Two moves change this: b sends to a when it has sent to the others, and c begins with d. */
TEST(two_moves_shorten_a_broadcast_by_a_third)
{
    enum { B_TO_A = 13, B_TO_D = 15, C_TO_D = 19, C_TO_A = 17 }; /* positions of tasks */
    const char *path = "data/steps/broadcast.txt";
    struct list *list = read_list(path);
    struct board *board = open_board(path, 1);
    char *before = saved(board, "before.txt");
    size_t place;
    expect_ms(board, 9); /* as the list's comment says */
    assert_null(try_behind(board, B_TO_A, list, B_TO_D, &place));
    assert_int_equal(place, B_TO_D);
    expect_ms(board, 8);
    undo_move(board);
    expect_ms(board, 9);
    assert_null(try_behind(board, B_TO_A, list, B_TO_D, &place));
    keep_move(board);
    assert_null(try_behind(board, C_TO_D, list, NONE, &place));
    assert_int_equal(place, C_TO_A); /* where c began before */
    keep_move(board);
    expect_ms(board, 6); /* the links are full all the time */
    assert_close(number_of(board, "written_ms"), 9, 1e-9);
    assert_close(number_of(board, "moved"), 2, 0);
    assert_true(undo_move(board));
    expect_ms(board, 8);
    assert_true(undo_move(board));
    assert_false(undo_move(board));
    expect_ms(board, 9);
    char *after = saved(board, "after.txt");
    assert_string_equal(before, after);
    free(before);
    free(after);
    free_list_and_machine(list);
}

static void expect_refused(struct board *board, const struct list *list, size_t task, int64_t behind, const char *says,
                           size_t in_way)
{
    size_t place;
    struct problem *problem = try_behind(board, task, list, behind, &place);
    assert_non_null(problem);
    assert_string_equal(problem->sentence, says);
    assert_int_equal(place, in_way);
    free(problem);
}

TEST(who_is_in_the_way_is_named)
{
    const char *path = "data/steps/overlap-pays.txt";
    struct list *list = read_list(path);
    struct board *board = open_board(path, 0);
    size_t first = find_task(list, "backward", 3), last = find_task(list, "backward", 2);
    expect_refused(board, list, last, (int64_t)first - 1,
                   "backward (layer 2) needs g3, which backward (layer 3) writes", first);
    expect_refused(board, list, first, (int64_t)last, "backward (layer 2) needs g3, which backward (layer 3) writes",
                   last);
    size_t place;
    struct problem *problem =
        try_move(board, &(struct move){first, (size_t)list->tasks[first + 1]->lane->index, NONE}, &place);
    assert_non_null(problem);
    assert_string_equal(problem->sentence,
                        "backward cannot move from the lane gpu compute to gpu download: it can only use lanes of its "
                        "device and of its kind");
    assert_int_equal(place, first);
    free(problem);
    free_list_and_machine(list);
}

TEST(what_was_said_without_a_tensor_is_kept)
{
    const char *path = write_text("said.txt", "device gpu memory=1G\nlane gpu.compute1\n"
                                              "task c gpu.compute1 1ms\ntask a gpu.compute 2ms layer=1 after=b'\n"
                                              "task b gpu.compute1 3ms after=a\n");
    struct list *list = read_list(path);
    struct board *board = open_board(path, 0);
    size_t place;
    expect_ms(board, 5);
    expect_refused(board, list, 2, NONE, "b waits for a (layer 1), as after= says", 1);
    assert_null(try_behind(board, 0, list, 2, &place)); /* c goes behind b */
    keep_move(board);
    char *text = saved(board, "said-after.txt");
    assert_contains(text, "task a gpu.compute 0.002 layer=1 after=b'\ntask b gpu.compute1 0.003 after=a\n");
    free(text);
    free_list_and_machine(list);
}

/* The update waits for all that is backward, whichever of it is the last of its lane by now. */
TEST(clipping_waits_for_the_backward_that_was_moved_behind_the_last)
{
    const char *path = write_text("clipped.txt", "device gpu memory=1G\nlane gpu.compute1\ntensor w gpu 4 parameters\n"
                                                 "task back gpu.compute 2ms layer=0 role=backward\n"
                                                 "task back gpu.compute 3ms layer=1 role=backward reads=w\n"
                                                 "task adam gpu.compute1 1ms role=update reads=w writes=w\n");
    struct list *list = read_list(path);
    struct board *board = open_board(path, 1);
    size_t place;
    expect_ms(board, 5); /* the update now runs beside the next step's first backward */
    assert_null(try_behind(board, 0, list, 1, &place));
    expect_ms(board, 6);
    keep_move(board);
    free_list_and_machine(list);
}

/* ---- any list, any moves ----------------------------------------------------------------------------------------- */

enum { TENSORS = 8, CASES = 60, MOVES = 12 };

/* Tensors 0 to 3 are on the device, the others on the host; half of them persist, the others are written before they
 * are read.  Tasks have names of their own. */
static const char *make_list(uint32_t seed)
{
    static const char *const lanes[] = {"gpu.compute", "gpu.compute1", "host.cpu"};
    const char *path = temp_path("random.txt");
    FILE *out = fopen(path, "w");
    struct draws draws = {.seed = seed, .row = 1};
    size_t tasks = 4 + draw_below(&draws, 20);
    bool written[TENSORS];
    fprintf(out, "device gpu memory=1M\nlane gpu.compute1\nlane gpu.upload1\nlink gpu up 1e9\nlink gpu down 1e9\n");
    for (int i = 0; i < TENSORS; i++) {
        bool persists = i % 2 == 1;
        written[i] = persists;
        fprintf(out, "tensor x%d %s 1000 %s\n", i, i < TENSORS / 2 ? "gpu" : "host", persists ? "parameters" : "work");
    }
    for (size_t i = 0; i < tasks; i++) {
        size_t kind = draw_below(&draws, 5);
        size_t lane = kind % 3;
        size_t base = lane == 2 ? TENSORS / 2 : 0;
        size_t to = base + draw_below(&draws, TENSORS / 2), from = base + draw_below(&draws, TENSORS / 2);
        if (kind > 2)
            from = (from + TENSORS / 2) % TENSORS;
        if (!written[from])
            fprintf(out, "task t%zu %s 2us writes=x%zu\n", i, from < TENSORS / 2 ? "gpu.compute" : "host.cpu", from);
        else if (kind > 2)
            fprintf(out, "copy t%zu x%zu x%zu%s\n", i, to, from, to < from && i % 2 ? " lane=gpu.upload1" : "");
        else
            fprintf(out, "task t%zu %s %zuus reads=x%zu writes=x%zu\n", i, lanes[lane], 1 + draw_below(&draws, 9), from,
                    to);
        written[written[from] ? to : from] = true;
    }
    fclose(out);
    return path;
}

static const struct task *task_named(const struct list *list, const char *name)
{
    return list->tasks[find_task(list, name, -1)];
}

static bool conflict(const struct task *a, const struct task *b)
{
    for (int i = 0; i < a->n_accesses; i++)
        for (int k = 0; k < b->n_accesses; k++)
            if (strcmp(a->accesses[i].tensor->name, b->accesses[k].tensor->name) == 0 &&
                ((a->accesses[i].mode | b->accesses[k].mode) & ACCESS_WRITE))
                return true;
    return false;
}

/* Two tasks of which one writes what the other one touches are in one order in both lists. */
static void expect_same_meaning(const struct list *a, const struct list *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = i + 1; k < a->n; k++)
            if (conflict(a->tasks[i], a->tasks[k]))
                assert_below(task_named(b, a->tasks[i]->name)->index, task_named(b, a->tasks[k]->name)->index);
}

/* The names of the tasks on the lane, in their order. */
static char *names_on_lane(const struct list *list, size_t lane)
{
    char *names = copy_string("");
    for (size_t i = 0; i < list->n; i++)
        if (list->tasks[i]->lane->index == (int)lane)
            append_text(&names, "%s ", list->tasks[i]->name);
    return names;
}

/* The names that should be on the move's lane after it: the others keep their order. */
static char *names_after_move(const struct list *list, const struct move *move)
{
    const char *moved = list->tasks[move->task]->name;
    char *names = copy_string("");
    if (move->behind == NONE)
        append_text(&names, "%s ", moved);
    for (size_t i = 0; i < list->n; i++) {
        if (i != move->task && list->tasks[i]->lane->index == (int)move->lane)
            append_text(&names, "%s ", list->tasks[i]->name);
        if ((int64_t)i == move->behind)
            append_text(&names, "%s ", moved);
    }
    return names;
}

static void expect_moved(const struct list *before, const struct list *after, const struct move *move)
{
    char *found = names_on_lane(after, move->lane), *expected = names_after_move(before, move);
    assert_string_equal(found, expected);
    free(found);
    free(expected);
}

static struct move draw_move(const struct list *list, struct draws *draws)
{
    struct move move = {.behind = NONE};
    move.task = draw_below(draws, list->n);
    move.lane = draw_below(draws, (size_t)list->pool->machine->n_lanes);
    if (draw_below(draws, 2) == 0)
        move.lane = (size_t)list->tasks[move.task]->lane->index;
    for (size_t k = 0; k < list->n && move.behind == NONE; k++) {
        bool may_be_behind = k != move.task && list->tasks[k]->lane->index == (int)move.lane;
        if (may_be_behind && draw_below(draws, 3) == 0)
            move.behind = (int64_t)k;
    }
    return move;
}

enum fate { REFUSED, UNDONE, KEPT };

/* Tries any move, and undoes some of those that are accepted. */
static enum fate try_any_move(struct board *board, struct draws *draws)
{
    char *now = saved(board, "now.txt");
    struct list *list = read_list(temp_path("now.txt"));
    struct move move = draw_move(list, draws);
    enum fate fate = KEPT;
    size_t place;
    struct problem *problem = try_move(board, &move, &place);
    if (problem) {
        fate = REFUSED;
        char *same = saved(board, "same.txt");
        assert_string_equal(same, now); /* nothing has moved */
        assert_contains(problem->sentence, list->tasks[place]->name);
        free(same);
    } else if (draw_below(draws, 4) == 0) {
        fate = UNDONE;
        undo_move(board);
    } else {
        keep_move(board);
        struct list *then = read_list(save(board, "then.txt"));
        expect_moved(list, then, &move);
        free_list_and_machine(then);
    }
    free(problem);
    free(now);
    free_list_and_machine(list);
    return fate;
}

LAW(what_is_accepted_means_the_same_and_undo_brings_the_bytes_back)
{
    const struct cases some = cases_of(12, CASES);
    size_t n_cases = (size_t)(some.end - some.begin);
    size_t kept = 0, refused = 0;
    for (uint32_t seed = (uint32_t)some.begin; seed < (uint32_t)some.end; seed++) {
        const char *path = make_list(seed);
        struct list *written = read_list(path);
        struct board *board = open_board(path, 0);
        char *before = saved(board, "before.txt");
        struct draws draws = {.seed = seed, .row = 2};
        size_t moved = 0;
        for (int i = 0; i < MOVES; i++) {
            enum fate fate = try_any_move(board, &draws);
            if (fate == REFUSED)
                refused++;
            if (fate == KEPT)
                moved++;
        }
        kept += moved;
        char *after = saved(board, "after.txt");
        struct list *list = finished(temp_path("after.txt"));
        struct simulation *simulation = must_simulate(list, NULL);
        expect_same_meaning(written, list);
        assert_null(verify_list(list, NULL));
        expect_ms(board, 1e3 * simulation->period);
        free_simulation(simulation);
        for (; moved; moved--)
            assert_true(undo_move(board));
        char *back = saved(board, "back.txt");
        assert_string_equal(back, before);
        free(before);
        free(after);
        free(back);
        free_list_and_machine(list);
        free_list_and_machine(written);
    }
    assert_above(kept, 2 * n_cases);
    assert_above(refused, 2 * n_cases);
}
