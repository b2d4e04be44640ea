/* test_view_spans.c - a timeline from far out, where steps are too narrow to be seen and whole steps are drawn
 * together.
 *
 * It tests shares.c and bars.c in src/tools/view.  The test counts one by one how long bars last by colour, and all its
 * steps are alike, so it knows where spans begin.  It catches sums that a late bar has made wrong, a span that is
 * missing at the left edge, a bar that is lost where it reaches into a span, and a long bar that is drawn as a span.
 *
 * To see it fail: in is_valid() of shares.c, write || in place of &&.
 */
#include "tests/support/support_view.h"
#include "tools/view/brush.h"

enum { EVEN_STEPS = 12, TASK_NS = 1000, STEP_NS = TASKS * TASK_NS };

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* How long bars of a lane last by colour is what is counted one by one. */
static void expect_shares(const struct view *view, uint32_t lane)
{
    const struct track *track = view->tracks[0];
    const struct bars *bars = &track->trace->bars[lane];
    for (size_t end = 0; end <= bars->n; end += 5)
        for (size_t i = 0; i <= end; i += 3) {
            size_t block = end - i < FEW_BARS ? 1 : BARS_IN_BLOCK;
            uint64_t ns[GROUPS], counted[GROUPS] = {0};
            sum_shares(view, 0, lane, i, end, ns);
            for (size_t k = i / block * block; k < end / block * block; k++)
                counted[colour_group(view, track, bars->items[k].task)] += bars->items[k].end - bars->items[k].start;
            assert_memory_equal(ns, counted, sizeof ns);
        }
}

/* Steps are narrow, and colours stand for layers.  A task of step 2 begins when step 1 has ended, and lasts late_ns.
 * Its end comes late, when there are sums of the bars behind it already.  more_ns: other tasks last up to so much
 * longer than TASK_NS. */
static void expect_shares_with_a_late_end(uint64_t late_ns, uint64_t more_ns)
{
    enum { LATE_TASK = 3 };
    const char *path = temp_path("shares.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = write_step(writer, 1, now_ns(), TASK_NS);
    uint64_t late = clock, number = begin_trace_record(writer, 2, LATE_TASK, late);
    clock += late_ns;
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    run_script(view, "k");
    look_at(view, 0, 1e9);
    for (uint32_t step = 3; step < 60; step++) {
        if (step == 14)
            end_trace_record(writer, number, late, late + late_ns, 0);
        clock =
            write_step(writer, step, clock, TASK_NS + random_words(5, STREAM_TEST, 0, step).word[0] % (more_ns + 1));
        poll_view(view);
        assert_true(is_far_out(view, view->tracks[0]));
        fill_shares(view);
        for (uint32_t lane = 0; lane < LANES; lane++)
            expect_shares(view, lane);
    }
    close_trace_writer(writer);
    end_view(view);
}

TEST(colours_have_their_shares_while_a_trace_grows) { expect_shares_with_a_late_end(TASK_NS / 2, 700); }

/* The last bar of a block is another one then, but all bars before it last as long together as they did. */
TEST(a_late_bar_as_long_as_others_changes_the_shares) { expect_shares_with_a_late_end(TASK_NS, 0); }

/* ---- where spans begin ------------------------------------------------------------------------------------------- */

/* Looks at so much time that a step is four pixels wide, so that spans begin with steps 1, 4, 8 and 12.  from: where
 * the left edge is, in nanoseconds from where step 1 begins. */
static void look_at_spans(struct view *view, double from)
{
    const struct track *track = view->tracks[0];
    double length = places_of(view).rows.w / 4.0 * STEP_NS;
    from += axis_of(track, track->steps->items[0].work);
    look_at(view, from, from + length);
}

static struct view *view_of_even_steps(void)
{
    const char *path = temp_path("spans.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = now_ns();
    for (uint32_t step = 1; step <= EVEN_STEPS; step++)
        clock = write_step(writer, step, clock, TASK_NS);
    close_trace_writer(writer);
    return open_test_view(path, NULL, 1280, 720, 1);
}

/* Spans begin at the same steps wherever the view is moved, and cover the whole trace. */
TEST(spans_do_not_move_with_the_view)
{
    struct view *view = view_of_even_steps();
    const struct track *track = view->tracks[0];
    static const size_t first_step[] = {1, 4, 8, 12}; /* of each span */
    for (int moved = 0; moved < 20; moved++) {
        look_at_spans(view, moved * 777.0 - 100.0 * STEP_NS);
        fill_shares(view);
        const struct shares *shares = &view->shares[0];
        assert_int_equal(shares->n_edges, COUNT(first_step) + 1); /* the last edge is the end of the trace */
        for (size_t i = 0; i < COUNT(first_step); i++)
            assert_int_equal(shares->edges[i], track->steps->items[first_step[i] - 1].work);
        assert_int_equal(shares->edges[COUNT(first_step)], track->last);
    }
    look_at(view, 0, 10.0 * STEP_NS); /* steps are wide in it */
    assert_false(is_far_out(view, view->tracks[0]));
    end_view(view);
}

/* The first span is the one that goes on at the left edge: it begins there or before, and the next one behind it. */
TEST(a_span_that_begins_before_what_is_in_sight_is_there)
{
    struct view *view = view_of_even_steps();
    for (double at = 0.1; at < EVEN_STEPS; at += 0.3) {
        look_at_spans(view, at * STEP_NS);
        fill_shares(view);
        const struct shares *shares = &view->shares[0];
        uint64_t left = clock_of(view->tracks[0], view->sight.from);
        assert_at_least(shares->n_edges, 2);
        assert_at_most(shares->edges[0], left);
        assert_above(shares->edges[1], left);
    }
    end_view(view);
}

/* Even steps whose tasks run on the compute lane alone, but for one task on the lane for uploads.  It begins in step
 * `step`, at so many nanoseconds from where that begins, and lasts `ns`. */
static struct view *view_of_an_upload(uint32_t step, int64_t from, uint64_t ns)
{
    enum { UPLOAD = 1 };
    const char *path = temp_path("upload.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t begin = now_ns();
    for (uint32_t i = 0; i < EVEN_STEPS * TASKS; i += LANES) {
        uint64_t start = begin + i * TASK_NS;
        end_trace_record(writer, begin_trace_record(writer, 1 + i / TASKS, i % TASKS, start), start,
                         start + LANES * TASK_NS, 0);
    }
    uint64_t start = begin + (step - 1) * STEP_NS + (uint64_t)from;
    end_trace_record(writer, begin_trace_record(writer, step, UPLOAD, start), start, start + ns, 0);
    close_trace_writer(writer);
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    look_at_spans(view, -100.0 * STEP_NS);
    return view;
}

TEST(the_first_span_has_what_runs_before_step_1)
{
    struct view *view = view_of_an_upload(1, -TASK_NS, TASK_NS);
    fill_shares(view);
    assert_int_equal(view->shares[0].edges[0], view->tracks[0]->steps->items[0].work - TASK_NS);
    end_view(view);
}

/* ---- what is drawn ----------------------------------------------------------------------------------------------- */

/* How high the lane for uploads is drawn in the middle of a step. */
static int height_in_step(const struct view *view, const struct canvas *canvas, uint32_t step)
{
    const struct track *track = view->tracks[0];
    const struct view_row *row = row_of_lane(view, 0, 1);
    int x = pixel_of(view, axis_of(track, find_step(track, step)->work) + STEP_NS / 2.0);
    int height = 0;
    for (int y = row->y; y < row->y + row->height; y++)
        if (canvas->pixels[y * canvas->width + x] != PAPER)
            height++;
    return height;
}

/* Half of a short bar is in the span of steps 1 to 3, and half in that of steps 4 to 7, where no other bar begins. */
TEST(a_bar_that_reaches_into_a_span_is_drawn_in_it)
{
    struct view *view = view_of_an_upload(3, STEP_NS * 3 / 4, STEP_NS / 2);
    struct canvas *canvas = new_picture(view);
    assert_above(height_in_step(view, canvas, 2), 0);
    assert_above(height_in_step(view, canvas, 6), 0);
    assert_int_equal(height_in_step(view, canvas, 10), 0);
    free_canvas(canvas);
    end_view(view);
}

/* A bar of steps 4 and 5 is wide enough to be seen.  Their span, which has steps 6 and 7 too, is half as high. */
TEST(a_wide_bar_is_drawn_over_its_span)
{
    struct view *view = view_of_an_upload(4, 0, 2 * STEP_NS);
    struct canvas *canvas = new_picture(view);
    int bar = height_in_step(view, canvas, 5), span = height_in_step(view, canvas, 7);
    assert_above(span, 0);
    assert_at_most(abs(bar - 2 * span), 1);
    assert_int_equal(height_in_step(view, canvas, 10), 0);
    free_canvas(canvas);
    end_view(view);
}
