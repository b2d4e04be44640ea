/* test_view_pictures.c - how the timeline looks: its golden pictures, legend, colours and names.
 *
 * It tests src/tools/view.  It checks that the window's pixels are those of pictures that were once found right, that
 * the legend and the ruler name what is seen, and that colours can be told apart and names be read.  It catches any
 * change of a picture.
 *
 * To see it fail: in layout.c, count the lanes of the other devices: == in place of != beside device_index.
 *
 * A golden picture is compared by a hash of its pixels.  One that differs is left in the test's folder, where you can
 * look at it.  If it is as it should be, put its hash into the table.
 */
#include "planning/console/table.h"
#include "tests/support/support_view.h"

#include <math.h>

/* ---- golden pictures --------------------------------------------------------------------------------------------- */

static const struct picture {
    const char *list;
    int width, height, scale;
    const char *script;
    uint64_t hash;
    const char *shows;
} pictures[] = {
    {.list = "1f1b",
     .width = 1280,
     .height = 720,
     .scale = 1,
     .script = "pagedown",
     .hash = 0x19052ba8fa0b78c,
     .shows = "step 2 from end to end, coloured by kind: a staircase of forwards down four stages, then forwards and "
              "backwards in turn; below each stage its memory, with the line of 128 MiB"},
    {.list = "1f1b",
     .width = 1280,
     .height = 720,
     .scale = 1,
     .script = "pagedown k k click:620,118 move:700,118",
     .hash = 0x25d8fac620336de2,
     .shows =
         "the same, coloured by micro-batch; backward 0 of stage0 is selected: red arrows come from what it needs, "
         "on stage0 and a send of stage1, black ones go to what needs it; the words are of backward 1, under the "
         "mouse"},
    {.list = "1f1b",
     .width = 1280,
     .height = 720,
     .scale = 2,
     .script = "pagedown c down",
     .hash = 0xf71dfcc05222085f,
     .shows =
         "the same, each dot four pixels, so that the window is low: no overview, a legend of two lines that begins "
         "with memory, and rows are cut off: it begins at stage1; what is not on the critical path is pale, and "
         "stage1's first forward and last backward are not"},
    {.list = "overlap-pays",
     .width = 1280,
     .height = 720,
     .scale = 1,
     .script = "pagedown c",
     .hash = 0xde4aca23d895539e,
     .shows =
         "step 2: four forwards, four backwards, and layer 0's download, update and upload are on the critical path; "
         "the updates of layers 3, 2 and 1 run beside backwards, and are pale as their copies are"},
    {.list = "overlap-pays",
     .width = 1920,
     .height = 1080,
     .scale = 2,
     .script = "pagedown /update measure:600,300,1200,300",
     .hash = 0x7af5fa739efd15d,
     .shows =
         "the four updates alone have full colour; a red stretch of 5.744 ms from 2.310 ms on, and over the device's "
         "memory a table of what ran in it: 5 rows, the first 3 backwards of 4.054 ms"},
    {.list = "overlap-does-not-pay",
     .width = 800,
     .height = 400,
     .scale = 1,
     .script = "0 m + +",
     .hash = 0x21d4e913969c7a69,
     .shows = "from 31 ms to 83 ms, the end of step 2 to that of step 4, and no memory: the next step's forwards come "
              "only after the last of four long updates on the CPU"},
    {.list = "zero-bubble",
     .width = 1280,
     .height = 720,
     .scale = 1,
     .script = "0 - - - - - - - - -",
     .hash = 0x1d6095a5953669ed,
     .shows =
         "the whole trace is 28 pixels wide: on each compute lane forwards, backwards and backwards of weights have a "
         "third of the height each; before it each device has its parameters, after it nothing"},
    {.list = "zero-bubble",
     .width = 1280,
     .height = 720,
     .scale = 1,
     .script = "0 - - - - - - - - - - - - -",
     .hash = 0xfe4850ef5bcc7303,
     .shows = "the whole trace is 6 pixels wide: a single span"},
    {.list = "1f1b",
     .width = 1280,
     .height = 560,
     .scale = 1,
     .script = "pagedown w move:400,113",
     .hash = 0xac1b49d2cfb233a1,
     .shows =
         "step 2 with thin hatched bars where a lane is idle, by what it waits for: compute lanes for the pipeline, "
         "sends for compute; a frame and words are of the gap under the mouse, which waited 12.00 ms for a send"},
    {.list = "chain",
     .width = 1280,
     .height = 720,
     .scale = 1,
     .script = "h",
     .hash = 0xf3828121f228b73b,
     .shows =
         "five steps of one device; a box with all keys, in two columns, lies over the first two and a part of the "
         "third"},
};

/* Says where picture i differs; returns whether it does. */
static bool picture_differs(size_t i)
{
    const struct picture *picture = &pictures[i];
    char *list = lasting("data/steps/%s.txt", picture->list), *trace = trace_of_list(list);
    struct view *view = open_test_view(trace, NULL, picture->width, picture->height, picture->scale);
    run_script(view, picture->script);
    struct canvas *canvas = new_picture(view);
    uint64_t hash =
        hash_bytes(canvas->pixels, (size_t)canvas->width * (size_t)canvas->height * sizeof *canvas->pixels, 0);
    if (hash != picture->hash) {
        char *path = lasting("%s-%zu.png", temp_path("differs"), i);
        write_png(path, canvas->pixels, canvas->width, canvas->height);
        print_error("picture %zu, %s with \"%s\", is now 0x%016llx: look at %s\nit should show %s\n", i, picture->list,
                    picture->script, (unsigned long long)hash, path, picture->shows);
    }
    free_canvas(canvas);
    end_view(view);
    free(trace);
    return hash != picture->hash;
}

TEST(golden_pictures_are_as_they_were)
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT(pictures); i++)
        n += picture_differs(i);
    assert_int_equal(n, 0);
}

/* ---- the legend -------------------------------------------------------------------------------------------------- */

/* Each sign is in the legend while it is in the picture, and not before or after. */
TEST(the_legend_has_the_signs_that_are_seen)
{
    static const struct {
        const char *script, *name;
    } shown[] = {
        {"click:620,118", "selected"}, {"click:620,118", "what it needs"},         {"c", "not on the critical path"},
        {"/send", "other tasks"},      {"measure:300,70,600,70", "selected time"}, {"click:600,174", "selected place"},
        {"move:600,118 t", "mark"},
    };
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    view->still = true;
    run_script(view, "pagedown");
    assert_true(has_sign(view, "a step begins"));
    assert_false(has_sign(view, "loss"));
    for (size_t i = 0; i < COUNT(shown); i++) {
        assert_false(has_sign(view, shown[i].name));
        run_script(view, shown[i].script);
        assert_true(has_sign(view, shown[i].name));
        run_script(view, "escape");
    }
    run_script(view, "move:620,118");
    assert_true(has_sign(view, "under the mouse"));
    run_script(view, "z + + + + + + + + + +");
    assert_false(has_sign(view, "a step begins"));
    view->still = false;
    int lines = count_legend_lines(view); /* in a window the mouse moves nothing */
    run_script(view, "move:5,5");
    assert_false(is_picked(&view->mouse.hover));
    assert_int_equal(count_legend_lines(view), lines);
    end_view(view);
    free(trace);
}

/* The classes of the memory rows are in the legend, and those that the device has at another time are not. */
TEST(the_legend_has_the_classes_that_are_seen)
{
    char *path = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    run_script(view, "pagedown");
    const struct trace *trace = view->tracks[0]->trace;
    double length = view->sight.to - view->sight.from;
    for (int part = 0; part < 8; part++) {
        bool held[TRACE_CLASSES] = {false};
        look_at(view, length * part / 8, length * (part + 1) / 8);
        struct canvas *canvas = new_picture(view);
        for (size_t i = 0; i < view->layout.n_rows; i++) {
            const struct box rows = places_of(view).rows;
            const struct view_row *view_row = &view->layout.rows[i];
            if (view_row->kind != ROW_MEMORY || !is_in_sight(view, view_row))
                continue;
            for (int y = view_row->y; y < view_row->y + view_row->height; y++)
                for (int x = rows.x; x < rows.x + rows.w; x++)
                    for (size_t k = 0; k < trace->header.n_classes; k++)
                        held[k] |= canvas->pixels[y * canvas->width + x] == class_colour(k);
        }
        for (size_t k = 0; k < trace->header.n_classes; k++)
            assert_int_equal(view->layout.contents.class[k], held[k]);
        free_canvas(canvas);
    }
    assert_false(view->layout.contents.class[2]); /* the list has no state of an optimizer */
    end_view(view);
    free(path);
}

/* Has the box a pixel of that colour? */
static bool has_colour(const struct canvas *canvas, struct box box, uint32_t colour)
{
    for (int y = box.y; y < box.y + box.h; y++)
        for (int x = box.x; x < box.x + box.w; x++)
            if (canvas->pixels[y * canvas->width + x] == colour)
                return true;
    return false;
}

/* The legend has the causes that some pixel in a row has, and no others. */
TEST(the_legend_has_the_causes_that_are_seen)
{
    char *trace = trace_of_list("data/steps/overlap-does-not-pay.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    int others = 0;
    run_script(view, "w");
    for (int zoom = 0; zoom < 12; zoom++) {
        struct canvas *canvas = new_picture(view);
        for (int cause = 0; cause < CAUSES; cause++) {
            bool seen = false;
            for (size_t i = 0; i < view->layout.n_rows; i++) {
                const struct view_row *view_row = &view->layout.rows[i];
                int x = places_of(view).rows.x;
                if (view_row->kind != ROW_LANE)
                    continue;
                const struct box gaps = {x, view_row->y + view_row->height / 3, places_of(view).rows.w,
                                         view_row->height / 3};
                seen |= has_colour(canvas, gaps, cause_colour((enum cause)cause));
            }
            assert_int_equal(view->layout.contents.cause[cause], seen);
            if (!seen)
                others++;
        }
        free_canvas(canvas);
        run_script(view, "+");
    }
    assert_above(others, 0);
    end_view(view);
    free(trace);
}

/* The legend has the colour of tasks without a layer where a bar has it, and not elsewhere.  The list's copies have no
 * layer, and come in every fourth step. */
TEST(the_legend_has_tasks_without_a_layer)
{
    enum { PARTS = 24 };
    char *trace = trace_of_list("data/papers/lazy-checkpoint.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 440, 1);
    run_script(view, "m 0 k");
    uint32_t grey = colour_number(view, NONE);
    double from = view->sight.from, length = view->sight.to - from;
    int with = 0;
    for (int part = 0; part < PARTS; part++) {
        look_at(view, from + length * part / PARTS, from + length * (part + 1) / PARTS);
        struct canvas *canvas = new_picture(view);
        bool seen = has_colour(canvas, places_of(view).rows, grey);
        assert_int_equal(has_colour(canvas, places_of(view).legend, grey), seen);
        with += seen;
        free_canvas(canvas);
    }
    assert_above(with, 0);
    assert_below(with, PARTS);
    end_view(view);
    free(trace);
}

/* ---- the ruler --------------------------------------------------------------------------------------------------- */

/* Wherever one looks, the ruler or the margin beside it says in the accent's colour from which step the time counts. */
TEST(the_ruler_says_from_which_step_it_counts)
{
    static const int size[][2] = {{800, 400}, {1280, 440}};
    char *trace = trace_of_list("data/papers/zenflow.txt");
    for (size_t i = 0; i < COUNT(size); i++) {
        struct view *view = open_test_view(trace, NULL, size[i][0], size[i][1], 1);
        run_script(view, "0");
        double from = view->sight.from, length = view->sight.to - from;
        for (uint32_t n = 0; n < 100; n++) {
            struct random4 random4 = random_words(31, STREAM_TEST, (uint32_t)i, n);
            double part = 0.001 + random4.word[0] % 1000 * 0.001;
            double begin = from + length * (random4.word[1] % 1000) * 0.001;
            look_at(view, begin, begin + length * part);
            struct canvas *canvas = new_picture(view);
            const struct box ruler = places_of(view).ruler;
            assert_true(has_colour(canvas, (struct box){0, ruler.y, view->width, ruler.h}, ACCENT));
            free_canvas(canvas);
        }
        end_view(view);
    }
    free(trace);
}

enum { MS = 1000000 };

/* One task of a list runs for a millisecond, from `at` ms on. */
struct list_run {
    uint32_t step, list, at;
};

static const char *write_lists(const struct list_run *runs, size_t n)
{
    static struct trace_device device = {.id = "0:0", .name = "paper", .budget = 1 << 20};
    static struct trace_lane lane = {.name = "0:0 compute", .kind = LANE_COMPUTE};
    static struct trace_task tasks[] = {{.name = "work", .layer = -1, .micro = -1, .list = 0},
                                        {.name = "judge", .layer = -1, .micro = -1, .list = 1},
                                        {.name = "speak", .layer = -1, .micro = -1, .list = 2}};
    const char *path = temp_path("lists.trace");
    struct trace trace = {.header = {.kind = TRACE_REAL,
                                     .pace_scale = 1,
                                     .model = "lists",
                                     .n_devices = 1,
                                     .n_lanes = 1,
                                     .n_tasks = COUNT(tasks),
                                     .n_lists = COUNT(tasks),
                                     .list = {"train", "eval", "sample"},
                                     .n_roles = 1,
                                     .role = {"other"},
                                     .n_classes = 1,
                                     .memory = {"work"}},
                          .devices = &device,
                          .lanes = &lane,
                          .tasks = tasks};
    struct trace_writer *writer = open_trace_writer(path, &trace, 100);
    for (size_t i = 0; i < n; i++) {
        uint64_t start = (uint64_t)runs[i].at * MS;
        end_trace_record(writer, begin_trace_record(writer, runs[i].step, runs[i].list, start), start, start + MS, 0);
    }
    close_trace_writer(writer);
    return path;
}

/* Does this text begin at x in the upper half of the ruler? */
static bool has_text(struct view *view, const struct canvas *canvas, int x, const char *text, uint32_t colour)
{
    struct canvas *wanted = new_canvas(view->width, view->height);
    int y = places_of(view).ruler.y + 2 * view->scale;
    bool same = true;
    fill_rect(wanted, 0, 0, view->width, view->height, PAPER);
    view->canvas = wanted;
    put_text(view, x, y, view->width, colour, "%s", text);
    view->canvas = NULL;
    for (int row = y; row < y + GLYPH_HEIGHT; row++)
        for (int at = x; at < x + width_of(view, text); at++)
            same &= wanted->pixels[row * view->width + at] == canvas->pixels[row * view->width + at];
    free_canvas(wanted);
    return same;
}

/* Behind a step is the name of the list that runs first after it, where that begins, and no other one's. */
TEST(the_ruler_names_lists_between_steps)
{
    static const struct list_run runs[] = {{1, 0, 1},  {1, 1, 20}, {1, 2, 40}, {2, 0, 60},
                                           {2, 2, 80}, {2, 1, 95}, {3, 0, 110}};
    struct view *view = open_test_view(write_lists(runs, COUNT(runs)), NULL, 1280, 720, 1);
    struct canvas *canvas = new_picture(view);
    for (size_t i = 0; i < COUNT(runs); i++) {
        int x = (int)x_of(view, axis_of(view->tracks[0], (uint64_t)runs[i].at * MS));
        bool first = i > 0 && runs[i - 1].list == 0; /* after a step */
        assert_int_equal(has_text(view, canvas, x, "eval", SOFT), first && runs[i].list == 1);
        assert_int_equal(has_text(view, canvas, x, "sample", SOFT), first && runs[i].list == 2);
    }
    free_canvas(canvas);
    end_view(view);
}

/* A task that runs at the left edge has its name there, but the number of the anchor stands only where that begins. */
TEST(the_ruler_names_what_goes_on_at_the_left)
{
    static const struct list_run runs[] = {{1, 0, 1}, {1, 1, 20}, {1, 2, 40}, {2, 0, 60}, {3, 0, 80}};
    static const struct {
        int from; /* in milliseconds from step 1 */
        const char *name;
    } seen[] = {{5, ""}, {25, "eval"}, {45, "sample"}, {65, "step 2"}};
    struct view *view = open_test_view(write_lists(runs, COUNT(runs)), NULL, 1280, 720, 1);
    int x = places_of(view).ruler.x;
    for (size_t i = 0; i < COUNT(seen); i++) {
        look_at(view, seen[i].from * (double)MS, (seen[i].from + 14) * (double)MS);
        struct canvas *canvas = new_picture(view);
        for (size_t k = 0; k < COUNT(seen); k++)
            if (seen[k].name[0])
                assert_int_equal(has_text(view, canvas, x, seen[k].name, k < 3 ? SOFT : INK), i == k);
        assert_false(has_text(view, canvas, x, "step 1", ACCENT));
        free_canvas(canvas);
    }
    end_view(view);
}

/* An evaluation does not count as a part of the step before it. */
TEST(a_step_ends_before_another_list)
{
    static const struct list_run runs[] = {{1, 0, 1}, {1, 1, 20}, {2, 0, 60}, {3, 0, 62}, {3, 1, 90}};
    struct view *view = open_test_view(write_lists(runs, COUNT(runs)), NULL, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    assert_close(step_ns(track, find_step(track, 1)), MS, 0);
    assert_close(step_ns(track, find_step(track, 2)), 2 * MS, 0); /* the next step follows */
    assert_close(step_ns(track, find_step(track, 3)), MS, 0);
    end_view(view);
}

/* ---- colours ----------------------------------------------------------------------------------------------------- */

/* Up to 21 micro-batches no two look the same, and the legend has room for memory beside any number. */
TEST(micro_batches_have_colours_of_their_own)
{
    char *text = copy_string("device a memory=1G\ntensor w a 4 work keep\n");
    for (int i = 0; i < 60; i++)
        append_text(&text, "task t a.compute 1ms micro=%d writes=w\n", i);
    const char *list = write_file("micro.txt", text, strlen(text));
    char *trace = trace_of_list(list);
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    run_script(view, "k k");
    for (int i = 0; i < 21; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(colour_number(view, i), colour_number(view, k));
    assert_int_equal(view->n_micros, 60);
    end_view(view);
    free(trace);
    free(text);
}

/* ---- colour vision: as people see who lack one kind of cone (Machado and others, 2009) --------------------------- */

static double light_of(uint32_t channel)
{
    double share = (channel & 255) / 255.0;
    return share <= 0.04045 ? share / 12.92 : pow((share + 0.055) / 1.055, 2.4);
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
    double x = root_of((0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.95047);
    double y = root_of(0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2]);
    double z = root_of((0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.08883);
    lab[0] = 116 * y - 16;
    lab[1] = 500 * (x - y);
    lab[2] = 200 * (y - z);
}

/* Everybody tells n colours apart: they are six times as far from each other as can just be seen. */
static void expect_told_apart(const char *what, const uint32_t *colours, size_t n)
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
    for (size_t i = 0; i < COUNT(people); i++) {
        double least = INFINITY;
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < a; b++) {
                double one[3], other[3];
                place_colour(colours[a], people[i].sight, one);
                place_colour(colours[b], people[i].sight, other);
                least = fmin(least,
                             sqrt(pow(one[0] - other[0], 2) + pow(one[1] - other[1], 2) + pow(one[2] - other[2], 2)));
            }
        print_message("# %s, %s: the least distance is %.1f\n", what, people[i].who, least);
        assert_above(least, 14);
    }
}

/* Sixteen micro-batches and tasks without one, all kinds of tasks, and all causes of gaps. */
TEST(colours_are_told_apart_by_the_colour_blind)
{
    enum { MICRO_BATCHES = 16 };
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    uint32_t colours[MAX((int)KINDS, MICRO_BATCHES + 1)];
    size_t n = 0;
    for (size_t kind = 0; kind < KINDS; kind++)
        if (kind_name(view->tracks[0]->trace, kind)[0])
            colours[n++] = colour_number(view, (int64_t)kind);
    /* The other three are the halves of a backward, copies up and copies down. */
    assert_int_equal(n, view->tracks[0]->trace->header.n_roles + 3);
    expect_told_apart("kinds", colours, n);
    run_script(view, "k k");
    for (int i = 0; i <= MICRO_BATCHES; i++)
        colours[i] = colour_number(view, i < MICRO_BATCHES ? i : NONE);
    expect_told_apart("micro-batches", colours, MICRO_BATCHES + 1);
    for (int i = 0; i < CAUSES; i++)
        colours[i] = cause_colour((enum cause)i);
    expect_told_apart("causes", colours, CAUSES);
    end_view(view);
    free(trace);
}

/* The light of a colour, from 0 to 1, as rules for contrast on the web count it. */
static double luminance(uint32_t colour)
{
    return 0.2126 * light_of(colour >> 16) + 0.7152 * light_of(colour >> 8) + 0.0722 * light_of(colour);
}

/* A name on a bar has a contrast of 4.5 to 1, as small letters need it; so have words in grey on panels. */
static void expect_contrast(uint32_t letters, uint32_t ground)
{
    double one = luminance(letters) + 0.05, other = luminance(ground) + 0.05;
    if (fmax(one / other, other / one) < 4.5)
        test_failed("%06x on %06x: %.2f\n", letters & 0xffffff, ground & 0xffffff, fmax(one / other, other / one));
}

TEST(names_can_be_read_on_their_bars)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    for (int way = 0; way < COLOUR_WAYS; way++) {
        view->n_layers = 12;
        view->colour = (enum colour_by)way;
        for (int64_t i = way == BY_KIND ? 0 : NONE; i < (way == BY_LAYER ? 12 : 16); i++) {
            uint32_t colour = colour_number(view, i);
            expect_contrast(readable_on(colour), colour);
        }
    }
    expect_contrast(SOFT, PANEL);
    expect_contrast(ACCENT, PANEL);
    end_view(view);
    free(trace);
}

/* A backward of weights alone has a colour of its own, and copies up and down have theirs. */
TEST(backwards_of_weights_and_copies_have_kinds_of_their_own)
{
    static const char list[] = "device a memory=1G\n"
                               "tensor w a 4M parameters keep\ntensor g a 4M gradients\ntensor d a 4M work\n"
                               "task up a.upload 1ms writes=w\n"
                               "task D a.compute 1ms role=backward reads=w writes=d\n"
                               "task W a.compute 1ms role=backward reads=d writes=g\n"
                               "task whole a.compute 1ms role=backward reads=w,d writes=g\n"
                               "task backward a.compute 1ms role=backward reads=d writes=g\n"
                               "task down a.download 1ms reads=g\n";
    static const char *const kinds[] = {"upload",   "backward", "backward of weights",
                                        "backward", "backward", "download"};
    char *path = trace_of_list(write_file("kinds.txt", list, strlen(list)));
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    const struct track *track = view->tracks[0];
    for (uint32_t i = 0; i < COUNT(kinds); i++) {
        assert_string_equal(kind_name(track->trace, track->kind[i]), kinds[i]);
        assert_int_equal(task_colour(view, track, i), kind_colour(kinds[i]));
        char *said = describe_record(track, track->trace->runs[i].record[0]);
        assert_contains(said, kinds[i]);
        free(said);
    }
    end_view(view);
    free(path);
}

/* ---- names, bars and tables -------------------------------------------------------------------------------------- */

/* Where a bar has its name, the pixels are those without a line of the mouse, of a mark or of an edge. */
TEST(no_line_runs_through_a_name)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    run_script(view, "pagedown k k");
    struct canvas *bare = new_picture(view);
    run_script(view, "click:620,118");
    int y;
    int x = bar_at(view, "stage0 compute", 4, &y);
    run_script(view, lasting("move:%d,%d t move:%d,%d", x + 2, y, x + 4, y));
    struct canvas *lines = new_picture(view);
    int crossed = 0;
    for (int at = x - 3; at <= x + 6; at++) {
        int name = y * bare->width + at, edge = (y - 10) * bare->width + at;
        assert_int_equal(lines->pixels[name], bare->pixels[name]);
        if (lines->pixels[edge] != bare->pixels[edge])
            crossed++;
    }
    assert_above(crossed, 0);
    free_canvas(bare);
    free_canvas(lines);
    end_view(view);
    free(trace);
}

/* Is all of what begins there and has that size before `from`, or from `to` on? */
static bool is_beside(int begin, int size, int from, int to) { return begin >= to || begin + size <= from; }

/* The table hides nothing of a stretch that leaves room for it at a side, and nothing of a place's row. */
TEST(a_table_stands_beside_what_it_is_about)
{
    enum { AIR = 6 };
    char *trace = trace_of_list("data/steps/1f1b.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    run_script(view, "pagedown");
    const struct box rows = places_of(view).rows, size = {.w = 400, .h = 170};
    for (uint32_t n = 0; n < 200; n++) {
        struct random4 random4 = random_words(29, STREAM_TEST, 0, n);
        int from = rows.x + (int)(random4.word[0] % (unsigned)rows.w),
            to = rows.x + (int)(random4.word[1] % (unsigned)rows.w);
        int left = MIN(from, to), right = MAX(from, to);
        bool room = left - rows.x > size.w + AIR || rows.x + rows.w - right > size.w + AIR;
        view->selection.region = (struct region){.kind = STRETCH, .at = {axis_at(view, from), axis_at(view, to)}};
        struct box at = place_panel(view, size);
        assert_at_least(at.x, rows.x);
        assert_at_most(at.x + at.w, rows.x + rows.w);
        assert_at_least(at.y, rows.y);
        assert_at_most(at.y + at.h, rows.y + rows.h);
        if (room)
            assert_true(is_beside(at.x, at.w, left, right));
        view->selection.region = (struct region){.kind = PLACE, .at = {axis_at(view, from), axis_at(view, from)}};
        view->selection.region.device = random4.word[2] % 4;
        at = place_panel(view, size);
        const struct view_row *row = view->layout.rows;
        while (row->kind != ROW_MEMORY || row->index != view->selection.region.device)
            row++;
        assert_true(is_beside(at.y, at.h, row->y, row->y + row->height));
        if (from >= rows.x + AIR && from <= rows.x + rows.w - AIR)
            assert_true(is_beside(at.x, at.w, from, from));
    }
    view->selection.region.kind = NO_REGION;
    end_view(view);
    free(trace);
}

/* A table that has more lines than there is room for leaves the row as it was, but for the line of the place. */
TEST(a_long_table_hides_nothing_of_its_row)
{
    char *text = copy_string("device a memory=1G\n");
    for (int i = 0; i < 60; i++)
        append_text(&text, "tensor t%d a 4M work\ntask w%d a.compute 1ms writes=t%d\n", i, i, i);
    for (int i = 0; i < 60; i++)
        append_text(&text, "task r%d a.compute 1ms reads=t%d\ntask d%d a.download 1ms reads=t%d\n", i, i, i, i);
    char *trace = trace_of_list(write_file("long.txt", text, strlen(text)));
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    run_script(view, "pagedown");
    struct canvas *before = new_picture(view);
    const struct view_row *row = view->layout.rows;
    while (row->kind != ROW_MEMORY)
        row++;
    int y = row->y, high = row->height, left = places_of(view).rows.x;
    run_script(view, lasting("click:600,%d", y + high / 2));
    struct canvas *after = new_picture(view);
    assert_at_least(view->selection.panel.n, 40);
    assert_int_equal(view->layout.rows[row - view->layout.rows].y, y);
    int differ = 0;
    for (int at = y; at < y + high; at++)
        for (int x = left; x < left + places_of(view).rows.w; x++)
            if (before->pixels[at * view->width + x] != after->pixels[at * view->width + x])
                differ++;
    assert_at_most(differ, high);
    free_canvas(before);
    free_canvas(after);
    end_view(view);
    free(trace);
    free(text);
}

/* Draws a step of tasks F and W, a millisecond each, of that layer in a view of so many pixels. */
static struct canvas *picture_of_letters(int width, int layer, struct view **view)
{
    char *text = copy_string("device a memory=1G\ntensor w a 4M parameters keep\ntensor g a 4M gradients\n");
    for (int i = 0; i < 40; i++)
        append_text(&text, "task %s a.compute 1ms layer=%d %s\n", i % 2 ? "W" : "F", layer,
                    i % 2 ? "role=backward writes=g" : "role=forward reads=w");
    char *trace = trace_of_list(write_file("letters.txt", text, strlen(text)));
    *view = open_test_view(trace, NULL, width, 400, 1);
    run_script(*view, "k k pagedown");
    free(trace);
    free(text);
    return new_picture(*view);
}

/* Bars of one width have numbers beside their letters, or none has. */
TEST(letters_have_numbers_together)
{
    int with = 0;
    for (int width = LEAST_WIDTH; width < 2000; width += 40) {
        struct view *views[2];
        struct canvas *canvas[2];
        bool differs[2] = {false};
        for (int i = 0; i < 2; i++)
            canvas[i] = picture_of_letters(width, 3 + i, &views[i]);
        const struct view_row *row = &views[0]->layout.rows[1];
        for (int i = 0; i < 2; i++) {
            int from = (int)x_of(views[0], 1e6 * i) + 1, to = (int)x_of(views[0], 1e6 * (i + 1)) - 1;
            for (int y = row->y; y < row->y + row->height; y++)
                for (int x = from; x < to; x++)
                    differs[i] |= canvas[0]->pixels[y * width + x] != canvas[1]->pixels[y * width + x];
        }
        assert_int_equal(differs[0], differs[1]);
        with += differs[0];
        for (int i = 0; i < 2; i++) {
            free_canvas(canvas[i]);
            end_view(views[i]);
        }
    }
    assert_above(with, 0);
}

/* A name that fits only in small letters is there, however high the row is. */
TEST(a_high_row_has_as_many_names_as_a_low_one)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    for (int zoom = 0; zoom < 8; zoom++) {
        int named[2] = {0};
        for (int high = 0; high < 2; high++) {
            struct view *view = open_test_view(trace, NULL, 1280, high ? 1600 : 720, 1);
            run_script(view, "pagedown");
            look_at(view, 0, 54e6 * (1 + zoom / 4.0));
            struct canvas *canvas = new_picture(view);
            const struct view_row *row = &view->layout.rows[1];
            const struct bars *bars = &view->tracks[0]->trace->bars[row->index];
            assert_int_equal(row->height >= 30, high);
            for (size_t i = 0; i < bars->n; i++) {
                int from = (int)x_of(view, axis_of(view->tracks[0], bars->items[i].start)) + 2;
                int to = (int)x_of(view, axis_of(view->tracks[0], bars->items[i].end)) - 2;
                const uint32_t *line = canvas->pixels + (row->y + row->height / 2) * canvas->width;
                bool has_name = false;
                for (int x = MAX(from, places_of(view).rows.x); x < MIN(to, 1260); x++)
                    has_name |= line[x] != line[MAX(from, places_of(view).rows.x)];
                named[high] += has_name;
            }
            free_canvas(canvas);
            end_view(view);
        }
        assert_at_least(named[1], named[0]);
    }
    free(trace);
}

/* However far one looks into it, what takes no time takes a nanosecond at most, all of it together. */
TEST(bars_without_length_share_their_place)
{
    const char *path = temp_path("moment.trace");
    struct trace_writer *writer = begin_trace(path);
    for (uint32_t n = 0; n < 100; n++)
        end_trace_record(writer, begin_trace_record(writer, 1, 0, 5000), 5000, 5000, 0);
    close_trace_writer(writer);
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    struct canvas *canvas = new_picture(view);
    struct box rows = places_of(view).rows;
    const struct view_row *row = row_of_lane(view, 0, 0);
    int drawn = 0;
    for (int x = rows.x; x < rows.x + rows.w; x++)
        if (canvas->pixels[(row->y + row->height / 2) * canvas->width + x] != PAPER)
            drawn++;
    assert_above(drawn, 0);
    assert_at_most(drawn, 1 + rows.w / (view->sight.to - view->sight.from));
    free_canvas(canvas);
    end_view(view);
}

/* A task that is queued while another one runs has its dots behind that one's bar, not across it. */
TEST(what_is_queued_waits_behind_the_bar_before)
{
    const char *path = temp_path("queued.trace");
    struct trace_writer *writer = begin_trace(path);
    end_trace_record(writer, begin_trace_record(writer, 1, 0, 0), 1000, 5000, 0);
    end_trace_record(writer, begin_trace_record(writer, 1, 0, 2000), 7000, 9000, 0);
    close_trace_writer(writer);
    struct view *view = open_test_view(path, NULL, 1280, 720, 1);
    struct canvas *canvas = new_picture(view);
    const struct track *track = view->tracks[0];
    const struct view_row *row = row_of_lane(view, 0, 0);
    const uint32_t *line = canvas->pixels + (row->y + row->height / 2) * canvas->width;
    int first = (int)x_of(view, axis_of(track, 1500));
    int last = (int)x_of(view, axis_of(track, 4900));
    int behind = (int)x_of(view, axis_of(track, 6000));
    for (int x = last - 20; x < last; x++) /* beside its name */
        assert_int_equal(line[x], line[first]);
    assert_int_equal(line[behind], PAPER);
    const struct box bar = {first, row->y, last - first, row->height};
    const struct box after = {behind, row->y, 2 * QUEUED_APART, row->height};
    assert_false(has_colour(canvas, bar, QUEUED));
    assert_true(has_colour(canvas, after, QUEUED));
    free_canvas(canvas);
    end_view(view);
}

/* A pace changes the numbers at the axis, and neither the rows' pixels nor how busy a stretch is. */
TEST(a_pace_leaves_the_rows_as_they_are)
{
    char *trace = trace_of_list("data/steps/zero-bubble.txt");
    struct view *view = open_test_view(trace, NULL, 1280, 720, 1);
    struct canvas *canvas[] = {new_canvas(view->width, view->height), new_canvas(view->width, view->height)};
    double share[2] = {0};
    for (int i = 0; i < 2; i++) {
        ((struct trace *)view->tracks[0]->trace)->header.pace_scale = i ? 1.0 / 64 : 1;
        run_script(view, "move:0,0 0 - - -");
        draw_view(view, canvas[i]);
        run_script(view, "measure:300,70,900,70");
        json_t *shares = table_json(view->selection.panel.table), *row;
        size_t n;
        json_array_foreach(shares, n, row) { share[i] += json_number_value(json_object_get(row, "share")); }
        json_decref(shares);
        run_script(view, "escape");
    }
    assert_above(share[0], 0);
    assert_close(share[0], share[1], 1e-6);
    struct box rows = places_of(view).rows;
    size_t from = (size_t)(rows.y * view->width), bytes = (size_t)(rows.h * view->width) * sizeof *canvas[0]->pixels;
    assert_memory_equal(canvas[0]->pixels + from, canvas[1]->pixels + from, bytes);
    free_canvas(canvas[0]);
    free_canvas(canvas[1]);
    end_view(view);
    free(trace);
}
