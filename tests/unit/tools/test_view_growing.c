/* test_view_growing.c - a timeline of a trace that still grows, as `yard view` follows a trainer.
 *
 * It tests src/tools/view with follow.c of src/planning/trace.  It checks that the window shows what the file has by
 * then: the newest step that computes, bars up to the newest record, and what runs now.  It catches a step that is
 * shown although it only fetches ahead, and a bar that stays open.
 *
 * To see it fail: in track.c, take the newest step that does not compute: drop the ! before `computes`.
 *
 * The test writes the trace record by record.  What must be seen after each record follows from it.
 */
#include "tests/support/support_view.h"

#include <math.h>

/* ---- bit by bit -------------------------------------------------------------------------------------------------- */

enum { STEPS = 40 };

/* Each bar of the lane is one of its records, found from its task and step, and knows how busy the lane was before. */
static void expect_bars(const struct trace *trace, size_t lane)
{
    const struct bars *bars = &trace->bars[lane];
    uint64_t busy = 0;
    for (size_t i = 0; i < bars->n; i++) {
        const struct bar *bar = &bars->items[i];
        const struct trace_record *record = &trace->records[bar->record];
        assert_int_equal(trace->tasks[record->task].lane, lane);
        assert_int_equal(bar->start, record->start);
        assert_int_equal(bar->end, record->end);
        assert_int_equal(bar->busy, busy);
        if (i > 0)
            assert_at_most(bars->items[i - 1].start, record->start);
        assert_int_equal(find_run_from(trace, record->task, record->step, 0), bar->record);
        assert_int_equal(find_run_before(trace, record->task, record->step, SIZE_MAX), bar->record);
        assert_int_equal(find_run_before(trace, record->task, record->step, bar->record), NONE);
        busy += bar->end - bar->start;
    }
}

/* most_held() finds the largest amount of each block, as a search one by one does. */
static void expect_most_held(const struct memory_use *use)
{
    for (size_t i = 0; i < use->n; i += AMOUNTS_IN_BLOCK) {
        size_t end = MIN(i + AMOUNTS_IN_BLOCK, use->n);
        size_t most = i;
        for (size_t k = i; k < end; k++)
            if (use->sums[k].sum > use->sums[most].sum)
                most = k;
        assert_ptr_equal(most_held(use, i, end), &use->amounts[most]);
    }
}

/* When the last record of that step ended; 0: it has none. */
static uint64_t last_end(const struct trace *trace, uint32_t step)
{
    uint64_t end = 0;
    for (size_t i = 0; i < trace->n_records; i++)
        if (trace->records[i].step == step)
            end = MAX(end, trace->records[i].end);
    return end;
}

/* The steps rise, each ends with its last record, and one of them has a record, if there is any. */
static void expect_steps(const struct track *track)
{
    bool has_record = false;
    for (size_t i = 0; i < track->steps->n; i++) {
        const struct trace_step *step = &track->steps->items[i];
        uint64_t end = last_end(track->trace, step->step);
        if (i > 0)
            assert_above(step->step, step[-1].step);
        if (end > 0) {
            has_record = true;
            assert_int_equal(step->end, end);
        }
    }
    if (!has_record)
        assert_int_equal(track->trace->n_records, 0);
}

/* The trace's numbers of lanes, tasks and steps are those of its records, counted one by one. */
static void expect_whole(const struct track *track)
{
    const struct trace *trace = track->trace;
    size_t n_bars = 0;
    for (size_t lane = 0; lane < trace->header.n_lanes; lane++) {
        expect_bars(trace, lane);
        n_bars += trace->bars[lane].n;
    }
    assert_int_equal(n_bars, trace->n_records);
    expect_most_held(&trace->memory_use[0]);
    expect_steps(track);
}

/* A trace that grows in rounds.  The records before `begun` have begun.  Those before `ended` have ended, but for the
 * late lane, the last one: its records end a round later, so those before `late` have all ended. */
struct growth {
    struct trace_writer *writer;
    uint64_t clock;
    uint64_t number[STEPS * TASKS], start[STEPS * TASKS];
    size_t begun, ended, late;
};

static void begin_records(struct growth *growth, size_t n)
{
    size_t until = MIN(growth->begun + n, STEPS * TASKS);
    for (size_t i = growth->begun; i < until; i++) {
        growth->clock += 1000 + random_words(8, STREAM_TEST, 0, i).word[0] % 5000;
        growth->start[i] = growth->clock;
        growth->number[i] =
            begin_trace_record(growth->writer, (uint32_t)(i / TASKS) + 1, (uint32_t)(i % TASKS), growth->clock - 900);
    }
    growth->begun = until;
}

/* Ends what has begun in this round, and on the late lane what had begun before it.  The last round ends all. */
static void end_records(struct growth *growth)
{
    bool is_last_round = growth->begun == STEPS * TASKS;
    for (size_t i = growth->late; i < growth->begun; i++) {
        bool on_late_lane = i % LANES == LANES - 1;
        bool begun_before = i < growth->ended;
        if (begun_before == on_late_lane || (!begun_before && is_last_round))
            end_trace_record(growth->writer, growth->number[i], growth->start[i], growth->start[i] + 800, 0);
    }
    growth->late = growth->ended;
    growth->ended = growth->begun;
}

/* The bytes that are held at random times of the last millisecond, and at ends of records, where a life may end. */
static void expect_held_at_times(const struct trace *trace, uint64_t clock, uint32_t round)
{
    for (uint32_t i = 0; i < 20; i++)
        expect_held(trace, clock - random_words(9, STREAM_TEST, round, i).word[0] % 1000000);
    for (size_t i = 0; i < trace->n_records; i += 7)
        expect_held(trace, trace->records[i].end);
}

/* Ends of one lane come late, so records come in between older ones; what is selected stays selected while its record
 * is there. */
TEST(a_growing_trace_is_taken_bit_by_bit)
{
    const char *path = temp_path("grows.trace");
    struct growth growth = {.writer = begin_trace(path), .clock = now_ns()};
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    struct canvas *canvas = new_canvas(1280, 720);
    press_key(view, "l");
    run_script(view, "/task");
    draw_view(view, canvas); /* the trace has no record yet */
    for (uint32_t round = 0; growth.ended < STEPS * TASKS; round++) {
        begin_records(&growth, random_words(7, STREAM_TEST, 0, round).word[0] % 23);
        end_records(&growth);
        poll_view(view);
        draw_view(view, canvas);
        expect_whole(track);
        expect_lit(view);
        expect_held_at_times(track->trace, growth.clock, round);
        if (is_picked(&view->selection.task))
            assert_memory_equal(&track->trace->records[view->selection.task.record], &view->selection.task.copy,
                                sizeof view->selection.task.copy);
        /* NONE when there is none. */
        view->selection.task = pick_of(view, 0, (int64_t)track->trace->n_records - 1);
    }
    close_trace_writer(growth.writer);
    poll_view(view);
    assert_int_equal(trainer_life(view->tracks[0]->follower), LIFE_CLOSED);
    assert_false(is_followed(view));
    free_canvas(canvas);
    end_view(view);
}

/* A tensor seems to be held together with a later one until its last task is known to have ended before that.  Then
 * nothing is left of their sum, though other amounts of its block stay. */
TEST(a_peak_that_was_none_is_forgotten)
{
    static const uint32_t order[TASKS] = {0, 1, 2, 3, 4, 8, 5, 6, 7, 9, 10, 11}; /* x ends where y begins */
    const char *path = temp_path("late.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = 1000000, late = 0, start = 0;
    for (uint32_t step = 1; step <= 2; step++)
        for (size_t i = 0; i < TASKS; i++, clock += 1000) {
            uint64_t number = begin_trace_record(writer, step, order[i], clock - 10);
            if (step == 2 && order[i] == 8) {
                late = number;
                start = clock;
            } else {
                end_trace_record(writer, number, clock, clock + 1000, 0);
            }
        }
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    assert_int_equal(most_bytes_held(&view->tracks[0]->trace->memory_use[0]),
                     1600); /* weight, x and y: 100, 1000, 500 */
    end_trace_record(writer, late, start, start + 1000, 0);
    poll_view(view);
    assert_int_equal(most_bytes_held(&view->tracks[0]->trace->memory_use[0]), 1100); /* weight and x */
    close_trace_writer(writer);
    end_view(view);
}

/* ---- the newest steps -------------------------------------------------------------------------------------------- */

static struct view *follow_view(const char *path)
{
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    press_key(view, "l");
    return view;
}

/* Steps of 12 to 20 us after a slow first one: the scale is found once, and then only time moves. */
TEST(following_keeps_its_scale_and_stands_still_under_the_mouse)
{
    const char *path = temp_path("even.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = write_step(writer, 1, now_ns(), 900000);
    struct view *view = follow_view(path);
    double length = 0, from = 0;
    for (uint32_t step = 2; step < 40; step++) {
        clock = write_step(writer, step, clock, 1000 + random_words(4, STREAM_TEST, 0, step).word[0] % 700);
        bool still = step % 8 >= 6; /* the mouse stays on the rows for two steps of eight */
        move_mouse(view, still ? 600 : OFF_WINDOW, still ? 200 : OFF_WINDOW);
        assert_int_equal(is_frozen(view), still);
        double edge = axis_at(view, 600);
        uint64_t under = clock_of(view->tracks[0], edge);
        poll_view(view);
        if (still) {
            assert_close(view->sight.from, from, 0);
            assert_int_equal(clock_of(view->tracks[0], axis_at(view, 600)), under);
        } else {
            if (step >= 5)
                assert_close(view->sight.to - view->sight.from, length, 1e-3);
            assert_int_equal(view->sight.anchor, step);
            double end = axis_of(view->tracks[0], view->tracks[0]->now);
            assert_above(end, view->sight.from);
            assert_below(end, view->sight.to);
        }
        length = view->sight.to - view->sight.from;
        from = view->sight.from;
    }
    assert_above(length, 2 * 12e3); /* about three steps */
    assert_below(length, 5 * 20e3);
    close_trace_writer(writer);
    end_view(view);
}

TEST(what_was_asked_for_is_shown_though_the_mouse_is_on_a_row)
{
    const char *path = temp_path("asked.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = write_step(writer, 1, now_ns(), 1000);
    struct view *view = follow_view(path);
    move_mouse(view, 600, 200);
    view->sight.asked = true;
    write_step(writer, 2, clock, 1000);
    poll_view(view);
    assert_int_equal(view->selection.task.copy.step, 2);
    close_trace_writer(writer);
    end_view(view);
}

/* A run that has ended is not followed, so the first line stays as it is. */
TEST(nothing_follows_a_run_that_has_ended)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    struct canvas *before = new_picture(view);
    run_script(view, "l");
    struct canvas *after = new_picture(view);
    size_t bytes = (size_t)(view->width * places_of(view).header.h) * sizeof *before->pixels;
    assert_memory_equal(before->pixels, after->pixels, bytes);
    free_canvas(before);
    free_canvas(after);
    end_view(view);
    free(trace);
}

/* The length of the gap before the task counts no second in which the trainer was held. */
static void expect_short_gap(const struct track *track, int64_t record)
{
    char *text = describe_record(track, (size_t)record);
    if (strstr(text, " s for") || strstr(text, " for 1.00"))
        test_failed("the gap has the pause in it: %s\n", text);
    free(text);
}

/* The record's bar is in the right half of the rows, and large enough to be seen. */
static void expect_bar_in_right_half(const struct view *view, const struct trace_record *record)
{
    const struct track *track = view->tracks[0];
    double from = x_of(view, axis_of(track, record->start));
    double to = x_of(view, axis_of(track, record->end));
    struct box rows = places_of(view).rows;
    assert_above(from, rows.x + rows.w / 2);
    assert_below(to, rows.x + rows.w);
    assert_above(to - from, 10);
}

/* Seconds go by between tasks, and nobody sees them: axis, steps, window.  The ways between clock and axis agree. */
TEST(time_in_which_the_trainer_was_held_is_cut_out)
{
    const char *path = temp_path("held.trace");
    /* Far less than the machine has been running: its clock begins at 0. */
    uint64_t second = UINT64_C(1000000000);
    uint64_t zero = now_ns() - 100 * second;
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = write_step(writer, 1, zero, 1000);
    uint64_t held = 0;
    uint64_t ran = TASKS * 1000;
    struct view *view = follow_view(path);
    const struct track *track = view->tracks[0];
    view->sight.asked = true;
    for (uint32_t i = 0; i < 3 * TASKS; i++) {
        show_trainer_alive(writer, 1 + i % TASKS);
        clock += second + 10;
        held += second;
        uint64_t number = begin_trace_record(writer, 2 + i / TASKS, i % TASKS, clock - 10);
        bool is_seen_running = i % 3 == 0;
        if (is_seen_running)
            poll_view(view);
        end_trace_record(writer, number, clock, clock + 1000, 0);
        clock += 1000;
        ran += 1010;
        poll_view(view);
        assert_int_equal(track->trace->n_pauses, i + 1);
        assert_int_equal(paused_before(track->trace, clock), held);
        assert_close(axis_of(track, clock) - axis_of(track, zero), (double)ran, 1);
        assert_int_equal(view->selection.task.copy.start, clock - 1000); /* the task that has just run */
        expect_short_gap(track, view->selection.task.record);
        expect_bar_in_right_half(view, &view->selection.task.copy);
    }
    for (size_t i = 0; i + 1 < track->steps->n; i++)
        assert_below(step_ns(track, &track->steps->items[i]), TASKS * 1010 + 1);
    for (uint32_t i = 0; i < 1000; i++) {
        double axis = axis_of(track, zero) + (double)(random_words(2, STREAM_TEST, 0, i).word[0] % (ran - 1));
        assert_close(axis_of(track, clock_of(track, axis)), axis, 1.5);
    }
    expect_whole(track);
    close_trace_writer(writer);
    end_view(view);
}

enum { NUMBERS = 18 }; /* pixels: the height of the ruler's upper part, where the numbers of steps are */

/* How many pixels of that part have this colour. */
static int count_inked(struct view *view, uint32_t colour)
{
    struct canvas *canvas = new_picture(view);
    const struct box box = places_of(view).ruler;
    int inked = 0;
    for (int y = box.y; y < box.y + NUMBERS; y++)
        for (int x = box.x; x < box.x + box.w; x++)
            if (canvas->pixels[y * canvas->width + x] == colour)
                inked++;
    free_canvas(canvas);
    return inked;
}

/* The next step's batch is fetched while this one computes: that does not end it. */
TEST(a_step_goes_on_while_the_next_one_is_fetched)
{
    const char *path = temp_path("ahead.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = write_step(writer, 1, now_ns() - 1000000, 1000), begin = clock;
    for (uint32_t i = 0; i < TASKS; i += LANES) { /* on the compute lane */
        end_trace_record(writer, begin_trace_record(writer, 2, i, clock), clock, clock + 2000, 0);
        clock += 2000;
    }
    end_trace_record(writer, begin_trace_record(writer, 3, 1, begin), begin + 500, begin + 600,
                     0); /* on the lane for uploads */
    struct view *view = follow_view(path);
    const struct track *track = view->tracks[0];
    assert_int_equal(newest_step(track)->step, 2);
    assert_close(step_ns(track, newest_step(track)), (double)(clock - begin), 0);
    begin_trace_record(writer, 2, 3, clock);
    poll_view(view);
    assert_close(step_ns(track, newest_step(track)), (double)(track->now - begin), 0); /* what has gone by */
    assert_false(is_unfinished(track, find_step(track, 1)));
    assert_true(is_unfinished(track, find_step(track, 2)));
    char *said = describe_step(view);
    assert_contains(said, "step 2 has not ended");
    free(said);
    view->sight.from =
        view->sight.to - 1.02 * (view->sight.to - axis_of(track, find_step(track, 2)->work)); /* its number stays at */
    for (int zoom = 0; zoom < 40; zoom++) { /* the left edge, in the middle and at the right edge */
        assert_above(count_inked(view, ACCENT), 0);
        view->sight.from -= 0.3 * (view->sight.to - view->sight.from);
    }
    close_trace_writer(writer);
    poll_view(view);
    assert_false(is_unfinished(track, find_step(track, 2)));
    end_view(view);
}

/* ---- other lists ------------------------------------------------------------------------------------------------- */

/* A run of another list that is put into a trace by hand. */
static void put_list(const struct view *view, uint32_t list, const char *name, uint64_t begin)
{
    struct trace *trace = (struct trace *)view->tracks[0]->trace;
    snprintf(trace->header.list[list], sizeof trace->header.list[list], "%s", name);
    struct trace_step_list *steps = &trace->steps[list];
    GROW(steps->items, steps->cap, 1);
    steps->items[0] = (struct trace_step){.step = 1, .start = begin, .end = begin + 8000, .work = begin};
    steps->n = 1;
}

static void expect_same_picture(const struct canvas *expected, struct view *view)
{
    struct canvas *canvas = new_picture(view);
    assert_memory_equal(canvas->pixels, expected->pixels,
                        (size_t)canvas->width * (size_t)canvas->height * sizeof *canvas->pixels);
    free_canvas(canvas);
}

/* Far out an evaluation is a span of its own, and spans of steps go on after it. */
TEST(an_evaluation_is_a_span_of_its_own)
{
    enum { EVEN_STEPS = 12, BEFORE = 6, STEP_NS = 12 * 1000 };
    const char *path = temp_path("spans.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = now_ns(), eval = 0;
    for (uint32_t step = 1; step <= EVEN_STEPS; step++) {
        clock = write_step(writer, step, clock, 1000);
        if (step == BEFORE) {
            eval = clock + 1000;
            clock += 5 * STEP_NS;
        }
    }
    close_trace_writer(writer);
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    const struct trace_step *steps = track->steps->items;
    double length = places_of(view).rows.w / 4.0 * STEP_NS; /* four pixels a step */
    put_list(view, 1, "eval", eval);
    look_at(view, -length / 2, length / 2);
    fill_shares(view);
    const struct shares *shares = &view->shares[0];
    const uint64_t expected[] = {steps[0].work, steps[3].work, eval, steps[6].work, steps[7].work, steps[11].work};
    assert_int_equal(shares->n_edges, COUNT(expected) + 1);
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_int_equal(shares->edges[i], expected[i]);
    assert_int_equal(shares->edges[COUNT(expected)], track->last);
    look_at(view, -50 * length, 50 * length); /* it is narrower than a pixel */
    fill_shares(view);
    for (size_t i = 0; i < shares->n_edges; i++)
        assert_int_not_equal(shares->edges[i], eval);
    end_view(view);
}

/* Where another list begins to run, its name is on the ruler, right of that time: nothing else changes.  If two lists
 * begin after one step, the first is named. */
TEST(another_list_is_named_where_it_begins)
{
    const char *path = temp_path("two-lists.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = 1000000;
    for (uint32_t step = 1; step < 4; step++)
        clock = write_step(writer, step, clock, 1000);
    close_trace_writer(writer);
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    double length = view->sight.to - view->sight.from;
    look_at(view, view->sight.from, view->sight.to + length);
    struct canvas *without = new_picture(view);
    put_list(view, 1, "eval", clock + 1000);
    struct canvas *with = new_picture(view);
    const struct box ruler = places_of(view).ruler;
    int begins = (int)x_of(view, axis_of(view->tracks[0], clock + 1000));
    int changed = 0;
    for (int y = 0; y < with->height; y++)
        for (int x = 0; x < with->width; x++) {
            if (with->pixels[y * with->width + x] == without->pixels[y * with->width + x])
                continue;
            changed++;
            assert_at_least(y, ruler.y);
            assert_below(y, ruler.y + NUMBERS);
            assert_at_least(x, begins);
        }
    assert_above(changed, 0);
    put_list(view, 2, "sample", clock + 12000);
    expect_same_picture(with, view);
    put_list(view, 2, "eval", clock + 1000);
    put_list(view, 1, "sample", clock + 12000);
    expect_same_picture(with, view);
    free_canvas(without);
    free_canvas(with);
    end_view(view);
}

/* ---- numbers of steps -------------------------------------------------------------------------------------------- */

/* Is the number of this step on the ruler?  Then it changes its colour when the step becomes the anchor.  Smooth
 * letters may have no pixel of just that colour. */
static bool shows_number(struct view *view, uint32_t step)
{
    const struct box ruler = places_of(view).ruler;
    view->sight.anchor = 0; /* no step */
    struct canvas *before = new_picture(view);
    view->sight.anchor = step;
    struct canvas *after = new_picture(view);
    bool changes = false;
    for (int y = ruler.y; y < ruler.y + NUMBERS; y++) {
        size_t row = (size_t)(y * after->width + ruler.x);
        changes |= memcmp(after->pixels + row, before->pixels + row, (size_t)ruler.w * sizeof *after->pixels) != 0;
    }
    free_canvas(before);
    free_canvas(after);
    return changes;
}

/* However many steps share the ruler, the number of the newest one is on it. */
TEST(the_newest_step_has_its_number)
{
    for (uint32_t steps = 1; steps <= 16; steps++) {
        const char *path = temp_path("numbers.trace");
        struct trace_writer *writer = begin_trace(path);
        uint64_t clock = 1000000;
        for (uint32_t step = 1; step <= steps; step++)
            clock = write_step(writer, step, clock, 1000);
        close_trace_writer(writer);
        for (int width = 640; width <= 1280; width += 320) {
            struct view *view = open_test_view(path, NULL, width, 720, 1);
            const struct track *track = view->tracks[0];
            look_at(view, axis_of(track, 1000000), axis_of(track, clock));
            if (!shows_number(view, steps))
                test_failed("the number of step %u is not on a ruler of %d pixels\n", steps, width);
            end_view(view);
        }
    }
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* The loss of a report's record is that of its step, and a trace without it has no curve. */
TEST(losses_are_a_curve_where_the_trace_tells_them)
{
    const char *path = temp_path("losses.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = write_step(writer, 1, 1000000, 1000);
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    assert_true(isnan(last_loss(track)));
    assert_false(has_sign(view, "loss"));
    end_view(view);
    for (uint32_t step = 2; step < 13; step++) {
        clock = write_step(writer, step, clock, 1000);
        uint64_t number = begin_trace_record(writer, step, TASKS, clock);
        tell_record_loss(writer, number, step == 12 ? NAN : 10.0 / step);
        end_trace_record(writer, number, clock, clock + 1, 0);
    }
    close_trace_writer(writer);
    view = open_test_view(path, NULL, 1280, 720, 1);
    track = view->tracks[0];
    for (uint32_t step = 2; step < 12; step++)
        assert_close(step_loss(track, find_step(track, step)), 10.0 / step, 1e-6);
    assert_true(isnan(step_loss(track, find_step(track, 1))));
    assert_close(last_loss(track), 10.0 / 11, 1e-6); /* step 12 has none that is a number */
    assert_true(has_sign(view, "loss"));
    struct canvas *canvas = new_picture(view);
    const struct box box = places_of(view).overview;
    int last = box.y - 1; /* the loss falls: from left to right the curve goes down */
    for (int x = box.x + box.w / 8; x < box.x + box.w * 7 / 8; x += 5) {
        int y = box.y;
        while (y < box.y + box.h && canvas->pixels[y * canvas->width + x] != LOSS)
            y++;
        assert_below(y, box.y + box.h);
        assert_at_least(y, last);
        last = y;
    }
    free_canvas(canvas);
    end_view(view);
}
