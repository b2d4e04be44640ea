/* test_view.c - the timeline: golden pictures, keys and mouse, a trace that grows, any input at all; and the window's
 * loop under SDL's dummy driver.
 *
 * Pictures are compared by a hash of their pixels.  One that differs is left in the test's folder to be looked at; when
 * it is as it should be, its hash goes into the table.
 */
#ifdef HAVE_SDL2
#define SDL_MAIN_HANDLED
#include <SDL.h>
#endif

#include "tests/support/support.h"
#include "tools/command/table.h"
#include "tools/lists/lists.h"
#include "tools/view/act.h"
#include "tools/view/draw.h"

#include <math.h>

/* ---- traces ----------------------------------------------------------------------------------------------------- */

/* The simulation of a step file as a trace; the path is the caller's. */
static char *trace_of_list(const char *list)
{
    struct step *s = read_list(list);
    finish_list(s);
    struct simulation *sim = must_simulate(s, NULL);
    char *path = copy_string(temp_path("list.trace"));
    write_simulation(sim, path, list);
    free_simulation(sim);
    free_list(s);
    return path;
}

static struct view *view_of(const char *trace, const char *other, int width, int height, int scale)
{
    struct track *tracks[MAX_TRACKS];
    int n = 0;
    tracks[n++] = open_track(trace, NULL);
    if (other)
        tracks[n++] = open_track(other, NULL);
    return open_view(tracks, n, width, height, scale);
}

/* A view of a step file, whose tasks can be moved. */
static struct view *view_of_list(const char *list, int width, int height, int scale)
{
    struct track *k = open_track(list, open_board(list, 1));
    return open_view(&k, 1, width, height, scale);
}

static void end_view(struct view *v)
{
    for (int i = 0; i < v->n_tracks; i++)
        close_track(v->track[i]);
    close_view(v);
}

/* ---- pictures --------------------------------------------------------------------------------------------------- */

static const struct picture {
    const char *list;
    int width, height, scale;
    const char *script;
    uint64_t hash;
    const char *shows;
} pictures[] = {
    {"1f1b", 1280, 720, 1, "pagedown", 0x6acfeabee34219a9,
     "step 2 from end to end, coloured by kind: a staircase of forwards down four stages, then forwards and "
     "backwards in turn; below each stage its memory, with the line of 128 MiB"},
    {"1f1b", 1280, 720, 1, "pagedown k k click:620,118 move:700,118", 0x9a3b79d8789a8483,
     "the same, coloured by micro-batch; backward 0 of stage0 is selected: red arrows come from what it needs, "
     "on stage0 and a send of stage1, black ones go to what needs it; the words are of backward 1, under the "
     "mouse"},
    {"1f1b", 1280, 720, 2, "pagedown c down", 0x189b0b670c62b3da,
     "the same, each dot four pixels, so that rows are cut off: it begins at stage0's memory; what is not on the "
     "critical path is pale, and stage1's first forward and last backward are not"},
    {"overlap-pays", 1280, 720, 1, "pagedown c", 0x2d06e954e603dba8,
     "step 2: four forwards, four backwards, and layer 0's download, update and upload are on the critical path; "
     "the updates of layers 3, 2 and 1 run beside backwards, and are pale as their copies are"},
    {"overlap-pays", 1920, 1080, 2, "pagedown /update measure:600,300,1200,300", 0x78f50165f64225fb,
     "the four updates alone have full colour; a red stretch of 5.744 ms from 2.310 ms on, and over the device's "
     "memory a table of what ran in it: 5 rows, first 1 update of 1.500 ms"},
    {"overlap-does-not-pay", 800, 400, 1, "0 m + +", 0x7c4dd5dc0becd302,
     "from 31 ms to 83 ms, the end of step 2 to that of step 4, and no memory: the next step's forwards come "
     "only after the last of four long updates on the CPU"},
    {"zero-bubble", 1280, 720, 1, "0 - - - - - - - - -", 0x37a411a52896eb15,
     "the whole trace is 28 pixels wide: many bars in a pixel, mixed by their share of it; before it each device "
     "has its parameters, after it nothing"},
    {"zero-bubble", 1280, 720, 1, "0 - - - - - - - - - - - - -", 0x06971dcf7526a910,
     "the whole trace is 6 pixels wide: many amounts of memory in a pixel too"},
    {"1f1b", 1280, 560, 1, "pagedown w move:400,113", 0x50cf1d58ce915ae2,
     "step 2 with thin bars where a lane is idle, coloured by what it waits for: compute lanes for the pipeline, "
     "sends for compute; the words are of the gap under the mouse, which waited 12.00 ms for a send"},
    {"chain", 1280, 720, 1, "h", 0x866d86e2cca1f870,
     "five steps of one device; a box with all keys, in two columns, lies over the first two and a part of the "
     "third"},
};

/* Says where picture i differs; returns whether it does. */
static bool picture_differs(size_t i)
{
    const struct picture *p = &pictures[i];
    char *list = lasting("data/steps/%s.txt", p->list), *trace = trace_of_list(list);
    struct view *v = view_of(trace, NULL, p->width, p->height, p->scale);
    struct canvas *c = new_canvas(v->width, v->height);
    run_script(v, p->script);
    draw_view(v, c);
    uint64_t hash = hash_bytes(c->pixels, (size_t)c->width * (size_t)c->height * sizeof *c->pixels, 0);
    if (hash != p->hash) {
        char *path = lasting("%s-%zu.png", temp_path("differs"), i);
        write_png(path, c->pixels, c->width, c->height);
        print_error("picture %zu, %s with \"%s\", is now 0x%016llx: look at %s\nit should show %s\n", i, p->list,
                    p->script, (unsigned long long)hash, path, p->shows);
    }
    free_canvas(c);
    end_view(v);
    free(trace);
    return hash != p->hash;
}

TEST(pictures_are_as_they_were)
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT(pictures); i++)
        n += picture_differs(i);
    assert_int_equal(n, 0);
}

/* ---- keys and mouse ---------------------------------------------------------------------------------------------- */

static const char *selected_name(const struct view *v)
{
    return is_picked(&v->selection.task)
               ? v->track[v->selection.task.track]->trace->tasks[v->selection.task.copy.task].name
               : "";
}

static int selected_layer(const struct view *v)
{
    return v->track[v->selection.task.track]->trace->tasks[v->selection.task.copy.task].layer;
}

/* overlap-pays: forwards of 1 ms, then backwards of 2 ms; a step takes 14.5 ms. */
TEST(keys_do_what_the_help_says)
{
    char *trace = trace_of_list("data/steps/overlap-pays.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    assert_int_equal(v->sight.anchor, 1);
    run_script(v, "pagedown");
    assert_int_equal(v->sight.anchor, 2);
    assert_true(v->sight.from < 0);
    assert_true(v->sight.from > -1e6);
    assert_true(v->sight.to > 14.5e6);
    assert_true(v->sight.to < 15.5e6);
    run_script(v, "pagedown pagedown pagedown");
    assert_int_equal(v->sight.anchor, 5);
    run_script(v, "pageup n");
    assert_string_equal(selected_name(v), "forward");
    assert_int_equal(selected_layer(v), 0);
    run_script(v, "n n n n");
    assert_string_equal(selected_name(v), "backward");
    assert_int_equal(selected_layer(v), 3);
    run_script(v, "/nosuch");
    assert_non_null(strstr(v->message, "no task has that in its name"));
    run_script(v, "/Back"); /* case does not matter, and the selection stays */
    assert_null(strstr(v->message, "no task"));
    v->selection.search[0] = '\0';
    run_script(v, "p z");
    assert_int_equal(selected_layer(v), 3);
    assert_true(fabs(v->sight.to - v->sight.from - 3e6) < 1e3); /* three times the task */
    run_script(v, "escape k c /upd");
    assert_false(is_picked(&v->selection.task));
    assert_int_equal(v->colour, BY_LAYER);
    assert_true(v->selection.critical);
    assert_true(v->selection.n_path > 0);
    assert_string_equal(v->selection.search, "upd");
    double length = v->sight.to - v->sight.from;
    run_script(v, "escape +");
    assert_true(fabs(length / (v->sight.to - v->sight.from) - 1.5) < 1e-9);
    run_script(v, "space");
    assert_non_null(strstr(v->message, "no trainer"));
    run_script(v, "q");
    assert_true(v->quit);
    end_view(v);
    free(trace);
}

TEST(the_mouse_selects_drags_measures_and_zooms)
{
    char *trace = trace_of_list("data/steps/overlap-pays.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    run_script(v, "pagedown");
    const struct view_row *compute = row_of_lane(v, 0, v->track[0]->trace->tasks[0].lane);
    int x = (int)x_of(v, 5e6), y = compute->y + compute->height / 2;
    move_mouse(v, x, y);
    assert_true(is_picked(&v->mouse.hover));
    press_button(v, false);
    release_button(v);
    assert_string_equal(selected_name(v), "backward");
    struct links l = links_of_pick(v, &v->selection.task);
    assert_true(l.n >= 2);
    free(l.link);

    double at = axis_at(v, x);
    turn_wheel(v, 3, false); /* what is under the mouse stays there */
    assert_true(fabs(axis_at(v, x) - at) < 1);
    press_button(v, false);
    move_mouse(v, x + 100, y);
    release_button(v);
    assert_true(fabs(axis_at(v, x + 100) - at) < 1);
    assert_string_equal(selected_name(v), "backward"); /* a drag is no click */

    press_button(v, true);
    move_mouse(v, x + 50, y);
    release_button(v);
    assert_true(v->selection.region.kind == STRETCH);
    assert_true(v->selection.region.at[0] != v->selection.region.at[1]);
    struct box b = places_of(v).overview;
    move_mouse(v, b.x + b.w - 5, b.y + 5);
    press_button(v, false);
    release_button(v);
    assert_int_equal(v->sight.anchor, 5);
    end_view(v);
    free(trace);
}

/* A task says why it did not start sooner, and so does the gap before it. */
TEST(a_task_and_its_gap_say_what_was_waited_for)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    run_script(v, "pagedown n n n n n n");
    assert_string_equal(selected_name(v), "backward");
    char *said = describe_record(v->track[0]->trace, (size_t)v->selection.task.record);
    expect_text(said, "waited 12.00 ms for send L1 on stage1 download1 (pipeline)");
    move_mouse(v, (int)x_of(v, 14e6), row_of_lane(v, 0, v->track[0]->trace->tasks[0].lane)->y + 5);
    struct pick behind = pick_after_gap(v);
    assert_true(!is_picked(&v->mouse.hover));
    assert_true(behind.record == v->selection.task.record);
    move_mouse(v, (int)x_of(v, 14e6), 5); /* above the rows */
    behind = pick_after_gap(v);
    assert_false(is_picked(&behind));
    end_view(v);
    free(said);
    free(trace);
}

/* At the mouse: which task, from when to when, how long, how many bytes, for whom, and why not sooner. */
TEST(a_tooltip_says_what_is_under_the_mouse)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    run_script(v, "pagedown n n n n n n");
    char *said = describe_briefly(v, &v->selection.task);
    expect_text(said, "backward · layer 0 · micro-batch 0");
    expect_text(said, "\tlane\tstage0 compute");
    expect_text(said, "\tfrom\t20 ms");
    expect_text(said, "\tto\t24 ms");
    expect_text(said, "\tlasts\t4.000 ms");
    expect_text(said, "\tbefore\twaited 12.00 ms for send L1");
    free(said);
    const struct track *k = v->track[0];
    for (uint32_t i = 0; i < k->trace->header.n_tasks; i++) {
        const struct trace_task *task = &k->trace->tasks[i];
        const bool sends = strcmp(task->name, "send") == 0;
        assert_true(sends == (k->receiver[i] != NONE)); /* and to a neighbour */
        if (sends)
            assert_int_equal(labs((long)k->receiver[i] - k->trace->lanes[task->lane].device_index), 1);
    }
    end_view(v);
    free(trace);
}

/* A stretch's time by lane and kind is what its lanes are busy in it, and its links move what their copies do; whatever
 * the stretch. */
TEST(a_stretch_counts_what_lies_in_it)
{
    char *trace = trace_of_list("data/steps/overlap-pays.txt");
    struct view *v = view_of(trace, trace, 1280, 720, 1);
    const struct track *k = v->track[0];
    for (uint32_t n = 0; n < 50; n++) {
        struct random4 r = random_words(17, STREAM_TEST, 0, n);
        struct box ruler = places_of(v).ruler;
        int x[2] = {ruler.x + (int)r.word[0] % ruler.w, ruler.x + (int)(r.word[1] % (unsigned)ruler.w)};
        char script[64];
        snprintf(script, sizeof script, "measure:%d,%d,%d,%d", x[0], ruler.y + 3, x[1], ruler.y + 3);
        run_script(v, script);
        assert_int_equal(v->selection.region.kind, x[0] != x[1] ? STRETCH : NO_REGION);
        double from = axis_at(v, MIN(x[0], x[1]));
        double to = axis_at(v, MAX(x[0], x[1]));
        double busy = 0;
        double ms = 0;
        double bytes = 0;
        json_t *rows = v->selection.panel.table ? table_json(v->selection.panel.table) : json_array(), *row;
        size_t i;
        json_array_foreach(rows, i, row)
        {
            double part = json_number_value(json_object_get(row, "bytes"));
            const char *lane = json_string_value(json_object_get(row, "lane"));
            ms += json_number_value(json_object_get(row, "ms"));
            bytes += strstr(lane, "load") ? part : 0;
        }
        for (uint32_t lane = 0; lane < k->trace->header.n_lanes && x[0] != x[1]; lane++)
            busy += 2 * (double)busy_between(&k->trace->bars[lane], clock_of(k, from), clock_of(k, to)) / 1e6;
        assert_true(fabs(ms - busy) < 1e-4);
        assert_true(fabs(bytes - v->selection.panel.bytes) < 100);
        json_decref(rows);
    }
    run_script(v, "escape");
    assert_null(v->selection.panel.table);
    end_view(v);
    free(trace);
}

/* A click on a memory row lists the tensors alive there, largest first, and they hold what the row shows. */
TEST(a_place_of_memory_lists_its_tensors)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    const struct trace *t = v->track[0]->trace;
    run_script(v, "pagedown");
    for (uint32_t n = 0; n < 50; n++) {
        struct random4 r = random_words(19, STREAM_TEST, 0, n);
        struct box rows = places_of(v).rows;
        uint32_t device = r.word[0] % 4;
        const struct view_row *row = v->layout.row;
        while (row->kind != ROW_MEMORY || row->index != device)
            row++;
        char script[64];
        int x = rows.x + (int)(r.word[1] % (unsigned)rows.w);
        snprintf(script, sizeof script, "click:%d,%d", x, row->y + row->height / 2);
        run_script(v, script);
        const struct amount *held = amount_at(&t->memory_use[device], clock_of(v->track[0], axis_at(v, x)));
        assert_true(v->selection.region.kind == PLACE);
        assert_true(v->selection.region.device == device);
        assert_true(!is_picked(&v->selection.task));
        assert_true(v->selection.panel.bytes == (double)sum_amount(held));
    }
    run_script(v, "click:600,118"); /* a task instead */
    assert_true(v->selection.region.kind == NO_REGION);
    assert_true(is_picked(&v->selection.task));
    end_view(v);
    free(trace);
}

/* A click on its name makes the lanes of a device thin and leaves its memory out; another click brings all back. */
TEST(devices_fold)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    size_t rows = v->layout.n_rows;
    run_script(v, "click:20,97");
    assert_true(v->layout.n_rows == rows - 1);
    assert_true(v->layout.row[1].height < GLYPH_HEIGHT);
    assert_true(v->layout.row[3].kind == ROW_DEVICE);
    run_script(v, "click:600,97");
    assert_true(v->layout.n_rows == rows);
    assert_true(v->layout.row[1].height > GLYPH_HEIGHT);
    run_script(v, "x");
    assert_int_equal(v->layout.n_rows, rows - 4);
    run_script(v, "n x");
    assert_int_equal(v->layout.n_rows, rows);
    end_view(v);
    free(trace);
}

/* Two traces fit, whatever they are and however small the window is, folded or not. */
TEST(two_traces_always_fit)
{
    static const char *const lists[] = {"chain", "1f1b", "pipelines", "broadcast", "zero-bubble"};
    for (uint32_t n = 0; n < 20; n++) {
        struct random4 r = random_words(23, STREAM_TEST, 0, n);
        char *a = trace_of_list(lasting("data/steps/%s.txt", lists[r.word[0] % 5])), *b = lasting("%s.b", a);
        assert_int_equal(rename(a, b), 0);
        free(a);
        a = trace_of_list(lasting("data/steps/%s.txt", lists[r.word[1] % 5]));
        struct view *v = view_of(a, b, 800 + (int)(r.word[2] % 1000), 400 + (int)(r.word[3] % 800), 1 + (int)n % 2);
        run_script(v, n % 3 ? "0" : "x");
        assert_true(v->layout.rows_height <= places_of(v).rows.h);
        assert_true(v->layout.row[v->layout.n_rows - 1].track == 1);
        end_view(v);
        free(a);
    }
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

static size_t rows_in_sight(const struct view *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->layout.n_rows; i++)
        n += is_in_sight(v, &v->layout.row[i]);
    return n;
}

/* One device fills the largest window, eight fit into the smallest that people have, and more can be scrolled: no row
 * is ever cut.  A picture has all of them at their best height. */
TEST(rows_fill_the_window_and_are_never_cut)
{
    static const int sizes[][3] = {{1280, 720, 1}, {1920, 1080, 1}, {1920, 1080, 2}, {3840, 2160, 2}};
    for (int devices = 1; devices <= 20; devices++) {
        char *trace = trace_of_devices(devices);
        for (size_t i = 0; i < COUNT(sizes); i++) {
            struct view *v = view_of(trace, NULL, sizes[i][0], sizes[i][1], sizes[i][2]);
            const struct box rows = places_of(v).rows;
            if (v->layout.good_height <= rows.h || (devices == 8 && i != 2)) {
                assert_int_equal(rows_in_sight(v), v->layout.n_rows);
                assert_true(rows.h - v->layout.rows_height <= (int)v->layout.n_rows);
            }
            for (int down = 0; down < 3000; down += 60) { /* each row comes into sight, from top to bottom */
                const struct view_row *last = &v->layout.row[v->layout.n_rows - 1];
                run_script(v, "down");
                const bool none = rows_in_sight(v) == 0;
                assert_false(none);
                assert_true(down < 2900 || is_in_sight(v, last));
            }
            v->still = true;
            choose_height(v);
            assert_int_equal(rows_in_sight(v), v->layout.n_rows);
            assert_int_equal(v->layout.rows_height, v->layout.good_height);
            char *said = describe_step(v);
            assert_null(strstr(said, "keys"));
            free(said);
            end_view(v);
        }
        free(trace);
    }
}

/* What a lane's copies are all for names it; a second lane for the same is numbered; what is mixed keeps its name. */
TEST(lanes_are_named_by_what_they_do)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct trace *t = trace_open(trace);
    lane_purpose *purpose = trace_purposes(t);
    for (uint32_t i = 0; i < t->header.n_lanes; i++) {
        const char *name = t->lanes[i].name;
        if (strcmp(name, "stage1 download") == 0)
            assert_string_equal(purpose[i], "stage1 send");
        else if (strcmp(name, "stage1 download1") == 0)
            assert_string_equal(purpose[i], "stage1 send 2");
        else if (strstr(name, "compute"))
            assert_string_equal(purpose[i], name);
    }
    free(purpose);
    uint32_t first = 0; /* the first of its copies, which is made to be for something else */
    while (strcmp(t->lanes[t->tasks[first].lane].name, "stage1 download") != 0)
        first++;
    t->tasks[first].role = ROLE_BROADCAST;
    purpose = trace_purposes(t);
    assert_string_equal(purpose[t->tasks[first].lane], "stage1 download");
    free(purpose);
    trace_free(t);
    free(trace);
}

/* Up to 21 micro-batches no two look the same, and the legend has room for memory beside any number. */
TEST(micro_batches_have_colours_of_their_own)
{
    char *text = copy_string("device a memory=1G\ntensor w a 4 work keep\n");
    for (int i = 0; i < 60; i++)
        append_text(&text, "task t a.compute 1ms micro=%d writes=w\n", i);
    const char *list = write_file("micro.txt", text, strlen(text));
    char *trace = trace_of_list(list);
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    run_script(v, "k k");
    for (int i = 0; i < 21; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(colour_number(v, i), colour_number(v, k));
    assert_int_equal(v->n_micros, 60);
    end_view(v);
    free(trace);
    free(text);
}

/* ---- colour vision: as people see who lack one kind of cone (Machado and others, 2009) ---------------------- */

static double light_of(uint32_t channel)
{
    const double c = (channel & 255) / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static double root_of(double t) { return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116; }

/* The colour's place in the space L*a*b*, in which a distance of 2.3 can just be seen. */
static void place_colour(uint32_t colour, const double sight[9], double lab[3])
{
    const double rgb[] = {light_of(colour >> 16), light_of(colour >> 8), light_of(colour)};
    double seen[3];
    for (int i = 0; i < 3; i++) {
        seen[i] = sight[3 * i] * rgb[0] + sight[3 * i + 1] * rgb[1] + sight[3 * i + 2] * rgb[2];
        seen[i] = fmin(fmax(seen[i], 0), 1);
    }
    const double x = root_of((0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.95047);
    const double y = root_of(0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2]);
    const double z = root_of((0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.08883);
    lab[0] = 116 * y - 16;
    lab[1] = 500 * (x - y);
    lab[2] = 200 * (y - z);
}

/* Sixteen micro-batches are told apart by everybody: six times as far from each other as can just be seen. */
TEST(micro_batches_are_told_apart_by_the_colour_blind)
{
    static const struct {
        const char *who;
        double sight[9];
    } people[] = {
        {"normal", {1, 0, 0, 0, 1, 0, 0, 0, 1}},
        {"protanopia", {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998}},
        {"deuteranopia", {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881}},
        {"tritanopia", {1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900}},
    };
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    run_script(v, "k k");
    for (size_t i = 0; i < COUNT(people); i++) {
        double least = INFINITY;
        for (int a = 0; a < 16; a++)
            for (int b = 0; b < a; b++) {
                double p[3], q[3];
                place_colour(colour_number(v, a), people[i].sight, p);
                place_colour(colour_number(v, b), people[i].sight, q);
                least = fmin(least, sqrt(pow(p[0] - q[0], 2) + pow(p[1] - q[1], 2) + pow(p[2] - q[2], 2)));
            }
        print_message("# %s: the least distance is %.1f\n", people[i].who, least);
        assert_true(least > 14);
    }
    end_view(v);
    free(trace);
}

/* ---- two traces -------------------------------------------------------------------------------------------------- */

/* The steps of both traces start at 0, whatever their clocks and lengths. */
TEST(two_traces_share_their_steps_start)
{
    char *a = trace_of_list("data/steps/overlap-pays.txt"), *b = lasting("%s.b", a);
    assert_int_equal(rename(a, b), 0);
    free(a);
    a = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(a, b, 1280, 720, 1);
    run_script(v, "pagedown");
    for (int i = 0; i < 2; i++)
        assert_true(axis_of(v->track[i], find_step(v->track[i], 2)->work) == 0);
    assert_true(v->sight.to > 54e6); /* the longer one's step is in sight */
    for (int i = 0; i < 2; i++)      /* the legend has the kinds of both */
        for (size_t k = 0; k < v->track[i]->trace->header.n_tasks; k++)
            assert_true(v->has_role[v->track[i]->trace->tasks[k].role]);
    end_view(v);
    free(a);
}

/* ---- moving a task ----------------------------------------------------------------------------------------------- */

static double period_of(const struct view *v)
{
    json_t *all = board_json(v->track[0]->board);
    double ms = json_number_value(json_object_get(all, "period_ms"));
    json_decref(all);
    return round(1e6 * ms) / 1e6;
}

/* The middle of the nth bar of the anchor step on a lane. */
static int bar_at(const struct view *v, const char *lane, size_t nth, int *y)
{
    const struct trace *t = v->track[0]->trace;
    uint32_t i = 0;
    while (strcmp(t->lanes[i].name, lane) != 0)
        i++;
    const struct view_row *row = row_of_lane(v, 0, i);
    const struct bar *bar = t->bars[i].bar;
    while (t->records[bar->record].step != v->sight.anchor)
        bar++;
    *y = row->y + row->height / 2;
    return (int)x_of(v, (axis_of(v->track[0], bar[nth].start) + axis_of(v->track[0], bar[nth].end)) / 2);
}

/* Taken up right of its middle. */
static void drag_bar(struct view *v, const char *lane, size_t nth, const char *to_lane, size_t to, int by, bool drops)
{
    int y, to_y, x = bar_at(v, lane, nth, &y) + 12, to_x = bar_at(v, to_lane, to, &to_y) + by + 12;
    move_mouse(v, x, y);
    press_button(v, false);
    move_mouse(v, (x + to_x) / 2, y); /* the way there changes nothing */
    carry_task(v);
    move_mouse(v, to_x, to_y);
    carry_task(v);
    if (drops)
        release_button(v);
}

/* The same moves as in test_board.c, by hand. */
TEST(a_task_is_dragged_refused_and_brought_back)
{
    struct view *v = view_of_list("data/steps/broadcast.txt", 1280, 720, 1);
    const char *moved = temp_path("moved.txt");
    v->save_as = moved;
    run_script(v, "pagedown - s");
    char *before = read_text(moved);
    drag_bar(v, "b download", 0, "b download", 2, 10, false);
    assert_true(period_of(v) == 8); /* is shown while it is dragged, */
    press_key(v, "escape");
    assert_true(period_of(v) == 9); /* it is gone when the task is not dropped */
    drag_bar(v, "b download", 0, "b download", 2, 10, true);
    assert_true(period_of(v) == 8);
    assert_true(count_moves(v->track[0]->board) == 1);
    assert_string_equal(selected_name(v), "send"); /* it is the task that was dragged, where it is now */
    assert_int_equal(v->selection.task.copy.task, 15);
    drag_bar(v, "c download", 2, "c download", 0, -10, true);
    assert_true(period_of(v) == 6);
    run_script(v, "s");
    struct step *s = read_list(moved);
    gate_updates(s);
    finish_list(s);
    struct simulation *sim = must_simulate(s, NULL);
    assert_true(fabs(1e3 * sim->period - 6) < 1e-9);
    free_simulation(sim);
    free_list(s);

    drag_bar(v, "a compute", 1, "a compute", 0, -10, true);
    assert_string_equal(v->message, "backward (layer 0) needs g.a, which forward (layer 0) writes");
    assert_int_equal(v->mouse.gesture.blocker.copy.task, 0);
    drag_bar(v, "a compute", 1, "b compute", 0, 0, true);
    assert_non_null(strstr(v->message, "and not on b compute"));
    assert_true(period_of(v) == 6);
    assert_true(count_moves(v->track[0]->board) == 2);
    uint32_t send = 15,
             lane = v->track[0]->trace->tasks[send].lane; /* it goes to an idle lane, at its place in the list */
    int y;
    int x = bar_at(v, "b download", 2, &y);
    move_mouse(v, x, y);
    press_button(v, false);
    move_mouse(v, x + 2, row_of_lane(v, 0, lane - 1)->y + 5);
    release_button(v);
    assert_int_equal(v->selection.task.copy.task, send);
    assert_int_equal(v->track[0]->trace->tasks[send].lane, lane - 1);
    run_script(v, "u u u u s");
    char *after = read_text(moved);
    assert_string_equal(before, after);
    free(before);
    free(after);
    end_view(v);
}

/* ---- marks, legend, popups, names -------------------------------------------------------------------------------- */

static struct canvas *picture_of(struct view *v)
{
    struct canvas *c = new_canvas(v->width, v->height);
    draw_view(v, c);
    return c;
}

/* The key marks the time at the mouse, and that of the last two times stays; another anchor moves no mark. */
TEST(two_times_are_marked_and_stay_where_they_are)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    const struct track *k = v->track[0];
    run_script(v, "t");
    assert_int_equal(v->selection.n_marks, 0);
    assert_non_null(strstr(v->message, "Put the mouse"));
    run_script(v, "pagedown move:400,113 t move:900,300 t move:700,113 t");
    assert_int_equal(v->selection.n_marks, 2);
    assert_int_equal((int)round(x_of(v, v->selection.mark[0])), 900);
    assert_int_equal((int)round(x_of(v, v->selection.mark[1])), 700);
    const uint64_t clock[] = {clock_of(k, v->selection.mark[0]), clock_of(k, v->selection.mark[1])};
    run_script(v, "measure:250,70,450,70");
    const uint64_t begin = clock_of(k, v->selection.region.at[0]);
    const struct times times = find_times(v);
    assert_int_equal(times.n, 4); /* two ends, two marks; the mouse is on the ruler */
    run_script(v, "pagedown");
    assert_true(labs((long)(clock_of(k, v->selection.mark[0]) - clock[0])) <= 1); /* a nanosecond is lost to rounding */
    assert_true(labs((long)(clock_of(k, v->selection.mark[1]) - clock[1])) <= 1);
    assert_true(labs((long)(clock_of(k, v->selection.region.at[0]) - begin)) <= 1);
    assert_false(shows_mark(v)); /* they are a step before what is in sight */
    run_script(v, "escape");
    assert_int_equal(v->selection.n_marks, 0);
    end_view(v);
    free(trace);
}

static bool has_sign(const struct view *v, const char *name)
{
    struct sign sign[MOST_SIGNS];
    const size_t n = find_signs(v, sign);
    for (size_t i = 0; i < n; i++)
        if (strcmp(sign[i].name, name) == 0)
            return true;
    return false;
}

/* Each sign is in the legend while it is in the picture, and not before or after. */
TEST(the_legend_has_the_signs_that_are_seen)
{
    static const struct {
        const char *script, *name;
    } shown[] = {
        {"click:620,118", "selected"}, {"click:620,118", "what it needs"},         {"c", "not on the critical path"},
        {"/send", "not found"},        {"measure:300,70,600,70", "selected time"}, {"click:600,174", "selected place"},
        {"move:600,118 t", "mark"},
    };
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    v->still = true;
    run_script(v, "pagedown");
    assert_true(has_sign(v, "a step begins"));
    assert_false(has_sign(v, "loss"));
    for (size_t i = 0; i < COUNT(shown); i++) {
        assert_false(has_sign(v, shown[i].name));
        run_script(v, shown[i].script);
        assert_true(has_sign(v, shown[i].name));
        run_script(v, "escape");
    }
    run_script(v, "move:620,118");
    assert_true(has_sign(v, "under the mouse"));
    run_script(v, "z + + + + + + + + + +");
    assert_false(has_sign(v, "a step begins"));
    v->still = false;
    const int lines = count_legend_lines(v); /* in a window the mouse moves nothing */
    run_script(v, "move:5,5");
    assert_false(is_picked(&v->mouse.hover));
    assert_int_equal(count_legend_lines(v), lines);
    end_view(v);
    free(trace);
}

/* The legend has the causes that some pixel in a row has, and no others. */
TEST(the_legend_has_the_causes_that_are_seen)
{
    char *trace = trace_of_list("data/steps/overlap-does-not-pay.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    int others = 0;
    run_script(v, "w");
    for (int zoom = 0; zoom < 12; zoom++) {
        struct canvas *c = picture_of(v);
        for (int cause = 0; cause < CAUSES; cause++) {
            bool seen = false;
            for (size_t i = 0; i < v->layout.n_rows; i++) {
                const struct view_row *r = &v->layout.row[i];
                const int x = places_of(v).rows.x;
                if (r->kind != ROW_LANE)
                    continue;
                for (int at = x; at < x + places_of(v).rows.w; at++)
                    seen |= c->pixels[(r->y + r->height / 2) * c->width + at] == cause_colour((enum cause)cause);
            }
            assert_int_equal(v->layout.seen.cause[cause], seen);
            others += !seen;
        }
        free_canvas(c);
        run_script(v, "+");
    }
    assert_true(others > 0);
    end_view(v);
    free(trace);
}

/* The table hides nothing of a stretch that leaves room for it at a side, and nothing of a place's row. */
TEST(a_table_stands_beside_what_it_is_about)
{
    enum { AIR = 6 };
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    run_script(v, "pagedown");
    const struct box rows = places_of(v).rows, size = {.w = 400, .h = 170};
    for (uint32_t n = 0; n < 200; n++) {
        struct random4 r = random_words(29, STREAM_TEST, 0, n);
        const int from = rows.x + (int)(r.word[0] % (unsigned)rows.w),
                  to = rows.x + (int)(r.word[1] % (unsigned)rows.w);
        const int left = MIN(from, to), right = MAX(from, to);
        const bool room = left - rows.x > size.w + AIR || rows.x + rows.w - right > size.w + AIR;
        v->selection.region = (struct region){.kind = STRETCH, .at = {axis_at(v, from), axis_at(v, to)}};
        struct box at = place_panel(v, size);
        assert_true(at.x >= rows.x && at.x + at.w <= rows.x + rows.w);
        assert_true(at.y >= rows.y && at.y + at.h <= rows.y + rows.h);
        assert_true(!room || at.x >= right || at.x + at.w <= left);
        v->selection.region = (struct region){.kind = PLACE, .at = {axis_at(v, from), axis_at(v, from)}};
        v->selection.region.device = r.word[2] % 4;
        at = place_panel(v, size);
        const struct view_row *row = v->layout.row;
        while (row->kind != ROW_MEMORY || row->index != v->selection.region.device)
            row++;
        assert_true(at.y >= row->y + row->height || at.y + at.h <= row->y);
        assert_true(at.x >= from || at.x + at.w <= from || from < rows.x + AIR || from > rows.x + rows.w - AIR);
    }
    v->selection.region.kind = NO_REGION;
    end_view(v);
    free(trace);
}

/* Where a bar has its name, the pixels are those without a line of the mouse, of a mark or of an edge. */
TEST(no_line_runs_through_a_name)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    run_script(v, "pagedown k k");
    struct canvas *bare = picture_of(v);
    run_script(v, "click:620,118");
    int y;
    const int x = bar_at(v, "stage0 compute", 4, &y);
    run_script(v, lasting("move:%d,%d t move:%d,%d", x + 2, y, x + 4, y));
    struct canvas *lines = picture_of(v);
    int crossed = 0;
    for (int at = x - 3; at <= x + 6; at++) {
        const int name = y * bare->width + at, edge = (y - 10) * bare->width + at;
        assert_int_equal(lines->pixels[name], bare->pixels[name]);
        crossed += lines->pixels[edge] != bare->pixels[edge];
    }
    assert_true(crossed > 0);
    free_canvas(bare);
    free_canvas(lines);
    end_view(v);
    free(trace);
}

/* Another trace takes the place of the one that is shown, as under gdb's `yard step-list`. */
TEST(a_trace_that_is_replaced_is_shown_anew)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    run_script(v, "pagedown n n measure:300,70,600,70");
    size_t rows = v->layout.n_rows;
    v->track[0]->folded[0] = true;
    assert_false(poll_view(v));
    free(trace_of_list("data/steps/chain.txt")); /* the same path */
    assert_true(poll_view(v));
    assert_false(v->track[0]->folded[0]); /* the folded device was another machine's */
    assert_true(v->layout.n_rows < rows);
    assert_true(!is_picked(&v->selection.task));
    assert_true(v->selection.region.kind == NO_REGION);
    struct view *fresh = view_of(trace, NULL, 1280, 720, 1);
    assert_true(v->n_layers == fresh->n_layers);
    assert_true(v->n_micros == fresh->n_micros);
    assert_memory_equal(v->has_role, fresh->has_role, sizeof v->has_role);
    end_view(fresh);
    struct canvas *c = new_canvas(v->width, v->height);
    draw_view(v, c);
    free_canvas(c);
    unlink(trace);
    assert_false(poll_view(v)); /* it is gone: what was there is still shown */
    end_view(v);
    free(trace);
}

/* ---- a trace that grows ------------------------------------------------------------------------------------------ */

enum { LANES = 3, TASKS = 12, STEPS = 40 };
static struct trace_writer *begin_trace(const char *path)
{
    static struct trace_device device = {.id = "0:0", .name = "paper", .budget = 1 << 20};
    static struct trace_tensor tensors[] = {{.name = "weight", .bytes = 100},
                                            {.name = "x", .n_uses = 4, .bytes = 1000},
                                            {.name = "y", .first_use = 4, .n_uses = 2, .bytes = 500}};
    static uint32_t uses[] = {0, 3, 4, 8, 5, 11};
    struct trace_lane lanes[LANES + 1] = {{.name = "0:0 compute", .kind = LANE_COMPUTE},
                                          {.name = "0:0 upload", .kind = LANE_UPLOAD},
                                          {.name = "host cpu", .kind = LANE_CPU},
                                          {.name = "host report", .kind = LANE_REPORT}};
    struct trace_edge edges[TASKS];
    struct trace_task tasks[TASKS + 1];
    for (uint32_t i = 0; i < TASKS; i++) {
        edges[i] = (struct trace_edge){(i + TASKS - 1) % TASKS, i == 0, 0};
        tasks[i] = (struct trace_task){
            .name = "task", .layer = (int)i - 1, .micro = -1, .lane = i % LANES, .first_edge = i, .n_edges = 1};
    }
    tasks[TASKS] = (struct trace_task){.name = "report", .layer = -1, .micro = -1, .lane = LANES}; /* not always run */
    struct trace t = {.header = {.kind = TRACE_REAL,
                                 .pace_scale = 1,
                                 .model = "grows",
                                 .n_devices = 1,
                                 .n_lanes = LANES + 1,
                                 .n_tasks = TASKS + 1,
                                 .n_edges = TASKS,
                                 .n_tensors = COUNT(tensors),
                                 .n_uses = COUNT(uses),
                                 .n_lists = 1,
                                 .list = {"train"},
                                 .n_roles = 1,
                                 .role = {"other"},
                                 .n_classes = 1,
                                 .memory = {"work"}},
                      .devices = &device,
                      .lanes = lanes,
                      .tasks = tasks,
                      .edges = edges,
                      .tensors = tensors,
                      .uses = uses};
    return trace_create(path, &t, 200); /* less than is written: old records are lost on the way */
}

/* What the trace says of its lanes, tasks and steps is what its records say, counted one by one. */
static void expect_whole(const struct track *k)
{
    const struct trace *t = k->trace;
    size_t taken = 0, steps = 0;
    for (size_t lane = 0; lane < t->header.n_lanes; lane++) {
        const struct bars *b = &t->bars[lane];
        uint64_t busy = 0;
        for (size_t i = 0; i < b->n; busy += b->bar[i].end - b->bar[i].start, i++) {
            const struct trace_record *r = &t->records[b->bar[i].record];
            assert_int_equal(t->tasks[r->task].lane, lane);
            assert_true(b->bar[i].start == r->start);
            assert_true(b->bar[i].end == r->end);
            assert_true(b->bar[i].busy == busy);
            assert_true(i == 0 || b->bar[i - 1].start <= r->start);
            assert_int_equal(trace_find_from(t, r->task, r->step, 0), b->bar[i].record);
            assert_int_equal(trace_find_before(t, r->task, r->step, SIZE_MAX), b->bar[i].record);
            assert_int_equal(trace_find_before(t, r->task, r->step, b->bar[i].record), NONE);
        }
        taken += b->n;
    }
    assert_int_equal(taken, t->n_records);
    for (size_t i = 0; i < k->steps->n; i++) {
        const struct trace_step *s = &k->steps->step[i];
        uint64_t end = 0;
        for (size_t r = 0; r < t->n_records; r++)
            end = t->records[r].step == s->step ? MAX(end, t->records[r].end) : end;
        steps += end > 0;
        assert_true(i == 0 || s[-1].step < s->step);
        assert_true(end == 0 || s->end == end);
    }
    assert_true(steps > 0 || t->n_records == 0);
}

/* What a device holds at a clock, tensor by tensor and step by step: while one of its tasks runs, and between them; in
 * a step that is not whole, until all have ended. */
static uint64_t count_held(const struct trace *t, uint32_t device, uint64_t clock)
{
    uint64_t bytes = 0;
    for (const struct trace_tensor *x = t->tensors; x < t->tensors + t->header.n_tensors; x++) {
        const struct trace_step_list *steps = &t->steps[x->list];
        bool held = x->n_uses == 0;
        for (size_t k = 0; k < steps->n && !held; k++) {
            uint32_t step = steps->step[k].step, ended = 0;
            uint64_t start = UINT64_MAX, end = 0;
            for (uint32_t u = 0; u < x->n_uses; u++) {
                const struct runs *runs = &t->runs[t->uses[x->first_use + u]];
                for (size_t i = 0; i < runs->n; i++) {
                    const struct trace_record *r = &t->records[runs->record[i]];
                    start = r->step == step ? MIN(start, r->start) : start;
                    end = r->step == step ? MAX(end, r->end) : end;
                    ended += r->step == step;
                }
            }
            held = ended && start <= clock && (end > clock || (ended < x->n_uses && step > t->whole_step));
        }
        bytes += x->device == device ? held * x->bytes : 0;
    }
    return bytes;
}

/* The amounts that are kept up to date are those that are counted, at any clock; and the tensors that are alive then
 * have as many bytes. */
static void expect_held(const struct trace *t, uint64_t clock)
{
    for (uint32_t device = 0; device < t->header.n_devices; device++) {
        const struct trace_tensor **alive;
        size_t n = trace_alive_at(t, device, clock, &alive);
        uint64_t sum = 0;
        const struct amount *held = amount_at(&t->memory_use[device], clock);
        for (size_t i = 0; i < n; sum += alive[i++]->bytes)
            assert_true(i == 0 || alive[i - 1]->bytes >= alive[i]->bytes);
        assert_int_equal(sum_amount(held), count_held(t, device, clock));
        assert_int_equal(sum, sum_amount(held));
        free(alive);
    }
}

/* Ends of one lane come late, so records come in between older ones; what is selected stays selected while its record
 * is there. */
TEST(a_growing_trace_is_taken_bit_by_bit)
{
    const char *path = temp_path("grows.trace");
    struct trace_writer *w = begin_trace(path);
    struct view *v = view_of(path, NULL, 1280, 720, 1);
    struct canvas *c = new_canvas(1280, 720);
    uint64_t number[STEPS * TASKS], start[STEPS * TASKS], clock = now_ns();
    size_t begun = 0;
    size_t ended = 0;
    size_t late = 0; /* records before these have begun, have ended but for the late lane, all */
    press_key(v, "l");
    draw_view(v, c); /* the trace has no record yet */
    for (size_t round = 0; ended < STEPS * TASKS; round++) {
        size_t more = random_words(7, STREAM_TEST, 0, round).word[0] % 23;
        for (; more > 0 && begun < STEPS * TASKS; more--, begun++) {
            start[begun] = clock += 1000 + random_words(8, STREAM_TEST, 0, begun).word[0] % 5000;
            number[begun] = trace_begin(w, (uint32_t)(begun / TASKS) + 1, (uint32_t)(begun % TASKS), clock - 900);
        }
        for (size_t i = late; i < begun; i++) /* what is begun ends in this round; on the last lane in the next */
            if (i < ended ? i % LANES == LANES - 1 : i % LANES != LANES - 1 || begun == STEPS * TASKS)
                trace_end(w, number[i], start[i], start[i] + 800, 0);
        late = ended;
        ended = begun;
        poll_view(v);
        draw_view(v, c);
        expect_whole(v->track[0]);
        for (uint32_t i = 0; i < 20; i++)
            expect_held(v->track[0]->trace, clock - random_words(9, STREAM_TEST, (uint32_t)round, i).word[0] % 1000000);
        for (size_t i = 0; i < v->track[0]->trace->n_records; i += 7) /* where a life may end */
            expect_held(v->track[0]->trace, v->track[0]->trace->records[i].end);
        if (is_picked(&v->selection.task))
            assert_memory_equal(&v->track[0]->trace->records[v->selection.task.record], &v->selection.task.copy,
                                sizeof v->selection.task.copy);
        v->selection.task = pick_of(v, 0, (int64_t)v->track[0]->trace->n_records - 1); /* NONE when there is none */
    }
    trace_close(w);
    poll_view(v);
    assert_int_equal(trace_follow_life(v->track[0]->follow), LIFE_CLOSED);
    assert_false(is_followed(v));
    free_canvas(c);
    end_view(v);
}

/* One task after another, of `ns` each; what the next step fetches comes first in it, on the lane of task 1. */
static uint64_t write_step(struct trace_writer *w, uint32_t step, uint64_t clock, uint64_t ns)
{
    for (uint32_t i = 0; i < TASKS; i++, clock += ns) {
        uint64_t number = trace_begin(w, step, i, clock - 10);
        trace_end(w, number, clock, clock + ns, 0);
    }
    return clock;
}

static struct view *follow_view(const char *path)
{
    struct view *v = view_of(path, NULL, 1280, 720, 1);
    press_key(v, "l");
    return v;
}

/* Steps of 12 to 20 us after a slow first one: the scale is found once, and then only time moves. */
TEST(following_keeps_its_scale_and_stands_still_under_the_mouse)
{
    const char *path = temp_path("even.trace");
    struct trace_writer *w = begin_trace(path);
    uint64_t clock = write_step(w, 1, now_ns(), 900000);
    struct view *v = follow_view(path);
    double length = 0, from = 0;
    for (uint32_t step = 2; step < 40; step++) {
        clock = write_step(w, step, clock, 1000 + random_words(4, STREAM_TEST, 0, step).word[0] % 700);
        bool still = step % 8 >= 6;
        move_mouse(v, still ? 600 : OFF_WINDOW, still ? 200 : OFF_WINDOW);
        assert_true(is_frozen(v) == still);
        double edge = axis_at(v, 600);
        uint64_t under = clock_of(v->track[0], edge);
        poll_view(v);
        if (still) {
            assert_true(v->sight.from == from);
            assert_true(clock_of(v->track[0], axis_at(v, 600)) == under);
        } else {
            assert_true(step < 5 || fabs(v->sight.to - v->sight.from - length) < 1e-3);
            assert_int_equal(v->sight.anchor, step);
            double end = axis_of(v->track[0], v->track[0]->now);
            assert_true(end > v->sight.from && end < v->sight.to);
        }
        length = v->sight.to - v->sight.from;
        from = v->sight.from;
    }
    assert_true(length > 2 * 12e3 && length < 5 * 20e3); /* about three steps */
    trace_close(w);
    end_view(v);
}

/* Seconds go by between tasks, and nobody sees them: axis, steps, window.  The ways between clock and axis agree. */
TEST(time_in_which_the_trainer_was_held_is_cut_out)
{
    const char *path = temp_path("held.trace");
    /* Far less than the machine has been running: its clock begins at 0. */
    const uint64_t second = UINT64_C(1000000000), zero = now_ns() - 100 * second;
    struct trace_writer *w = begin_trace(path);
    uint64_t clock = write_step(w, 1, zero, 1000);
    uint64_t held = 0;
    uint64_t ran = TASKS * 1000;
    struct view *v = follow_view(path);
    const struct track *k = v->track[0];
    v->sight.steps = true;
    for (uint32_t i = 0; i < 3 * TASKS; i++) {
        trace_alive(w, 1 + i % TASKS);
        clock += second + 10;
        held += second;
        uint64_t number = trace_begin(w, 2 + i / TASKS, i % TASKS, clock - 10);
        if (i % 3 == 0)
            poll_view(v); /* it is seen while it runs too */
        trace_end(w, number, clock, clock + 1000, 0);
        clock += 1000;
        ran += 1010;
        poll_view(v);
        assert_int_equal(k->trace->n_pauses, i + 1);
        assert_int_equal(trace_paused_before(k->trace, clock), held);
        assert_true(fabs(axis_of(k, clock) - axis_of(k, zero) - (double)ran) < 1);
        assert_int_equal(v->selection.task.copy.start, clock - 1000); /* the task that has just run */
        double from = x_of(v, axis_of(k, v->selection.task.copy.start)),
               to = x_of(v, axis_of(k, v->selection.task.copy.end));
        struct box rows = places_of(v).rows;
        assert_true(from > rows.x + rows.w / 2);
        assert_true(to < rows.x + rows.w);
        assert_true(to - from > 10); /* its bar is large enough to be seen */
    }
    for (size_t i = 0; i + 1 < k->steps->n; i++)
        assert_true(step_ns(k, &k->steps->step[i]) < TASKS * 1010 + 1);
    for (uint32_t i = 0; i < 1000; i++) {
        double axis = axis_of(k, zero) + (double)(random_words(2, STREAM_TEST, 0, i).word[0] % (ran - 1));
        assert_true(fabs(axis_of(k, clock_of(k, axis)) - axis) < 1.5);
    }
    expect_whole(k);
    trace_close(w);
    end_view(v);
}

/* The next step's batch is fetched while this one computes: that does not end it. */
TEST(a_step_goes_on_while_the_next_one_is_fetched)
{
    const char *path = temp_path("ahead.trace");
    struct trace_writer *w = begin_trace(path);
    uint64_t clock = write_step(w, 1, now_ns() - 1000000, 1000), begin = clock;
    for (uint32_t i = 0; i < TASKS; i += LANES) { /* on the compute lane */
        trace_end(w, trace_begin(w, 2, i, clock), clock, clock + 2000, 0);
        clock += 2000;
    }
    trace_end(w, trace_begin(w, 3, 1, begin), begin + 500, begin + 600, 0); /* on the lane for uploads */
    struct view *v = follow_view(path);
    const struct track *k = v->track[0];
    assert_int_equal(newest_step(k)->step, 2);
    assert_true(step_ns(k, newest_step(k)) == (double)(clock - begin));
    trace_begin(w, 2, 3, clock);
    poll_view(v);
    assert_true(step_ns(k, newest_step(k)) == (double)(k->now - begin)); /* so far */
    assert_false(is_unfinished(k, find_step(k, 1)));
    assert_true(is_unfinished(k, find_step(k, 2)));
    char *said = describe_step(v);
    expect_text(said, "step 2 has not ended");
    free(said);
    v->sight.from = v->sight.to - 1.02 * (v->sight.to - axis_of(k, find_step(k, 2)->work)); /* its number stays at */
    for (int zoom = 0; zoom < 40; zoom++) { /* the left edge, in the middle and at the right edge */
        struct canvas *c = picture_of(v);
        const struct box ruler = places_of(v).ruler;
        int inked = 0;
        for (int y = ruler.y; y < ruler.y + 18; y++)
            for (int x = ruler.x; x < ruler.x + ruler.w; x++)
                inked += c->pixels[y * c->width + x] == ACCENT;
        assert_true(inked > 0);
        free_canvas(c);
        v->sight.from -= 0.3 * (v->sight.to - v->sight.from);
    }
    trace_close(w);
    poll_view(v);
    assert_false(is_unfinished(k, find_step(k, 2)));
    end_view(v);
}

/* The loss of a report's record is that of its step, and a trace without it has no curve. */
TEST(losses_are_a_curve_where_the_trace_tells_them)
{
    const char *path = temp_path("losses.trace");
    struct trace_writer *w = begin_trace(path);
    uint64_t clock = write_step(w, 1, 1000000, 1000);
    struct view *v = view_of(path, NULL, 1280, 720, 1);
    const struct track *k = v->track[0];
    assert_true(isnan(last_loss(k)));
    assert_false(has_sign(v, "loss"));
    end_view(v);
    for (uint32_t step = 2; step < 13; step++) {
        clock = write_step(w, step, clock, 1000);
        const uint64_t number = trace_begin(w, step, TASKS, clock);
        trace_tell_loss(w, number, step == 12 ? NAN : 10.0 / step);
        trace_end(w, number, clock, clock + 1, 0);
    }
    trace_close(w);
    v = view_of(path, NULL, 1280, 720, 1);
    k = v->track[0];
    for (uint32_t step = 2; step < 12; step++)
        assert_true(fabs(step_loss(k, find_step(k, step)) - 10.0 / step) < 1e-6);
    assert_true(isnan(step_loss(k, find_step(k, 1))));
    assert_true(fabs(last_loss(k) - 10.0 / 11) < 1e-6); /* step 12 has none that is a number */
    assert_true(has_sign(v, "loss"));
    struct canvas *c = picture_of(v);
    const struct box b = places_of(v).overview;
    int last = b.y - 1; /* the loss falls: from left to right the curve goes down */
    for (int x = b.x + b.w / 8; x < b.x + b.w * 7 / 8; x += 5) {
        int y = b.y;
        while (y < b.y + b.h && c->pixels[y * c->width + x] != LOSS)
            y++;
        assert_true(y < b.y + b.h && y >= last);
        last = y;
    }
    free_canvas(c);
    end_view(v);
}

TEST(busy_time_is_that_of_the_bars)
{
    char *trace = trace_of_list("data/steps/overlap-pays.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    const struct track *k = v->track[0];
    for (uint32_t n = 0; n < 2000; n++) {
        struct random4 r = random_words(3, STREAM_TEST, 0, n);
        const struct bars *b = &k->trace->bars[r.word[0] % k->trace->header.n_lanes];
        uint64_t from = r.word[1] % (k->last + 1000);
        uint64_t to = from + r.word[2] % 9000000;
        uint64_t busy = 0;
        for (size_t i = 0; i < b->n; i++)
            if (b->bar[i].end > from && b->bar[i].start < to)
                busy += MIN(b->bar[i].end, to) - MAX(b->bar[i].start, from);
        assert_int_equal(busy_between(b, from, to), busy);
    }
    end_view(v);
    free(trace);
}

static json_t *planned_bytes(const char *list)
{
    struct step *s = read_list(lasting("data/steps/%s.txt", list));
    finish_list(s);
    struct simulation *sim = must_simulate(s, NULL);
    json_t *all = simulation_json(sim), *held = json_incref(json_object_get(all, "held"));
    json_decref(all);
    free_simulation(sim);
    free_list(s);
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
        struct view *v = view_of(trace, NULL, 1280, 720, 1);
        const struct track *k = v->track[0];
        for (uint32_t n = 0; n < 40; n++)
            expect_held(k->trace, random_words(13, STREAM_TEST, (uint32_t)i, n).word[0] % (k->last + 1000));
        json_t *planned = planned_bytes(lists[i]);
        for (uint32_t d = 0; d < k->trace->header.n_devices; d++)
            assert_int_equal(trace_peak(&k->trace->memory_use[d]),
                             json_integer_value(json_object_get(planned, k->trace->devices[d].id)));
        json_decref(planned);
        end_view(v);
        free(trace);
    }
}

/* A pace changes the numbers at the axis, and neither the rows' pixels nor how busy a stretch is. */
TEST(a_pace_leaves_the_rows_as_they_are)
{
    char *trace = trace_of_list("data/steps/zero-bubble.txt");
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    struct canvas *c[] = {new_canvas(v->width, v->height), new_canvas(v->width, v->height)};
    double share[2] = {0};
    for (int i = 0; i < 2; i++) {
        ((struct trace *)v->track[0]->trace)->header.pace_scale = i ? 1.0 / 64 : 1;
        run_script(v, "move:0,0 0 - - -");
        draw_view(v, c[i]);
        run_script(v, "measure:300,70,900,70");
        json_t *shares = table_json(v->selection.panel.table), *row;
        size_t n;
        json_array_foreach(shares, n, row) { share[i] += json_number_value(json_object_get(row, "share")); }
        json_decref(shares);
        run_script(v, "escape");
    }
    assert_true(share[0] > 0);
    assert_true(fabs(share[0] - share[1]) < 1e-6);
    struct box rows = places_of(v).rows;
    size_t from = (size_t)(rows.y * v->width), bytes = (size_t)(rows.h * v->width) * sizeof *c[0]->pixels;
    assert_memory_equal(c[0]->pixels + from, c[1]->pixels + from, bytes);
    free_canvas(c[0]);
    free_canvas(c[1]);
    end_view(v);
    free(trace);
}

/* However far one looks into it, what takes no time takes a nanosecond at most, all of it together. */
TEST(bars_without_length_share_their_place)
{
    const char *path = temp_path("moment.trace");
    struct trace_writer *w = begin_trace(path);
    for (uint32_t n = 0; n < 100; n++)
        trace_end(w, trace_begin(w, 1, 0, 5000), 5000, 5000, 0);
    trace_close(w);
    struct view *v = view_of(path, NULL, 1280, 720, 1);
    struct canvas *c = new_canvas(v->width, v->height);
    draw_view(v, c);
    struct box rows = places_of(v).rows;
    const struct view_row *row = row_of_lane(v, 0, 0);
    int drawn = 0;
    for (int x = rows.x; x < rows.x + rows.w; x++)
        drawn += c->pixels[(row->y + row->height / 2) * c->width + x] != PAPER;
    assert_true(drawn > 0 && drawn <= 1 + rows.w / (v->sight.to - v->sight.from));
    free_canvas(c);
    end_view(v);
}

/* A task that is queued while another one runs has its thin bar behind that one's, not across it. */
TEST(what_is_queued_waits_behind_the_bar_before)
{
    const char *path = temp_path("queued.trace");
    struct trace_writer *w = begin_trace(path);
    trace_end(w, trace_begin(w, 1, 0, 0), 1000, 5000, 0);
    trace_end(w, trace_begin(w, 1, 0, 2000), 7000, 9000, 0);
    trace_close(w);
    struct view *v = view_of(path, NULL, 1280, 720, 1);
    struct canvas *c = new_canvas(v->width, v->height);
    const struct track *k = v->track[0];
    draw_view(v, c);
    const struct view_row *row = row_of_lane(v, 0, 0);
    const uint32_t *line = c->pixels + (row->y + row->height / 2) * c->width, *edge = line - row->height / 4 * c->width;
    int first = (int)x_of(v, axis_of(k, 1500));
    int last = (int)x_of(v, axis_of(k, 4900));
    int behind = (int)x_of(v, axis_of(k, 6000));
    for (int x = last - 20; x < last; x++) /* beside its name */
        assert_int_equal(line[x], line[first]);
    assert_true(line[behind] != PAPER);
    assert_true(line[behind] != line[first]);
    assert_true(edge[behind] == PAPER);
    free_canvas(c);
    end_view(v);
}

/* ---- any input --------------------------------------------------------------------------------------------------- */

static void do_anything(struct view *v, struct random4 r)
{
    const struct action *a = &actions[r.word[1] % n_actions];
    char key[16];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(a->keys, " "), a->keys);
    if (r.word[0] % 3 == 0)
        move_mouse(v, (int)(r.word[1] % 2200) - 100, (int)(r.word[2] % 800) - 20);
    else if (r.word[0] % 3 == 1 && r.word[1] % 2)
        press_button(v, r.word[2] % 2);
    else if (r.word[0] % 3 == 1) {
        release_button(v);
        turn_wheel(v, (double)(r.word[2] % 41) - 20, r.word[2] % 2);
    } else if (strcmp(key, "q") != 0)
        press_key(v, key);
}

static void play(struct view *v)
{
    struct canvas *c = new_canvas(v->width, v->height);
    for (uint32_t n = 0; n < 600; n++) {
        do_anything(v, random_words(11, STREAM_TEST, (uint32_t)v->width, n));
        draw_view(v, c);
        assert_true(v->sight.to > v->sight.from);
    }
    free_canvas(c);
    end_view(v);
}

TEST(any_keys_in_any_order_draw_something)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    play(view_of(trace, NULL, 800, 400, 2));
    play(view_of(trace, trace, 1280, 720, 1));
    play(view_of(trace, NULL, 2000, 500, 2));
    struct view *v = view_of_list("data/steps/1f1b.txt", 1280, 720, 1);
    v->save_as = temp_path("any.txt");
    play(v);
    free(trace);
}

/* Times and steps from all over 64 and 32 bits: a damaged file, or a clock gone wrong. */
TEST(absurd_times_are_drawn_too)
{
    const char *path = temp_path("absurd.trace");
    struct trace_writer *w = begin_trace(path);
    for (uint32_t n = 0; n < 150; n++) {
        struct random4 r = random_words(5, STREAM_TEST, 0, n), at = random_words(6, STREAM_TEST, 0, n);
        uint64_t start = ((uint64_t)at.word[0] << 32 | at.word[1]) >> r.word[0] % 64;
        uint64_t number = trace_begin(w, n % 3 ? n + 1 : MAX(r.word[1], 1), n % TASKS, at.word[2]);
        trace_end(w, number, start, n % 5 ? MAX(start + 1, start) : UINT64_MAX, 0);
    }
    trace_close(w);
    play(view_of(path, NULL, 1280, 720, 1));
    play(view_of(path, path, 900, 500, 1));
}

/* ---- the window ------------------------------------------------------------------------------------------------- */

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
    struct view *v = view_of(trace, NULL, 1280, 720, 1);
    show_window(v);
    assert_true(v->quit);
    assert_int_equal(v->sight.anchor, 2);
    assert_int_equal(v->colour, BY_LAYER);
    assert_string_equal(v->selection.search, "f q");
    assert_int_equal(v->mouse.x, 640);
    end_view(v);
    free(trace);
}
/* Pressed, moved and let go within one frame. */
TEST(a_task_is_dragged_in_the_window)
{
    setenv("SDL_VIDEODRIVER", "dummy", 1);
    assert_int_equal(SDL_Init(SDL_INIT_VIDEO), 0);
    struct view *v = view_of_list("data/steps/broadcast.txt", 1280, 720, 1);
    run_script(v, "pagedown -");
    int y, x = bar_at(v, "b download", 0, &y), to = bar_at(v, "b download", 2, &y) + 10;
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
    show_window(v);
    assert_true(period_of(v) == 8);
    end_view(v);
}
#else
TEST(the_window_hands_keys_and_mouse_on) { skip(); }
#endif
