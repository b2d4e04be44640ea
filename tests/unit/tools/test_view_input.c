/* test_view_input.c - what keys, the mouse and a window do to the timeline.
 *
 * It tests actions.c, pick.c, select.c and move.c of src/tools/view with scripts of keys and clicks.  It checks that
 * each key does what the help says, that a click selects what lies below it, and that what is measured are the times of
 * the trace.  It catches a key that does something else, a click that picks the neighbour, and a key that ends the
 * program where there is nothing to select.
 *
 * To see it fail: in actions.c, let go_by() take "previous" for "next": step++ in place of step--; or in pick.c, let
 * find_longest() keep the shortest bar: < in place of > between the two lengths.
 *
 * The window is SDL's dummy driver.  The places of bars follow from the example's times (support_view.h).
 */
#ifdef HAVE_SDL2
#define SDL_MAIN_HANDLED
#include <SDL.h>
#endif

#include "planning/console/table.h"
#include "planning/lists/lists.h"
#include "planning/predict/predict.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_view.h"

#include <math.h>

/* ---- keys and mouse ---------------------------------------------------------------------------------------------- */

static int selected_layer(const struct view *view)
{
    return view->tracks[view->selection.task.track]->trace->tasks[view->selection.task.copy.task].layer;
}

/* overlap-pays has four layers, so tasks 0 to 3 are forwards of 1 ms, and the fifth is the backward of layer 3, of 2
 * ms.  It has five steps of 14.5 ms.  `run_script(view, "pagedown")` shows step 2. */
static struct view *open_five_steps(void)
{
    char *trace = trace_of_list("data/steps/overlap-pays.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    free(trace);
    assert_int_equal(view->sight.anchor, 1);
    return view;
}

TEST(pagedown_and_pageup_go_from_step_to_step)
{
    struct view *view = open_five_steps();
    run_script(view, "pagedown");
    assert_int_equal(view->sight.anchor, 2);
    assert_below(view->sight.from, 0);
    assert_above(view->sight.from, -1e6);
    assert_above(view->sight.to, 14.5e6);
    assert_below(view->sight.to, 15.5e6);
    run_script(view, "pagedown pagedown pagedown");
    assert_int_equal(view->sight.anchor, 5);
    run_script(view, "pageup");
    assert_int_equal(view->sight.anchor, 4);
    end_view(view);
}

TEST(n_selects_the_next_task)
{
    struct view *view = open_five_steps();
    run_script(view, "pagedown n");
    assert_string_equal(selected_name(view), "forward");
    assert_int_equal(selected_layer(view), 0);
    run_script(view, "n n n n");
    assert_string_equal(selected_name(view), "backward");
    assert_int_equal(selected_layer(view), 3);
    end_view(view);
}

TEST(a_search_takes_either_case_and_leaves_the_selection)
{
    struct view *view = open_five_steps();
    run_script(view, "pagedown n n n n n");
    run_script(view, "/nosuch");
    assert_contains(view->message, "no task has that in its name");
    run_script(view, "/Back");
    assert_null(strstr(view->message, "no task"));
    assert_string_equal(selected_name(view), "backward");
    assert_int_equal(selected_layer(view), 3);
    run_script(view, "/upd");
    assert_string_equal(view->selection.search, "upd");
    end_view(view);
}

TEST(p_selects_the_task_before_and_z_zooms_to_it)
{
    struct view *view = open_five_steps();
    run_script(view, "pagedown n n n n n p z");
    assert_string_equal(selected_name(view), "forward");
    assert_int_equal(selected_layer(view), 3);
    assert_close(view->sight.to - view->sight.from, 3e6, 1e3); /* three times the task */
    end_view(view);
}

TEST(escape_k_and_c_change_what_is_marked)
{
    struct view *view = open_five_steps();
    run_script(view, "pagedown n escape");
    assert_false(is_picked(&view->selection.task));
    run_script(view, "k");
    assert_int_equal(view->colour, BY_LAYER);
    run_script(view, "c");
    assert_true(view->selection.critical);
    assert_above(view->selection.n_path, 0);
    end_view(view);
}

TEST(plus_zooms_in)
{
    struct view *view = open_five_steps();
    double length = view->sight.to - view->sight.from;
    run_script(view, "+");
    assert_close(length / (view->sight.to - view->sight.from), 1.5, 1e-9);
    end_view(view);
}

TEST(space_says_that_no_trainer_is_there)
{
    struct view *view = open_five_steps();
    run_script(view, "space");
    assert_contains(view->message, "no trainer");
    end_view(view);
}

TEST(q_quits)
{
    struct view *view = open_five_steps();
    run_script(view, "q");
    assert_true(view->quit);
    end_view(view);
}

TEST(the_mouse_selects_drags_measures_and_zooms)
{
    char *trace = trace_of_list("data/steps/overlap-pays.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    run_script(view, "pagedown");
    const struct view_row *compute = row_of_lane(view, 0, view->tracks[0]->trace->tasks[0].lane);
    int x = (int)x_of(view, 5e6), y = compute->y + compute->height / 2;
    move_mouse(view, x, y);
    assert_true(is_picked(&view->mouse.hover));
    press_button(view, SHIFT_UP);
    release_button(view);
    assert_string_equal(selected_name(view), "backward");
    struct drawn_edges edges = edges_of_pick(view, &view->selection.task);
    assert_at_least(edges.n, 2);
    free(edges.items);

    double at = axis_at(view, x);
    turn_wheel(view, 3, SHIFT_UP); /* what is under the mouse stays there */
    assert_close(axis_at(view, x), at, 1);
    press_button(view, SHIFT_UP);
    move_mouse(view, x + 100, y);
    release_button(view);
    assert_close(axis_at(view, x + 100), at, 1);
    assert_string_equal(selected_name(view), "backward"); /* a drag is no click */

    press_button(view, SHIFT_DOWN);
    move_mouse(view, x + 50, y);
    release_button(view);
    assert_int_equal(view->selection.region.kind, STRETCH);
    assert_true(view->selection.region.at[0] != view->selection.region.at[1]);
    struct box box = places_of(view).overview;
    move_mouse(view, box.x + box.w - 5, box.y + 5);
    press_button(view, SHIFT_UP);
    release_button(view);
    assert_int_equal(view->sight.anchor, 5);
    end_view(view);
    free(trace);
}

/* A lane of bars of 1 to 16 microseconds, so short that a column of pixels has several. */
static char *trace_of_short_bars(void)
{
    enum { BARS = 2000 };
    struct draws draws = {.seed = 23};
    char *text = copy_string("device gpu memory=1M\n");
    for (int i = 0; i < BARS; i++)
        append_text(&text, "task t%d gpu.compute %zuus\n", i, 1 + draw_below(&draws, 16));
    char *trace = trace_of_list(write_text("short.txt", "%s", text));
    free(text);
    return trace;
}

static uint64_t length_of(const struct bar *bar) { return bar->end - bar->start; }

/* The longest of the bars that are in a column, which are counted; NULL: there is none. */
static const struct bar *longest_in_column(const struct view *view, const struct bars *bars, int x, int *count)
{
    uint64_t from = clock_of(view->tracks[0], axis_at(view, x));
    uint64_t to = clock_of(view->tracks[0], axis_at(view, x + 1));
    const struct bar *longest = NULL;
    *count = 0;
    for (const struct bar *bar = bars->items; bar < bars->items + bars->n; bar++) {
        if (bar->end <= from || bar->start >= to)
            continue;
        ++*count;
        if (!longest || length_of(bar) > length_of(longest))
            longest = bar;
    }
    return longest;
}

TEST(the_longest_bar_of_a_column_is_picked)
{
    char *trace = trace_of_short_bars();
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    const struct box rows = places_of(view).rows;
    const struct view_row *row = row_of_lane(view, 0, track->trace->tasks[0].lane);
    int crowded = 0;
    for (int x = rows.x; x < rows.x + rows.w; x++) {
        int count;
        const struct bar *longest = longest_in_column(view, &track->trace->bars[row->index], x, &count);
        if (!longest)
            continue;
        const struct pick pick = pick_at(view, x, row->y + row->height / 2);
        assert_true(is_picked(&pick));
        assert_int_equal(pick.copy.end - pick.copy.start, length_of(longest));
        if (count > 1)
            crowded++;
    }
    assert_above(crowded, 100);
    end_view(view);
    free(trace);
}

/* The key marks the time at the mouse, and that of the last two times stays; another anchor moves no mark. */
TEST(two_times_are_marked_and_stay_where_they_are)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    run_script(view, "t");
    assert_int_equal(view->selection.n_marks, 0);
    assert_contains(view->message, "put the mouse");
    run_script(view, "pagedown move:400,113 t move:900,300 t move:700,113 t");
    assert_int_equal(view->selection.n_marks, 2);
    assert_int_equal((int)round(x_of(view, view->selection.mark[0])), 900);
    assert_int_equal((int)round(x_of(view, view->selection.mark[1])), 700);
    const uint64_t clock[] = {clock_of(track, view->selection.mark[0]), clock_of(track, view->selection.mark[1])};
    run_script(view, "measure:250,70,450,70");
    uint64_t begin = clock_of(track, view->selection.region.at[0]);
    const struct times times = find_times(view);
    assert_int_equal(times.n, 4); /* two ends, two marks; the mouse is on the ruler */
    run_script(view, "pagedown");
    /* A nanosecond is lost to rounding. */
    assert_close((double)clock_of(track, view->selection.mark[0]), (double)clock[0], 1);
    assert_close((double)clock_of(track, view->selection.mark[1]), (double)clock[1], 1);
    assert_close((double)clock_of(track, view->selection.region.at[0]), (double)begin, 1);
    assert_false(shows_mark(view)); /* they are a step before what is in sight */
    run_script(view, "escape");
    assert_int_equal(view->selection.n_marks, 0);
    end_view(view);
    free(trace);
}

/* ---- what is said of the place of the mouse ---------------------------------------------------------------------- */

/* A task says why it did not start sooner, and so does the gap before it. */
TEST(a_task_and_its_gap_say_what_was_waited_for)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    run_script(view, "pagedown n n n n n n");
    assert_string_equal(selected_name(view), "backward");
    char *said = describe_record(view->tracks[0], (size_t)view->selection.task.record);
    assert_contains(said, "waited 12.00 ms for send L1 on stage1 send 2 (pipeline)");
    move_mouse(view, (int)x_of(view, 14e6), row_of_lane(view, 0, view->tracks[0]->trace->tasks[0].lane)->y + 5);
    struct pick behind = pick_after_gap(view);
    assert_false(is_picked(&view->mouse.hover));
    assert_int_equal(behind.record, view->selection.task.record);
    move_mouse(view, (int)x_of(view, 14e6), 5); /* above the rows */
    behind = pick_after_gap(view);
    assert_false(is_picked(&behind));
    end_view(view);
    free(said);
    free(trace);
}

/* In a gap: when it was, how long, why, and which task ends it; the frame goes around the gap. */
TEST(a_gap_has_its_own_times)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    run_script(view, "pagedown");
    const struct view_row *row = row_of_lane(view, 0, view->tracks[0]->trace->tasks[0].lane);
    int y = row->y + row->height / 2;
    move_mouse(view, (int)x_of(view, 14e6), y);
    const struct pick after = pick_after_gap(view);
    char *said = describe_gap(view, &after);
    assert_string_equal(said, "idle\n\tlane\tstage0 compute\n\tfrom\t8.00 ms\n\tto\t20.00 ms\n\tlasts\t12.00 ms"
                              "\n\tcause\twaited 12.00 ms for send L1 on stage1 send 2 (pipeline)"
                              "\n\tthen\tbackward · layer 0 · micro-batch 0");
    struct canvas *canvas = new_picture(view);
    const uint32_t *line = canvas->pixels + y * canvas->width;
    assert_int_equal(line[(int)x_of(view, 8e6) - 1], ACCENT); /* the gap is marked at both of its ends */
    assert_int_equal(line[(int)x_of(view, 20e6) + 1], ACCENT);
    assert_true(has_sign(view, "under the mouse"));
    free_canvas(canvas);
    move_mouse(view, (int)x_of(view, 22e6), y); /* a task is under the mouse, and the gap after it is not */
    const struct pick none = pick_after_gap(view);
    assert_false(is_picked(&none));
    end_view(view);
    free(said);
    free(trace);
}

/* A time that is rounded to 0 has no minus. */
TEST(no_time_is_minus_zero)
{
    char text[AXIS_TEXT];
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    format_axis(view, text, -4e4, 1e5);
    assert_string_equal(text, "0.0 ms");
    format_axis(view, text, -6e4, 1e5);
    assert_string_equal(text, "-0.1 ms");
    end_view(view);
    free(trace);
}

/* At the mouse: which task, from when to when, how long, how many bytes, for whom, and why not sooner. */
TEST(a_tooltip_says_what_is_under_the_mouse)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    run_script(view, "pagedown n n n n n n");
    char *said = describe_briefly(view, &view->selection.task);
    assert_contains(said, "backward · layer 0 · micro-batch 0");
    assert_contains(said, "\tlane\tstage0 compute");
    assert_contains(said, "\tfrom\t20.000 ms");
    assert_contains(said, "\tto\t24.000 ms");
    assert_contains(said, "\tlasts\t4.000 ms");
    assert_contains(said, "\tbefore\twaited 12.00 ms for send L1");
    free(said);
    const struct track *track = view->tracks[0];
    for (uint32_t i = 0; i < track->trace->header.n_tasks; i++) {
        const struct trace_task *task = &track->trace->tasks[i];
        bool sends = strcmp(task->name, "send") == 0;
        assert_int_equal(sends, (track->receiver[i] != NONE)); /* all sends have a receiver, and only they */
        if (sends)
            assert_int_equal(labs((long)track->receiver[i] - track->trace->lanes[task->lane].device_index), 1);
    }
    end_view(view);
    free(trace);
}

/* How long the track's lanes were busy between two places of the axis, in ms. */
static double busy_ms(const struct track *track, double from, double to)
{
    uint64_t busy = 0;
    for (uint32_t lane = 0; lane < track->trace->header.n_lanes; lane++)
        busy += busy_between(&track->trace->bars[lane], clock_of(track, from), clock_of(track, to));
    return (double)busy / 1e6;
}

/* The sums over the rows of a stretch's table. */
struct stretch_sums {
    double ms;
    double link_bytes; /* what its copies moved */
};

/* Adds up the table.  Its largest share comes first, and a share that reads 0.0 % is not shown. */
static struct stretch_sums sum_stretch(const struct panel *panel)
{
    struct stretch_sums sums = {0, 0};
    double before = INFINITY;
    json_t *rows = panel->table ? table_json(panel->table) : json_array(), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        double share = json_number_value(json_object_get(row, "share"));
        assert_at_most(share, before);
        assert_int_equal(share >= 0.0005, i < panel->n);
        before = share;
        sums.ms += json_number_value(json_object_get(row, "ms"));
        if (strstr(json_string_value(json_object_get(row, "lane")), "load"))
            sums.link_bytes += json_number_value(json_object_get(row, "bytes"));
    }
    json_decref(rows);
    return sums;
}

/* A stretch's time by lane and kind is what its lanes are busy in it, and its links move what their copies do; whatever
 * the stretch. */
TEST(a_stretch_counts_what_lies_in_it)
{
    char *trace = trace_of_list("data/steps/overlap-pays.txt");
    struct view *view = open_test_view(trace, trace, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    for (uint32_t n = 0; n < 50; n++) {
        struct random4 random4 = random_words(17, STREAM_TEST, 0, n);
        struct box ruler = places_of(view).ruler;
        int x[2] = {ruler.x + (int)random4.word[0] % ruler.w, ruler.x + (int)(random4.word[1] % (unsigned)ruler.w)};
        char script[64];
        snprintf(script, sizeof script, "measure:%d,%d,%d,%d", x[0], ruler.y + 3, x[1], ruler.y + 3);
        run_script(view, script);
        assert_int_equal(view->selection.region.kind, x[0] != x[1] ? STRETCH : NO_REGION);
        double from = axis_at(view, MIN(x[0], x[1]));
        double to = axis_at(view, MAX(x[0], x[1]));
        double busy = x[0] != x[1] ? 2 * busy_ms(track, from, to) : 0; /* both tracks show the same trace */
        struct stretch_sums sums = sum_stretch(&view->selection.panel);
        assert_close(sums.ms, busy, 1e-4);
        assert_close(sums.link_bytes, view->selection.panel.bytes, 100);
    }
    run_script(view, "escape");
    assert_null(view->selection.panel.table);
    end_view(view);
    free(trace);
}

/* A click on a memory row lists the tensors alive there, largest first, and they hold what the row shows. */
TEST(a_place_of_memory_lists_its_tensors)
{
    char *path = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    const struct trace *trace = view->tracks[0]->trace;
    run_script(view, "pagedown");
    for (uint32_t n = 0; n < 50; n++) {
        struct random4 random4 = random_words(19, STREAM_TEST, 0, n);
        struct box rows = places_of(view).rows;
        uint32_t device = random4.word[0] % 4;
        const struct view_row *row = view->layout.rows;
        while (row->kind != ROW_MEMORY || row->index != device)
            row++;
        char script[64];
        int x = rows.x + (int)(random4.word[1] % (unsigned)rows.w);
        snprintf(script, sizeof script, "click:%d,%d", x, row->y + row->height / 2);
        run_script(view, script);
        const struct memory_use *use = &trace->memory_use[device];
        const struct amount *held = amount_at(use, clock_of(view->tracks[0], axis_at(view, x)));
        assert_int_equal(view->selection.region.kind, PLACE);
        assert_int_equal(view->selection.region.device, device);
        assert_false(is_picked(&view->selection.task));
        assert_close(view->selection.panel.bytes, (double)use->sums[held - use->amounts].sum, 0);
    }
    run_script(view, "click:600,118"); /* selects a task in place of a region */
    assert_int_equal(view->selection.region.kind, NO_REGION);
    assert_true(is_picked(&view->selection.task));
    end_view(view);
    free(path);
}

/* Whatever is typed, for one trace or two, the lists of lit bars are those of the search and of the critical path. */
TEST(lit_bars_are_those_of_the_search_and_the_path)
{
    static const char *const scripts[] = {"/send",        "/backward", "c",        "pagedown", "/stage",
                                          "/f",           "pageup c",  "/nothing", "escape c", "click:600,57",
                                          "pagedown /ba", "escape"};
    char *a = trace_of_list("data/steps/1f1b.txt"), *b = lasting("%s.b", a);
    assert_int_equal(rename(a, b), 0);
    free(a);
    a = trace_of_list("data/steps/overlap-pays.txt");
    for (int n = 1; n <= 2; n++) {
        struct view *view = open_test_view(n == 1 ? b : a, n == 1 ? NULL : b, 1280, 720, 1);
        for (size_t i = 0; i < COUNT(scripts); i++) {
            run_script(view, scripts[i]);
            expect_lit(view);
        }
        end_view(view);
    }
    free(a);
}

/* ---- moving a task ----------------------------------------------------------------------------------------------- */

struct bar_drag { /* of the nth bar of a lane */
    const char *lane;
    size_t nth;
    const char *to_lane; /* to that bar of this lane, or beside it */
    size_t to_nth;
    int right; /* so many pixels right of it; less than 0: left of it */
};

/* The bar is taken up right of its middle. */
static void drag_bar(struct view *view, struct bar_drag drag)
{
    int y, to_y;
    int x = bar_at(view, drag.lane, drag.nth, &y) + 12;
    int to_x = bar_at(view, drag.to_lane, drag.to_nth, &to_y) + drag.right + 12;
    move_mouse(view, x, y);
    press_button(view, SHIFT_UP);
    move_mouse(view, (x + to_x) / 2, y); /* the way there changes nothing */
    carry_task(view);
    move_mouse(view, to_x, to_y);
    carry_task(view);
}

/* data/steps/broadcast.txt in step 2, zoomed out.  Its period is 9 ms. */
static struct view *open_broadcast(void)
{
    struct view *view = view_of_list("data/steps/broadcast.txt", 1280, 720, 1);
    run_script(view, "pagedown -");
    return view;
}

/* These two moves are those of test_board.c, by hand.  The first one brings the period down to 8 ms. */
static void send_to_a_last(struct view *view)
{
    drag_bar(view,
             (struct bar_drag){.lane = "b download", .nth = 0, .to_lane = "b download", .to_nth = 2, .right = 10});
}

static void send_from_c_first(struct view *view) /* and the second one to 6 ms */
{
    drag_bar(view,
             (struct bar_drag){.lane = "c download", .nth = 2, .to_lane = "c download", .to_nth = 0, .right = -10});
    release_button(view);
}

TEST(a_task_is_moved_when_it_is_dropped)
{
    struct view *view = open_broadcast();
    send_to_a_last(view);
    assert_close(period_of(view), 8, 0); /* is shown while it is dragged */
    press_key(view, "escape");
    assert_close(period_of(view), 9, 0);
    send_to_a_last(view);
    release_button(view);
    assert_close(period_of(view), 8, 0);
    assert_int_equal(count_moves(view->tracks[0]->board), 1);
    assert_string_equal(selected_name(view), "send"); /* it is the task that was dragged, where it is now */
    assert_int_equal(view->selection.task.copy.task, 15);
    end_view(view);
}

TEST(a_list_is_saved_with_its_moves_and_undone)
{
    struct view *view = open_broadcast();
    const char *moved = temp_path("moved.txt");
    view->save_as = moved;
    run_script(view, "s");
    char *before = read_text(moved);
    send_to_a_last(view);
    release_button(view);
    send_from_c_first(view);
    assert_close(period_of(view), 6, 0);
    run_script(view, "s");
    struct list *list = read_list(moved);
    gate_updates(list);
    finish_list(list);
    struct simulation *simulation = must_simulate(list, NULL);
    assert_close(1e3 * simulation->period, 6, 1e-9);
    free_simulation(simulation);
    free_list_and_machine(list);
    run_script(view, "u u s");
    char *after = read_text(moved);
    assert_string_equal(before, after);
    free(before);
    free(after);
    end_view(view);
}

TEST(a_refused_drag_says_what_is_in_the_way)
{
    struct view *view = open_broadcast();
    drag_bar(view, (struct bar_drag){.lane = "a compute", .nth = 1, .to_lane = "a compute", .to_nth = 0, .right = -10});
    release_button(view);
    assert_string_equal(view->message, "backward (layer 0) needs g.a, which forward (layer 0) writes");
    assert_int_equal(view->mouse.gesture.blocker.copy.task, 0);
    assert_true(has_sign(view, "in the way"));
    drag_bar(view, (struct bar_drag){.lane = "a compute", .nth = 1, .to_lane = "b compute", .to_nth = 0, .right = 0});
    release_button(view);
    assert_contains(view->message, "to b compute: it can only");
    assert_close(period_of(view), 9, 0);
    assert_int_equal(count_moves(view->tracks[0]->board), 0);
    end_view(view);
}

/* Task 15 is dragged from the lane b download, where it comes last after the first move, to the row above, which is
 * idle. */
TEST(a_task_is_dragged_to_an_idle_lane)
{
    struct view *view = open_broadcast();
    send_to_a_last(view);
    release_button(view);
    uint32_t send = 15, lane = view->tracks[0]->trace->tasks[send].lane;
    int y;
    int x = bar_at(view, "b download", 2, &y);
    move_mouse(view, x, y);
    press_button(view, SHIFT_UP);
    move_mouse(view, x + 2, row_of_lane(view, 0, lane - 1)->y + 5);
    release_button(view);
    assert_int_equal(view->selection.task.copy.task, send);
    assert_int_equal(view->tracks[0]->trace->tasks[send].lane, lane - 1);
    end_view(view);
}

/* Sums of bars by colour are those of the list as it was, so that none is left after a move. */
TEST(a_move_forgets_the_sums_of_bars)
{
    struct view *view = view_of_list("data/steps/broadcast.txt", 1280, 720, 1);
    run_script(view, "pagedown -");
    drag_bar(view,
             (struct bar_drag){.lane = "b download", .nth = 0, .to_lane = "b download", .to_nth = 2, .right = 10});
    release_button(view);
    look_at(view, 0, 1e11);
    fill_shares(view);
    assert_non_null(view->shares[0].lanes);
    press_key(view, "u");
    assert_null(view->shares[0].lanes);
    end_view(view);
}

/* ---- any input --------------------------------------------------------------------------------------------------- */

static void do_anything(struct view *view, struct random4 random4)
{
    const struct action *action = &actions[random4.word[1] % n_actions];
    char key[16];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(action->keys, " "), action->keys);
    bool moves = random4.word[0] % 3 == 0, uses_buttons = random4.word[0] % 3 == 1;
    bool presses = random4.word[1] % 2 == 1;
    enum shift_key shift = random4.word[2] % 2 == 1 ? SHIFT_DOWN : SHIFT_UP;
    if (moves)
        move_mouse(view, (int)(random4.word[1] % 2200) - 100, (int)(random4.word[2] % 800) - 20);
    else if (uses_buttons && presses)
        press_button(view, shift);
    else if (uses_buttons) {
        release_button(view);
        turn_wheel(view, (double)(random4.word[2] % 41) - 20, shift);
    } else if (strcmp(key, "q") != 0)
        press_key(view, key);
}

static void play(struct view *view)
{
    struct canvas *canvas = new_canvas(view->width, view->height);
    for (uint32_t n = 0; n < 600; n++) {
        do_anything(view, random_words(11, STREAM_TEST, (uint32_t)view->width, n));
        draw_view(view, canvas);
        assert_above(view->sight.to, view->sight.from);
    }
    free_canvas(canvas);
    end_view(view);
}

TEST(any_keys_in_any_order_draw_something)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    play(open_test_view(trace, NULL, 800, 400, 2));
    play(open_test_view(trace, trace, 1280, 720, 1));
    play(open_test_view(trace, NULL, 2000, 500, 2));
    struct view *view = view_of_list("data/steps/1f1b.txt", 1280, 720, 1);
    view->save_as = temp_path("any.txt");
    play(view);
    free(trace);
}

/* Times and steps from all over 64 and 32 bits: a damaged file, or a clock gone wrong. */
TEST(absurd_times_are_drawn_too)
{
    const char *path = temp_path("absurd.trace");
    struct trace_writer *writer = begin_trace(path);
    for (uint32_t n = 0; n < 150; n++) {
        struct random4 random4 = random_words(5, STREAM_TEST, 0, n), at = random_words(6, STREAM_TEST, 0, n);
        uint64_t start = ((uint64_t)at.word[0] << 32 | at.word[1]) >> random4.word[0] % 64;
        bool has_absurd_step = n % 3 == 0;
        bool has_absurd_end = n % 5 == 0;
        uint32_t step = has_absurd_step ? MAX(random4.word[1], 1) : n + 1;
        uint64_t end = start == UINT64_MAX || has_absurd_end ? UINT64_MAX : start + 1;
        uint64_t number = begin_trace_record(writer, step, n % TASKS, at.word[2]);
        end_trace_record(writer, number, start, end, 0);
    }
    close_trace_writer(writer);
    play(open_test_view(path, NULL, 1280, 720, 1));
    play(open_test_view(path, path, 900, 500, 1));
}

/* ---- the window -------------------------------------------------------------------------------------------------- */

#ifdef HAVE_SDL2
static void push_text(const char *text)
{
    SDL_Event e = {.type = SDL_TEXTINPUT};
    snprintf(e.text.text, sizeof e.text.text, "%s", text);
    SDL_PushEvent(&e);
}

TEST(the_window_hands_keys_and_mouse_on)
{
    setenv("SDL_VIDEODRIVER", "dummy", 1);
    assert_int_equal(SDL_Init(SDL_INIT_VIDEO), 0);
    SDL_Event down = {.type = SDL_KEYDOWN}, motion = {.type = SDL_MOUSEMOTION}, wheel = {.type = SDL_MOUSEWHEEL};
    down.key.keysym.sym = SDLK_PAGEDOWN;
    motion.motion.x = 640;
    motion.motion.y = 160;
    motion.motion.xrel = 1;
    wheel.wheel.y = 2;
    SDL_PushEvent(&down);
    push_text("k");
    SDL_PushEvent(&motion);
    SDL_PushEvent(&wheel);
    push_text("/");
    push_text("f");
    push_text(" ");
    push_text("q");
    down.key.keysym.sym = SDLK_RETURN;
    SDL_PushEvent(&down);
    push_text("q");

    char *trace = trace_of_list("data/steps/chain.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    show_window(view);
    assert_true(view->quit);
    assert_int_equal(view->sight.anchor, 2);
    assert_int_equal(view->colour, BY_LAYER);
    assert_string_equal(view->selection.search, "f q");
    assert_int_equal(view->mouse.x, 640);
    end_view(view);
    free(trace);
}

/* Pressed, moved and let go within one frame. */
TEST(a_task_is_dragged_in_the_window)
{
    setenv("SDL_VIDEODRIVER", "dummy", 1);
    assert_int_equal(SDL_Init(SDL_INIT_VIDEO), 0);
    struct view *view = view_of_list("data/steps/broadcast.txt", 1280, 720, 1);
    run_script(view, "pagedown -");
    int y, x = bar_at(view, "b download", 0, &y), to = bar_at(view, "b download", 2, &y) + 10;
    SDL_Event motion = {.type = SDL_MOUSEMOTION}, button = {.type = SDL_MOUSEBUTTONDOWN};
    motion.motion.x = x;
    motion.motion.y = y;
    motion.motion.xrel = 1;
    button.button.button = SDL_BUTTON_LEFT;
    SDL_PushEvent(&motion);
    SDL_PushEvent(&button);
    motion.motion.x = to;
    SDL_PushEvent(&motion);
    button.type = SDL_MOUSEBUTTONUP;
    SDL_PushEvent(&button);
    push_text("q");
    show_window(view);
    assert_int_equal(period_of(view), 8);
    end_view(view);
}
#else
TEST(the_window_hands_keys_and_mouse_on) { skip(); }
#endif
