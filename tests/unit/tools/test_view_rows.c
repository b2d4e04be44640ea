/* test_view_rows.c - the rows of the timeline, their heights and names, and two traces in one window.
 *
 * It tests layout.c, track.c and bars.c of src/tools/view.  It checks that rows fill the window and none is cut, that a
 * row's numbers are those of its bars and bytes, and that two traces always fit.  It catches a lane without a row, a
 * row outside the window, and busy time that is counted twice.
 *
 * To see it fail: in layout.c, count the lanes of the other devices: == in place of != beside device_index.
 *
 * Expected sizes follow from the window's, and times from traces that the test writes.
 */
#include "planning/lists/lists.h"
#include "planning/predict/predict.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_view.h"

#include <math.h>

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* A click on its name makes the lanes of a device thin and leaves its memory out; another click brings all back. */
TEST(devices_fold)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    size_t rows = view->layout.n_rows;
    run_script(view, "click:20,97");
    assert_int_equal(view->layout.n_rows, rows - 1); /* without the memory of the first device */
    assert_below(view->layout.rows[1].height, GLYPH_HEIGHT);
    assert_int_equal(view->layout.rows[3].kind, ROW_DEVICE);
    run_script(view, "click:600,97");
    assert_int_equal(view->layout.n_rows, rows);
    assert_above(view->layout.rows[1].height, GLYPH_HEIGHT);
    run_script(view, "x");
    assert_int_equal(view->layout.n_rows, rows - 4); /* 1f1b has four devices: all fold */
    run_script(view, "n x");
    assert_int_equal(view->layout.n_rows, rows);
    end_view(view);
    free(trace);
}

/* A list of so many devices, each with three lanes and memory. */
static char *trace_of_devices(int n)
{
    char *text = copy_string("");
    for (int i = 0; i < n; i++) {
        append_text(&text, "device d%d memory=1G\ntensor w%d d%d 4M work keep\n", i, i, i);
        append_text(&text, "task forward d%d.compute 1ms writes=w%d\n", i, i);
        append_text(&text, "task up d%d.upload 1ms reads=w%d\n", i, i);
        append_text(&text, "task down d%d.download 1ms reads=w%d\n", i, i);
    }
    char *trace = trace_of_list(write_file("devices.txt", text, strlen(text)));
    free(text);
    return trace;
}

static size_t rows_in_sight(const struct view *view)
{
    size_t n = 0;
    for (size_t i = 0; i < view->layout.n_rows; i++)
        if (is_in_sight(view, &view->layout.rows[i]))
            n++;
    return n;
}

/* One device fills the largest window, six fit into the smallest that people have, and more can be scrolled: no row
 * is ever cut.  A picture has all of them at their best height. */
TEST(rows_fill_the_window_and_are_never_cut)
{
    static const int sizes[][3] = {{1280, 720, 1}, {1920, 1080, 1}, {1920, 1080, 2}, {3840, 2160, 2}};
    for (int devices = 1; devices <= 20; devices++) {
        char *trace = trace_of_devices(devices);
        for (size_t i = 0; i < COUNT(sizes); i++) {
            struct view *view = open_test_view(trace, NULL, sizes[i][0], sizes[i][1], sizes[i][2]);
            const struct box rows = places_of(view).rows;
            if (view->layout.good_height <= rows.h || (devices == 6 && i != 2)) {
                assert_int_equal(rows_in_sight(view), view->layout.n_rows);
                assert_at_most(rows.h - view->layout.rows_height, (int)view->layout.n_rows);
            }
            for (int down = 0; down < 3000; down += 60) { /* each row comes into sight, from top to bottom */
                const struct view_row *last = &view->layout.rows[view->layout.n_rows - 1];
                run_script(view, "down");
                assert_above(rows_in_sight(view), 0);
                if (down >= 2900)
                    assert_true(is_in_sight(view, last));
            }
            view->still = true;
            choose_height(view);
            assert_int_equal(rows_in_sight(view), view->layout.n_rows);
            assert_int_equal(view->layout.rows_height, view->layout.good_height);
            char *said = describe_step(view);
            assert_null(strstr(said, "keys"));
            free(said);
            end_view(view);
        }
        free(trace);
    }
}

/* The bar at the right edge has the share of the height that the rows in sight have of all rows, and lies where they
 * do.  If all rows are in sight there is none. */
TEST(a_bar_shows_which_rows_are_in_sight)
{
    for (int devices = 1; devices <= 20; devices++) {
        char *trace = trace_of_devices(devices);
        struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
        for (int down = 0; down < 400; down += 60) {
            struct canvas *canvas = new_picture(view);
            const struct box rows = places_of(view).rows;
            double all = view->layout.rows_height;
            int bar = 0, top = 0;    /* the bar's height, and where it begins below the upper edge of the rows */
            int seen = 0, above = 0; /* the height of the rows in sight, and of those above them */
            for (int y = rows.y + rows.h - 1; y >= rows.y; y--) {
                if (canvas->pixels[y * canvas->width + rows.x + rows.w + 6] != SOFT)
                    continue;
                bar++;
                top = y - rows.y;
            }
            for (size_t i = 0; i < view->layout.n_rows; i++) {
                const struct view_row *view_row = &view->layout.rows[i];
                if (is_in_sight(view, view_row))
                    seen += view_row->height;
                if (view_row->y < rows.y)
                    above += view_row->height;
            }
            bool hides = rows_in_sight(view) < view->layout.n_rows;
            assert_int_equal(hides, (bar > 0));
            if (hides) {
                assert_close(bar / (double)rows.h, seen / all, 0.01);
                assert_close(top / (double)rows.h, above / all, 0.01);
            }
            free_canvas(canvas);
            run_script(view, "down");
        }
        end_view(view);
        free(trace);
    }
}

/* A lane of a step file to which tasks can be moved has a low row.  Rows stay where they are while a task is dragged
 * there, and when the button is let go the row becomes as high as others. */
TEST(an_empty_lane_is_low_until_it_has_a_task)
{
    struct view *view = view_of_list("data/steps/broadcast.txt", 1280, 720, 1);
    run_script(view, "pagedown -");
    int y;
    int height[2], place[2];
    int x = bar_at(view, "b download", 0, &y);
    uint32_t upload = 0;
    while (strcmp(view->tracks[0]->trace->lanes[upload].name, "b upload") != 0)
        upload++;
    const struct view_row *row = row_of_lane(view, 0, upload);
    assert_int_equal(row->height, 12); /* the height of an empty row: of_empty in layout.c */
    assert_at_least(row[1].height, 22);
    int to = row->y + row->height / 2;
    run_script(view, lasting("hold:%d,%d,%d,%d", x, y, x + 4, to));
    for (int i = 0; i < 2; i++) {
        free_canvas(new_picture(view)); /* the task is carried */
        row = row_of_lane(view, 0, upload);
        height[i] = row->height;
        place[i] = row->y;
    }
    assert_int_equal(view->tracks[0]->trace->tasks[view->selection.task.copy.task].lane, upload);
    assert_int_equal(height[0], 12);
    assert_int_equal(height[1], 12);
    assert_int_equal(place[1], place[0]);
    assert_at_least(to, place[1]);
    assert_below(to, place[1] + 12);
    release_button(view);
    assert_at_least(row_of_lane(view, 0, upload)->height, 22);
    end_view(view);
}

/* In the lowest window that there is, rows have half of the height: it has no steps above them, and a legend of two
 * lines at most.  A picture of the height that its rows want is not low, however low it is. */
TEST(a_low_window_is_for_its_rows)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, LEAST_WIDTH, LEAST_HEIGHT, 1);
    assert_int_equal(places_of(view).overview.h, 0);
    assert_at_most(view->layout.legend_lines, 2);
    assert_at_least(places_of(view).rows.h, LEAST_HEIGHT / 2);
    end_view(view);
    free(trace);
    trace = trace_of_devices(1);
    view = open_test_view(trace, NULL, LEAST_WIDTH, LEAST_HEIGHT, 1);
    assert_above(places_of(view).overview.h, 0); /* its rows have all the room that they want */
    view->still = true;
    choose_height(view);
    assert_below(view->height, LEAST_HEIGHT);
    assert_above(places_of(view).overview.h, 0);
    end_view(view);
    free(trace);
}

/* A device that holds less than a hundredth of what the largest one does has no row of memory. */
TEST(a_device_with_little_memory_has_no_row_of_it)
{
    static const struct {
        int kilobytes;
        bool has_row;
    } small[] = {{6, false}, {9, false}, {11, true}};
    for (size_t i = 0; i < COUNT(small); i++) {
        char *text = format_string("device large memory=1G\ndevice small memory=1G\n"
                                   "tensor w large 1024000 work keep\ntensor v small %d work keep\n"
                                   "task a large.compute 1ms reads=w\ntask b small.compute 1ms reads=v\n",
                                   small[i].kilobytes * 1024);
        char *trace = trace_of_list(write_file("little.txt", text, strlen(text)));
        struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
        const struct view_row *last = &view->layout.rows[view->layout.n_rows - 1];
        assert_int_equal(last->kind == ROW_MEMORY, small[i].has_row);
        assert_int_equal(view->layout.rows[2].kind, ROW_MEMORY); /* that of the large device */
        end_view(view);
        free(trace);
        free(text);
    }
}

/* A lane is named by what all its copies are for, with a number if it is the second; a mixed lane keeps its name. */
TEST(lanes_are_named_by_what_they_do)
{
    char *path = trace_of_list("data/steps/1f1b.txt");
    struct trace *trace = read_trace(path);
    lane_purpose *purpose = new_lane_purposes(trace);
    for (uint32_t i = 0; i < trace->header.n_lanes; i++) {
        const char *name = trace->lanes[i].name;
        if (strcmp(name, "stage1 download") == 0)
            assert_string_equal(purpose[i], "stage1 send");
        else if (strcmp(name, "stage1 download1") == 0)
            assert_string_equal(purpose[i], "stage1 send 2");
        else if (strstr(name, "compute"))
            assert_string_equal(purpose[i], name);
    }
    free(purpose);
    uint32_t first = 0; /* the first of its copies, which is made to be for something else */
    while (strcmp(trace->lanes[trace->tasks[first].lane].name, "stage1 download") != 0)
        first++;
    trace->tasks[first].role = ROLE_BROADCAST;
    purpose = new_lane_purposes(trace);
    assert_string_equal(purpose[trace->tasks[first].lane], "stage1 download");
    free(purpose);
    free_trace(trace);
    free(path);
}

/* ---- two traces -------------------------------------------------------------------------------------------------- */

/* Two traces fit, whatever they are and however small the window is, folded or not. */
TEST(two_traces_always_fit)
{
    static const char *const lists[] = {"chain", "1f1b", "pipelines", "broadcast", "zero-bubble"};
    for (uint32_t n = 0; n < 20; n++) {
        struct random4 random4 = random_words(23, STREAM_TEST, 0, n);
        char *b = second_trace_of_list(lasting("data/steps/%s.txt", lists[random4.word[0] % COUNT(lists)]));
        char *a = trace_of_list(lasting("data/steps/%s.txt", lists[random4.word[1] % COUNT(lists)]));
        struct view *view = open_test_view(a, b, 800 + (int)(random4.word[2] % 1000),
                                           400 + (int)(random4.word[3] % 800), 1 + (int)n % 2);
        bool folds = n % 3 == 0;
        run_script(view, folds ? "x" : "0");
        assert_at_most(view->layout.rows_height, places_of(view).rows.h);
        assert_int_equal(view->layout.rows[view->layout.n_rows - 1].track, 1);
        end_view(view);
        free(a);
        free(b);
    }
}

/* However little room there is, a row of two traces has a dot: its tasks can be seen. */
TEST(two_traces_have_no_row_without_height)
{
    for (int scale = 1; scale <= 2; scale++) {
        char *a = trace_of_devices(20), *b = lasting("%s.b", a);
        assert_int_equal(rename(a, b), 0);
        free(a);
        a = trace_of_devices(20);
        struct view *view = open_test_view(a, b, LEAST_WIDTH, LEAST_HEIGHT, scale);
        for (size_t i = 0; i < view->layout.n_rows; i++)
            assert_at_least(view->layout.rows[i].height, scale);
        end_view(view);
        free(a);
    }
}

/* Where two traces do not fit at their least height, they have no memory rows, and devices keep the height of a
 * name. */
TEST(two_traces_keep_the_names_of_devices)
{
    char *b = second_trace_of_list("data/steps/1f1b.txt");
    char *a = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(a, b, LEAST_WIDTH, LEAST_HEIGHT, 1);
    view->still = true; /* a picture has no hints below its rows */
    free_canvas(new_picture(view));
    assert_at_most(view->layout.rows_height, places_of(view).rows.h);
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        assert_int_not_equal(view->layout.rows[i].kind, ROW_MEMORY);
        if (view->layout.rows[i].kind == ROW_DEVICE)
            assert_at_least(view->layout.rows[i].height, 14); /* their least height in layout.c */
    }
    choose_height(view); /* that of a picture, which has room for all rows */
    bool has_memory = false;
    for (size_t i = 0; i < view->layout.n_rows; i++)
        has_memory |= view->layout.rows[i].kind == ROW_MEMORY;
    assert_true(has_memory);
    end_view(view);
    free(a);
    free(b);
}

/* Where two step files have no room, lanes without tasks are left out, and then there is room for memory. */
TEST(lanes_without_tasks_go_before_memory)
{
    static const char *const lists[] = {"data/gallery/1f1b.txt", "data/gallery/zb-v.txt"};
    struct track *tracks[2];
    for (int i = 0; i < 2; i++)
        tracks[i] = open_track(lists[i], open_board(lists[i], 1));
    struct view *view = open_view(tracks, 2, 1280, 720, 1);
    for (int high = 0; high < 2; high++) {
        size_t empty = 0, memory = 0;
        for (size_t i = 0; i < view->layout.n_rows; i++) {
            if (view->layout.rows[i].empty)
                empty++;
            if (view->layout.rows[i].kind == ROW_MEMORY)
                memory++;
        }
        assert_int_equal(memory, 8);
        assert_int_equal(empty, high ? 16 : 0);
        choose_height(view); /* that of a picture, which has room for all rows */
    }
    end_view(view);
}

/* The steps of both traces start at 0, whatever their clocks and lengths. */
TEST(two_traces_share_their_steps_start)
{
    char *b = second_trace_of_list("data/steps/overlap-pays.txt");
    char *a = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(a, b, 1280, 720, 1);
    run_script(view, "pagedown");
    for (int i = 0; i < 2; i++)
        assert_close(axis_of(view->tracks[i], find_step(view->tracks[i], 2)->work), 0, 0);
    assert_above(view->sight.to, 54e6); /* the longer one's step is in sight */
    for (int i = 0; i < 2; i++)         /* the legend has the kinds of both */
        for (size_t k = 0; k < view->tracks[i]->trace->header.n_tasks; k++)
            assert_true(view->has_kind[view->tracks[i]->kind[k]]);
    end_view(view);
    free(a);
    free(b);
}

/* ---- another trace in its place ---------------------------------------------------------------------------------- */

/* Another trace takes the place of the one that is shown, as under gdb's `yard step-list`. */
TEST(a_trace_that_is_replaced_is_shown_anew)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    run_script(view, "pagedown n n measure:300,70,600,70");
    size_t rows = view->layout.n_rows;
    view->tracks[0]->folded[0] = true;
    assert_false(poll_view(view));
    free(trace_of_list("data/steps/chain.txt")); /* the same path */
    assert_true(poll_view(view));
    assert_false(view->tracks[0]->folded[0]); /* the folded device was another machine's */
    assert_below(view->layout.n_rows, rows);
    assert_false(is_picked(&view->selection.task));
    assert_int_equal(view->selection.region.kind, NO_REGION);
    struct view *fresh = open_test_view(trace, NULL, 1280, 720, 1);
    assert_int_equal(view->n_layers, fresh->n_layers);
    assert_int_equal(view->n_micros, fresh->n_micros);
    assert_memory_equal(view->has_kind, fresh->has_kind, sizeof view->has_kind);
    end_view(fresh);
    free_canvas(new_picture(view));
    unlink(trace);
    assert_false(poll_view(view)); /* it is gone: what was there is still shown */
    end_view(view);
    free(trace);
}

/* ---- time and bytes of the rows ---------------------------------------------------------------------------------- */

TEST(busy_time_is_that_of_the_bars)
{
    char *trace = trace_of_list("data/steps/overlap-pays.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    for (uint32_t n = 0; n < 2000; n++) {
        struct random4 random4 = random_words(3, STREAM_TEST, 0, n);
        const struct bars *bars = &track->trace->bars[random4.word[0] % track->trace->header.n_lanes];
        uint64_t from = random4.word[1] % (track->last + 1000);
        uint64_t to = from + random4.word[2] % 9000000;
        uint64_t busy = 0;
        for (size_t i = 0; i < bars->n; i++)
            if (bars->items[i].end > from && bars->items[i].start < to)
                busy += MIN(bars->items[i].end, to) - MAX(bars->items[i].start, from);
        assert_int_equal(busy_between(bars, from, to), busy);
    }
    end_view(view);
    free(trace);
}

/* A step file, whose steps are all drawn. */
struct drawn_list {
    char *trace;
    struct view *view;
    struct canvas *canvas;
};

/* script: what is typed after the key that shows all steps.  Frees the text.  For free_drawn(). */
static struct drawn_list draw_list(char *text, const char *script)
{
    struct drawn_list drawn = {.trace = trace_of_list(write_file("drawn.txt", text, strlen(text)))};
    drawn.view = open_test_view(drawn.trace, NULL, 1280, 720, 1);
    run_script(drawn.view, "0");
    run_script(drawn.view, script);
    drawn.canvas = new_picture(drawn.view);
    free(text);
    return drawn;
}

static void free_drawn(struct drawn_list *drawn)
{
    free_canvas(drawn->canvas);
    end_view(drawn->view);
    free(drawn->trace);
}

/* How many pixels of column x of the row have the colour. */
static int pixels_of(const struct canvas *canvas, const struct view_row *row, int x, uint32_t colour)
{
    int n = 0;
    for (int y = row->y; y < row->y + row->height; y++)
        if (canvas->pixels[(int64_t)y * canvas->width + x] == colour)
            n++;
    return n;
}

/* A column of short tasks is as high as its lane was busy, from two fifths of the lane's height to all of it.  In each
 * ten microseconds one lane works all the time, and the other for one microsecond. */
TEST(a_column_of_short_tasks_is_as_high_as_the_lane_is_busy)
{
    char *text = copy_string("device d memory=1G\ntensor w0 d 4M work keep\ntensor w1 d 4M work keep\n");
    for (int i = 0; i < 2000; i++) {
        append_text(&text, "task forward d.compute 10us writes=w%d\n", i % 2);
        append_text(&text, "task up d.upload 1us reads=w%d\n", i % 2);
    }
    struct drawn_list drawn = draw_list(text, "");
    const struct view *view = drawn.view;
    const struct canvas *canvas = drawn.canvas;
    const struct view_row *compute = &view->layout.rows[1]; /* row 0 has the device's name */
    const struct view_row *upload = &view->layout.rows[2];
    int full = compute->height - pixels_of(canvas, compute, 700, PAPER);
    int low = upload->height - pixels_of(canvas, upload, 700, PAPER);
    assert_at_least(full, compute->height - 4); /* a lane has two dots of air above and below */
    assert_at_least(low, full / 3);
    assert_at_most(low, full / 2);
    free_drawn(&drawn);
}

/* A short task that stands alone keeps its two dots where the gap after it is hatched. */
TEST(hatching_leaves_a_short_task_as_it_is)
{
    char *text = copy_string("device d memory=1G\ntensor w d 4M work keep\n");
    for (int i = 0; i < 4; i++)
        append_text(&text, "task wait d.compute 10ms writes=w\ntask up d.upload 20us reads=w\n");
    struct drawn_list drawn = draw_list(text, "w");
    const struct view *view = drawn.view;
    const struct view_row *upload = &view->layout.rows[2];
    const uint32_t *line = drawn.canvas->pixels + (upload->y + upload->height / 2) * view->width;
    const struct bars *bars = &view->tracks[0]->trace->bars[upload->index];
    assert_above(bars->n, 2);
    for (size_t i = 1; i + 1 < bars->n; i++) {
        int x = (int)x_of(view, axis_of(view->tracks[0], bars->items[i].start));
        int same = 0;
        for (int at = x - 1; at <= x + 1; at++)
            if (line[at] == line[at + 1])
                same++;
        assert_int_equal(same, 1); /* two columns of the task, and others beside them */
    }
    free_drawn(&drawn);
}

/* A bar that a search finds is seen among longer ones that it does not find, however many there are in the column. */
TEST(what_a_search_finds_is_seen_in_a_column)
{
    char *text = copy_string("device d memory=1G\ntensor w d 4M work keep\n");
    for (int i = 0; i < 5000; i++)
        append_text(&text, i == 2501 ? "task hit d.compute 1us reads=w\n" : "task other d.compute 2us reads=w\n");
    struct drawn_list drawn = draw_list(text, "/hit");
    const struct view *view = drawn.view;
    const struct canvas *canvas = drawn.canvas;
    const struct box rows = places_of(view).rows;
    const struct view_row *lane = &view->layout.rows[1];
    uint32_t colour = task_colour(view, view->tracks[0], 2501);
    int columns = 0; /* in pixels */
    for (int x = rows.x; x < rows.x + rows.w; x++)
        if (pixels_of(canvas, lane, x, colour) > 0)
            columns++;
    assert_int_equal(columns, 10); /* a column of two pixels in each of five steps */
    free_drawn(&drawn);
}

/* In any stretch the amount with the most bytes is found, however many amounts it has, and the first of those with as
 * many bytes. */
TEST(the_most_that_is_held_is_found)
{
    char *text = copy_string("device d memory=1G\n");
    for (int i = 0; i < 100; i++)
        append_text(&text, "tensor t%d d %dK work\ntask t d.compute 1ms writes=t%d\n", i, 4 + 37 * i % 80, i);
    char *path = trace_of_list(write_file("most.txt", text, strlen(text)));
    struct trace *trace = read_trace(path);
    const struct memory_use *use = &trace->memory_use[0];
    assert_above(use->n, 400);
    for (uint32_t n = 0; n < 2000; n++) {
        struct random4 random4 = random_words(37, STREAM_TEST, 0, n);
        size_t from = random4.word[0] % use->n, end = from + 1 + random4.word[1] % (use->n - from);
        size_t most = from;
        for (size_t i = from; i < end; i++)
            if (use->sums[i].sum > use->sums[most].sum)
                most = i;
        assert_ptr_equal(most_held(use, from, end), &use->amounts[most]);
    }
    free_trace(trace);
    free(path);
    free(text);
}

/* A tensor that is alive for a hundredth of a pixel is seen: it doubles what the device holds. */
TEST(a_column_of_memory_shows_its_peak)
{
    char *text = copy_string("device d memory=1G\ntensor w d 4M work keep\ntensor short d 4M work\n");
    for (int i = 0; i < 1000; i++)
        append_text(&text,
                    i == 500 ? "task brief d.compute 1us writes=short\n" : "task forward d.compute 20us reads=w\n");
    struct drawn_list drawn = draw_list(text, "");
    const struct view *view = drawn.view;
    const struct canvas *canvas = drawn.canvas;
    const struct box rows = places_of(view).rows;
    const struct view_row *memory = &view->layout.rows[2]; /* after the device's name and its lane */
    uint32_t work = class_colour(view->tracks[0]->trace->tensors[0].class);
    int highest = 0;
    for (int x = rows.x; x < rows.x + rows.w; x++)
        highest = MAX(highest, pixels_of(canvas, memory, x, work));
    assert_int_equal(memory->kind, ROW_MEMORY);
    assert_above(highest, 8 * memory->height / 10); /* 8 MiB of the 8.8 at the upper edge; 4 MiB are less than half */
    free_drawn(&drawn);
}

/* Bytes have one scale in two traces: where one holds four times as much, its areas are four times as high. */
TEST(two_traces_share_the_scale_of_memory)
{
    int high[2];
    char *path[2];
    for (int i = 0; i < 2; i++) {
        char *text = format_string("device d memory=1G\ntensor w d %dM work keep\ntask t d.compute 1ms reads=w\n",
                                   i == 0 ? 4 : 16);
        char *trace = trace_of_list(write_file("scale.txt", text, strlen(text)));
        path[i] = lasting("%s.%d", trace, i);
        assert_int_equal(rename(trace, path[i]), 0);
        free(trace);
        free(text);
    }
    struct view *view = open_test_view(path[0], path[1], 1280, 720, 1);
    struct canvas *canvas = new_picture(view);
    uint32_t work = class_colour(view->tracks[0]->trace->tensors[0].class);
    for (size_t i = 0; i < view->layout.n_rows; i++)
        if (view->layout.rows[i].kind == ROW_MEMORY)
            high[view->layout.rows[i].track] = pixels_of(canvas, &view->layout.rows[i], 700, work);
    assert_above(high[0], 10);
    assert_at_most(abs(high[1] - 4 * high[0]), 6);
    free_canvas(canvas);
    end_view(view);
}

/* How many pixels of line y are those of the line where a step begins. */
static int border_pixels(const struct canvas *canvas, int y)
{
    int n = 0;
    for (int x = 0; x < canvas->width; x++)
        if (canvas->pixels[(int64_t)y * canvas->width + x] == BORDER)
            n++;
    return n;
}

/* The window shows 0.6 seconds.  Fifteen steps of a millisecond each are closer to each other than eight pixels, so
 * they have no lines; the step that comes long after them has one. */
TEST(steps_that_are_close_have_no_lines)
{
    const char *path = temp_path("steps.trace");
    struct trace_writer *writer = begin_trace(path);
    for (uint32_t step = 1; step <= 15; step++)
        write_step(writer, step, step * 1000000, 10000);
    write_step(writer, 16, 500000000, 10000000);
    close_trace_writer(writer);
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    run_script(view, "0");
    struct canvas *canvas = new_picture(view);
    assert_int_equal(border_pixels(canvas, row_of_lane(view, 0, 0)->y), 1);
    assert_true(has_sign(view, "a step begins"));
    free_canvas(canvas);
    end_view(view);
}

/* There is a line where each step begins that is in sight, and no other one, wherever the edges of the window are. */
TEST(each_step_that_begins_in_sight_has_a_line)
{
    enum { ALL = 12, STEP_NS = TASKS * 1000 };
    const char *path = temp_path("lines.trace");
    struct trace_writer *writer = begin_trace(path);
    uint64_t clock = 1000000;
    for (uint32_t step = 1; step <= ALL; step++)
        clock = write_step(writer, step, clock, STEP_NS / TASKS);
    close_trace_writer(writer);
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    for (int at = 0; at < 4 * (ALL - 5); at++) {
        double from = axis_of(track, find_step(track, 1)->work) + (at + 0.5) * STEP_NS / 4;
        look_at(view, from, from + 5.0 * STEP_NS);
        struct canvas *canvas = new_picture(view);
        int y = row_of_lane(view, 0, 0)->y;
        int expected = 0;
        for (uint32_t step = 1; step <= ALL; step++) {
            double begin = axis_of(track, find_step(track, step)->work);
            if (begin < view->sight.from || begin >= view->sight.to)
                continue;
            expected++;
            assert_int_equal(canvas->pixels[y * canvas->width + pixel_of(view, begin)], BORDER);
        }
        assert_int_equal(expected, 5);
        assert_int_equal(border_pixels(canvas, y), expected);
        free_canvas(canvas);
    }
    double seventh = axis_of(track, find_step(track, 7)->work);
    look_at(view, seventh + 0.1 * STEP_NS, seventh + 0.9 * STEP_NS); /* it has begun, and the eighth has not */
    assert_false(has_sign(view, "a step begins"));
    end_view(view);
}

/* The part of a run that is shown first ends with its last step. */
TEST(all_steps_are_in_sight_at_first)
{
    const char *path = temp_path("first.trace");
    struct trace_writer *writer = begin_trace(path);
    for (uint32_t step = 1; step <= 3; step++)
        write_step(writer, step, step * 1000000, 10000);
    close_trace_writer(writer);
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    const struct trace_step *last = find_step(track, 3);
    look_at_steps(view);
    assert_at_most(view->sight.from, axis_of(track, find_step(track, 1)->work));
    assert_at_least(view->sight.to, axis_of(track, last->work) + step_ns(track, last));
    assert_below(view->sight.to, axis_of(track, last->work) + 2 * step_ns(track, last));
    end_view(view);
}

static json_t *planned_bytes(const char *list)
{
    struct list *step = read_list(lasting("data/steps/%s.txt", list));
    finish_list(step);
    struct simulation *simulation = must_simulate(step, NULL);
    json_t *all = simulation_json(simulation), *held = json_incref(json_object_get(all, "held"));
    json_decref(all);
    free_simulation(simulation);
    free_list_and_machine(step);
    return held;
}

/* plan --simulate says what the steps hold at most, by the clock: the same as the trace that it writes. */
TEST(bytes_are_those_of_the_clock)
{
    static const char *const lists[] = {"1f1b", "broadcast-one-link", "broadcast",  "chain",
                                        "clip", "overlap-pays",       "pipelines",  "recompute",
                                        "swap", "snapshot",           "zero-bubble"};
    for (size_t i = 0; i < COUNT(lists); i++) {
        char *trace = trace_of_list(lasting("data/steps/%s.txt", lists[i]));
        struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
        const struct track *track = view->tracks[0];
        for (uint32_t n = 0; n < 40; n++)
            expect_held(track->trace, random_words(13, STREAM_TEST, (uint32_t)i, n).word[0] % (track->last + 1000));
        json_t *planned = planned_bytes(lists[i]);
        for (uint32_t d = 0; d < track->trace->header.n_devices; d++)
            assert_int_equal(most_bytes_held(&track->trace->memory_use[d]),
                             json_integer_value(json_object_get(planned, track->trace->devices[d].id)));
        json_decref(planned);
        end_view(view);
        free(trace);
    }
}
