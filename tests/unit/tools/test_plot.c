/* test_plot.c - `yard plot`: what it prints, the picture that it draws, and what it refuses.
 *
 * It tests src/tools/plot, and src/tools/picture below it.  It checks that a point of the log is where its step and its
 * loss say, also when the picture is read back; that means are those of their own steps; and that nothing is drawn
 * outside its frame.  It catches a step that is left out, an axis that begins elsewhere, and text without its letters.
 *
 * To see it fail: in plot_values.c, drop the step that --from names too: > in place of >=.
 *
 * The logs are texts in this program.  They are so small that the places of points follow from them.
 */
#include "tests/support/child.h"
#include "tools/plot/plot.h"
#include "trainer/cmd/cmd.h"
#include "trainer/file/file.h"

#include <math.h>
#include <zlib.h>

static char *write_log_file(const char *name, const char *text) { return write_file(name, text, strlen(text)); }

static const char *const log_text =
    "{\"run\":{}}\n"
    "{\"step\":1,\"loss\":4.0}\n{\"step\":2,\"loss\":3.0}\n{\"step\":2,\"val_loss\":3.5}\n"
    "{\"step\":3,\"loss\":null}\n{\"step\":4,\"loss\":2.0}\n{\"step\":4,\"val_loss\":2.5}\n"
    "{\"step\":5,\"lo"; /* being written */

static struct point train[] = {{1, 4}, {2, 3}, {4, 2}}, val[] = {{2, 3.5}, {4, 2.5}};
static struct series series[] = {
    {.path = "a.jsonl", .kind = TRAIN, .points = train, .n = 3, .cap = 3},
    {.path = "a.jsonl", .kind = VAL, .points = val, .n = 2, .cap = 2},
};
static const struct plot plot = {.unit = "loss", .series = series, .n = 2, .cap = 2};

enum { PLAIN = false, COLOURED = true, LETTERS = false, BRAILLE = true }; /* for printed() */

static char *printed(const struct plot *shown, int columns, int rows, bool colour, bool braille)
{
    char *text = NULL;
    size_t n = 0;
    FILE *file = open_memstream(&text, &n);
    draw_on_terminal(file, shown, columns, rows, colour, braille);
    fclose(file);
    return text;
}

/* The plot in 60 columns and 9 rows of the terminal. */
static void assert_drawn(bool braille, const char *rows)
{
    char *text = printed(&plot, 60, 9, PLAIN, braille);
    char *expected = format_string("    loss\n%s"
                                   "         +-------------------------------------------------\n"
                                   "     step 1               2               3               4\n"
                                   "        a  a.jsonl train: last 2.0000, lowest 2.0000 at step 4\n"
                                   "        A  a.jsonl val: last 2.5000, lowest 2.5000 at step 4\n",
                                   rows);
    assert_string_equal(text, expected);
    free(expected);
    free(text);
}

TEST(curves_of_letters_are_drawn)
{
    assert_drawn(LETTERS, "       4 |aa                                               \n"
                          "         |  aaaa                                           \n"
                          "         |      aaaa      AAAA                             \n"
                          "         |          aaaa      AAAAAAAA                     \n"
                          "       3 |              aaaaaa        AAAAAAAA             \n"
                          "         |                    aaaaaaaa        AAAAAAAA     \n"
                          "         |                            aaaaaaaa        AAAAA\n"
                          "         |                                    aaaaaaaa     \n"
                          "       2 |                                            aaaaa\n");
}

TEST(curves_of_braille_are_drawn)
{
    assert_drawn(BRAILLE, "       4 |a⢄⡀                                              \n"
                          "         |  ⠈⠑⠢⢄⡀                                          \n"
                          "         |      ⠈⠑⠢⢄⡀     A⠤⠤⣀⣀                            \n"
                          "         |          ⠈⠑⠢⢄⡀      ⠉⠉⠒⠒⠤⠤⣀⡀                    \n"
                          "       3 |              ⠈⠑a⠤⠤⣀⣀       ⠈⠉⠑⠒⠢⠤⢄⣀⡀            \n"
                          "         |                     ⠉⠉⠒⠒⠤⠤⣀⡀       ⠈⠉⠒⠒⠤⠤⣀⣀     \n"
                          "         |                            ⠈⠉⠑⠒⠢⠤⢄⣀⡀       ⠉⠉⠒⠒A\n"
                          "         |                                    ⠈⠉⠒⠒⠤⠤⣀⣀     \n"
                          "       2 |                                            ⠉⠉⠒⠒a\n");
}

TEST(colours_tell_training_from_validation)
{
    char *text = printed(&plot, 40, 9, COLOURED, LETTERS);
    assert_contains(text, "\033[38;5;25ma");   /* training */
    assert_contains(text, "\033[1;38;5;25mA"); /* validation */
    free(text);
}

/* The curve of a run that lies under another one's is named beside that one's. */
TEST(equal_runs_are_named)
{
    struct point other[] = {{1, 4}, {2, 3}, {4, 2.5}};
    struct series runs[] = {
        {.path = "a.jsonl", .kind = TRAIN, .run_number = 0, .points = train, .n = 3, .cap = 3},
        {.path = "b.jsonl", .kind = TRAIN, .run_number = 1, .points = other, .n = 3, .cap = 3},
        {.path = "c.jsonl", .kind = TRAIN, .run_number = 2, .points = train, .n = 3, .cap = 3},
        {.path = "d.jsonl", .kind = TRAIN, .run_number = 3, .points = train, .n = 2, .cap = 2},
    };
    const struct plot four = {.unit = "loss", .series = runs, .n = 4, .cap = 4};
    char *text = printed(&four, 60, 9, false, false);
    assert_contains(text, "a.jsonl train: last 2.0000, lowest 2.0000 at step 4\n");
    assert_contains(text, "c.jsonl train: last 2.0000, lowest 2.0000 at step 4, the same as a.jsonl\n");
    free(text);
    for (size_t i = 0; i < COUNT(runs); i++)
        assert_ptr_equal(same_before(&four, &runs[i]), (i == 2 ? &runs[0] : NULL));
    struct canvas *with = draw_picture(&four, 800, 400);
    struct point close[] = {{1, 4}, {2, 3 + 1e-9}, {4, 2}}; /* the same pixels, but other losses */
    runs[2].points = close;
    struct canvas *without = draw_picture(&four, 800, 400);
    assert_memory_not_equal(with->pixels, without->pixels, 800 * 400 * sizeof *with->pixels);
    free_canvas(with);
    free_canvas(without);
}

/* ---- what is drawn ----------------------------------------------------------------------------------------------- */

static void add_point(struct series *to, struct point point)
{
    GROW(to->points, to->cap, to->n + 1);
    to->points[to->n++] = point;
}

static struct series *add_series(struct plot *to, struct series added)
{
    GROW(to->series, to->cap, to->n + 1);
    to->series[to->n++] = added;
    return &to->series[to->n - 1];
}

/* A plot of one run with these training losses, at steps from 1 on, and that floor; 0: it has none. */
static struct plot make_plot(const double *losses, size_t n, double floor)
{
    struct plot made = {.unit = "loss"};
    struct series *of_run = add_series(&made, (struct series){.path = "run.jsonl", .kind = TRAIN});
    for (size_t i = 0; i < n; i++)
        add_point(of_run, (struct point){(double)i + 1, losses[i]});
    if (floor > 0) {
        of_run = add_series(&made, (struct series){.path = "run.jsonl", .kind = FLOOR});
        add_point(of_run, (struct point){1, floor});
    }
    return made;
}

static void assert_near(double a, double b) { assert_close(a, b, 1e-12); }

/* The mean of as many steps as there are is their mean, at the step in the middle; of constant losses every mean is
 * that constant; and the single losses are still there. */
TEST(means_are_those_of_their_steps)
{
    const double losses[] = {5, 1, 4, 2, 3, 9, 4};
    struct plot smooth = make_plot(losses, COUNT(losses), 0);
    smooth_losses(&smooth, COUNT(losses));
    assert_int_equal(smooth.series[0].n, 1);
    assert_near(smooth.series[0].points->step, 4);
    assert_near(smooth.series[0].points->loss, 4);
    assert_string_equal(smooth.smoothing, "mean of 7 steps");
    assert_int_equal(smooth.series[1].kind, EACH_STEP);
    assert_int_equal(smooth.series[1].n, COUNT(losses));
    assert_near(smooth.series[1].points[5].loss, 9);
    empty_plot(&smooth);

    smooth = make_plot(losses, COUNT(losses), 0);
    smooth_losses(&smooth, 3);
    assert_int_equal(smooth.series[0].n, 5);
    for (int i = 0; i < 5; i++) {
        assert_near(smooth.series[0].points[i].step, i + 2);
        assert_near(smooth.series[0].points[i].loss, (losses[i] + losses[i + 1] + losses[i + 2]) / 3);
    }
    empty_plot(&smooth);

    smooth = make_plot(losses, COUNT(losses), 0);
    smooth_losses(&smooth, 0.5);
    assert_near(smooth.series[0].points[0].loss, 5);
    assert_near(smooth.series[0].points[1].loss, (5 * 0.25 + 1 * 0.5) / 0.75);
    empty_plot(&smooth);

    const double same[] = {2, 2, 2, 2};
    smooth = make_plot(same, COUNT(same), 0);
    smooth_losses(&smooth, 0.9);
    for (int i = 0; i < 4; i++)
        assert_near(smooth.series[0].points[i].loss, 2);
    empty_plot(&smooth);
}

/* One huge loss is in the means of the steps around it, and in no later one. */
TEST(a_spike_is_in_its_own_means_only)
{
    enum { STEPS = 100, SPIKE = 20, WINDOW = 4 };
    double losses[STEPS];
    for (int i = 0; i < STEPS; i++)
        losses[i] = i == SPIKE ? 1e30 : 2;
    struct plot smooth = make_plot(losses, STEPS, 0);
    smooth_losses(&smooth, WINDOW);
    assert_int_equal(smooth.series[0].n, STEPS - WINDOW + 1);
    for (int i = 0; i < STEPS - WINDOW + 1; i++) {
        bool has_spike = i <= SPIKE && SPIKE < i + WINDOW;
        assert_near(smooth.series[0].points[i].loss, has_spike ? 1e30 / WINDOW : 2);
    }
    empty_plot(&smooth);
}

/* A loss that halves its way to the floor with each step is a straight line on a logarithmic axis. */
TEST(a_logarithmic_axis_shows_what_is_above_the_floor)
{
    const double losses[] = {9, 5, 3, 2, 1.5};
    struct plot above = make_plot(losses, COUNT(losses), 1);
    take_logarithms(&above);
    merge_floors(&above);
    assert_int_equal(above.n, 1); /* the floor itself is infinitely far below */
    assert_string_equal(above.unit, "loss above the floor, logarithmic");
    struct frame frame = {.width = 100, .height = 1000};
    fit_axes(&frame, &above, 5, 5);
    int fall = y_of_loss(&frame, 4, 1) - y_of_loss(&frame, 8, 1);
    assert_above(fall, 100);
    for (double loss = 4; loss > 0.5; loss /= 2)
        assert_in_range(y_of_loss(&frame, loss / 2, 1) - y_of_loss(&frame, loss, 1), fall - 1, fall + 1);
    assert_at_least(y_of_loss(&frame, 0, 1), frame.height); /* below the axis */
    for (int i = 0; i < frame.loss.n; i++) {
        assert_at_least(frame.loss.tick[i], frame.loss.low);
        assert_at_most(frame.loss.tick[i], frame.loss.high);
    }
    assert_at_least(frame.loss.n, 3);
    assert_at_most(frame.loss.n, 5);
    empty_plot(&above);
}

/* One of a hundred losses is left out if it is far below the rest, but neither if it is a little below nor the last. */
TEST(a_logarithmic_axis_leaves_out_what_is_far_below)
{
    for (int far = 0; far < 2; far++) {
        double losses[100];
        for (int i = 0; i < 100; i++)
            losses[i] = 4 - 0.03 * i;
        losses[50] = far ? 1e-6 : 0.8;
        losses[99] = far ? 0.2 : 0.9;
        struct plot made = make_plot(losses, COUNT(losses), 0);
        made.log = true;
        struct frame frame = {.width = 100, .height = 1000};
        fit_axes(&frame, &made, 5, 10);
        assert_int_equal(count_below(&frame, &made, TRAIN), far);
        assert_below(y_of_loss(&frame, losses[99], 1), frame.height);
        assert_at_least(frame.loss.n, 5);
        empty_plot(&made);
    }
}

/* Curves have most of the axis: a floor that would take more than a quarter is not on it, and not counted as a loss. */
TEST(a_floor_far_below_is_only_named)
{
    for (int far = 0; far < 2; far++) {
        const double losses[] = {9, 6}, floor = far ? 4.9 : 5.1;
        struct plot made = make_plot(losses, COUNT(losses), floor);
        struct frame frame = {.width = 100, .height = 1000};
        char text[128];
        fit_axes(&frame, &made, 5, 10);
        for (size_t i = 0; i < made.n; i++) {
            bool below = far && is_bound(&made.series[i]);
            assert_int_equal(is_below_axis(&frame, &made.series[i]), below);
            assert_int_equal(strstr(series_values(text, &frame, &made.series[i]), "below the axis") != NULL, below);
        }
        assert_int_equal(count_below(&frame, &made, EACH_STEP), 0);
        assert_above(y_of_loss(&frame, 9, 1), 0); /* the top of the axis is above the largest loss */
        empty_plot(&made);
    }
}

TEST(of_equal_lows_the_earlier_is_named)
{
    const double losses[] = {3, 2, 4, 2};
    struct plot made = make_plot(losses, COUNT(losses), 0);
    struct frame frame = {.width = 100, .height = 100};
    char text[128];
    assert_string_equal(series_values(text, &frame, &made.series[0]), "last 2.0000, lowest 2.0000 at step 2");
    empty_plot(&made);
}

TEST(ticks_of_steps_are_whole)
{
    const double losses[] = {3, 2};
    struct plot made = make_plot(losses, COUNT(losses), 0);
    struct frame frame = {.width = 100, .height = 100};
    fit_axes(&frame, &made, 10, 5);
    assert_int_equal(frame.step.n, 2);
    assert_near(frame.step.tick[0], 1);
    assert_near(frame.step.tick[1], 2);
    empty_plot(&made);
}

/* A floor that two runs share is drawn once, and two different floors are both drawn. */
TEST(a_floor_that_runs_share_is_drawn_once)
{
    for (int other = 0; other < 2; other++) {
        const double losses[] = {3, 2};
        struct plot both = make_plot(losses, COUNT(losses), 1);
        struct plot second = make_plot(losses, COUNT(losses), 1 + other);
        for (size_t i = 0; i < second.n; i++) {
            struct series *added = add_series(&both, second.series[i]);
            added->run_number = 1;
        }
        merge_floors(&both);
        assert_int_equal(both.n, 3 + other);
        assert_int_equal(both.one_floor, !other);
        free(second.series); /* its points are those of `both` */
        empty_plot(&both);
    }
}

/* ---- the picture ------------------------------------------------------------------------------------------------- */

static uint32_t big_endian_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The chunk at *at, of a known type, whose checksum is right. */
static const unsigned char *next_chunk(const unsigned char *file, size_t size, size_t *at, const char *type,
                                       uint32_t *n)
{
    assert_at_most(*at + 12, size);
    const unsigned char *chunk = file + *at;
    *n = big_endian_at(chunk);
    assert_at_most(*n, size - *at - 12);
    assert_memory_equal(chunk + 4, type, 4);
    assert_int_equal(big_endian_at(chunk + 8 + *n), crc32(0, chunk + 4, *n + 4));
    *at += 12 + *n;
    return chunk + 8;
}

TEST(a_picture_is_read_back)
{
    const char *path = temp_path("plot.png");
    struct canvas *canvas = draw_picture(&plot, 301, 200);
    write_png(path, canvas->pixels, canvas->width, canvas->height);
    size_t size, at = 8;
    uint32_t n;
    unsigned char *file = (unsigned char *)read_whole(path, &size);
    unsigned char rows[200 * (3 * 301 + 1)];
    assert_memory_equal(file, "\x89PNG\r\n\x1a\n", 8);
    const unsigned char *head = next_chunk(file, size, &at, "IHDR", &n);
    assert_int_equal(big_endian_at(head), 301);
    assert_int_equal(big_endian_at(head + 4), 200);
    assert_memory_equal(head + 8, "\x08\x02\0\0\0", 5);
    const unsigned char *data = next_chunk(file, size, &at, "IDAT", &n);
    uLongf bytes = sizeof rows;
    assert_int_equal(uncompress(rows, &bytes, data, n), Z_OK);
    assert_int_equal(bytes, sizeof rows);
    next_chunk(file, size, &at, "IEND", &n);
    assert_int_equal(at, size);
    size_t coloured = 0;
    for (size_t i = 0; i < 200 * 301; i++) {
        const unsigned char *pixel = rows + i / 301 * (3 * 301 + 1) + 1 + i % 301 * 3;
        assert_int_equal(canvas->pixels[i],
                         0xff000000u | (uint32_t)pixel[0] << 16 | (uint32_t)pixel[1] << 8 | pixel[2]);
        if (canvas->pixels[i] == 0xff0072b2)
            coloured++;
    }
    assert_above(coloured, 150); /* the validation curve */
    free(file);
    free_canvas(canvas);
}

/* Strokes outside of the canvas are not drawn. */
TEST(drawing_is_cut_at_the_edges)
{
    struct canvas *canvas = new_canvas(8, 4);
    fill_rect(canvas, -5, -5, 6, 6, 1);
    fill_rect(canvas, 7, 3, INT32_MAX, INT32_MAX, 2);
    fill_rect(canvas, 3, 3, -2, 1, 9);
    draw_line(canvas, -40000, 2, 40000, 2, 3);
    draw_line(canvas, 4, -9, 4, -1, 9);
    draw_text(canvas, 100, -100, NORMAL_2X, "cut", 9);
    const uint32_t expected[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                 3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 2};
    assert_memory_equal(canvas->pixels, expected, sizeof expected);
    free_canvas(canvas);
}

/* The columns from `from` to `to` in which anything is drawn; each of the canvas is as high as a line. */
static int inked(const struct canvas *canvas, int from, int to)
{
    int n = 0;
    for (int x = from; x < to; x++) {
        bool any = false;
        for (int y = 0; y < canvas->height; y++)
            any |= canvas->pixels[y * canvas->width + x] != 0xffffffff;
        n += any;
    }
    return n;
}

static struct canvas *canvas_with(enum font font, const char *text, int right)
{
    struct canvas *canvas = new_canvas(300, 2 * GLYPH_HEIGHT);
    fill_rect(canvas, 0, 0, canvas->width, canvas->height, 0xffffffff);
    draw_text_within(canvas, &(struct text_place){10, 0, right}, font, text, 0xff000000);
    return canvas;
}

/* A text that is cut keeps at least two letters or digits in front of the ellipsis, or nothing. */
TEST(cut_text_says_something)
{
    static const char *const texts[] = {"<- 256, 16", "forward", "→ Ωμέγα"};
    static const char *const two_of[] = {"<- 25", "fo", "→ Ωμ"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        int wide = text_width(NORMAL_1X, texts[i]);
        int needed = text_width(NORMAL_1X, two_of[i]) + text_width(NORMAL_1X, "…");
        for (int room = 0; room <= wide; room++) {
            struct canvas *canvas = canvas_with(NORMAL_1X, texts[i], 10 + room);
            assert_int_equal(inked(canvas, 0, canvas->width) > 0, room >= MIN(needed, wide));
            free_canvas(canvas);
        }
    }
}

/* Letters that people have names in, and the symbols that the viewer writes: all are drawn, smoothed, within the text's
 * width, and none is the sign for what is unknown.  Digits stand one below the other. */
TEST(text_has_letters_of_its_own_for_all_that_is_written)
{
    static const char *const words[] = {"Übung", "façade", "Łódź", "Ωμέγα", "αβγ", "µs", "→", "×",
                                        "·",     "…",      "–",    "≤",     "▾",   "▸",  "¾"};
    for (enum font font = SMALL_1X; font <= NORMAL_2X; font++) {
        for (int digit = '1'; digit <= '9'; digit++)
            assert_int_equal(text_width(font, lasting("%c", digit)), text_width(font, "0"));
        for (size_t i = 0; i < COUNT(words); i++) {
            struct canvas *canvas = canvas_with(font, words[i], 300);
            struct canvas *unknown = canvas_with(font, "\uFFFD", 300);
            int end = 10 + text_width(font, words[i]);
            size_t between = 0;
            for (int k = 0; k < canvas->width * canvas->height; k++)
                if (canvas->pixels[k] != 0xffffffff && canvas->pixels[k] != 0xff000000)
                    between++;
            assert_above(inked(canvas, 9, end + 1), 0);
            assert_int_equal(inked(canvas, 0, 9) + inked(canvas, end + 1, 300), 0);
            assert_above(between, 0);
            assert_memory_not_equal(canvas->pixels, unknown->pixels,
                                    (size_t)(canvas->width * canvas->height) * sizeof *canvas->pixels);
            free_canvas(canvas);
            free_canvas(unknown);
        }
    }
    assert_int_equal(text_width(NORMAL_1X, "Übung"), text_width(NORMAL_1X, "U") + text_width(NORMAL_1X, "bung"));
    assert_int_equal(text_width(NORMAL_1X, "\xff\xfe"), 2 * text_width(NORMAL_1X, "\uFFFD")); /* not UTF-8 */
    assert_int_equal(text_width(NORMAL_1X, "a\xc3"), text_width(NORMAL_1X, "a\uFFFD"));       /* cut within a letter */
}

/* Whatever room it has, text does not go beyond it; where it is cut, an ellipsis says so. */
TEST(text_that_does_not_fit_ends_in_an_ellipsis)
{
    const char *text = "Übung macht den Meister";
    for (int right = 0; right < 200; right++) {
        struct canvas *canvas = canvas_with(NORMAL_1X, text, right);
        int room = right - 10;
        assert_int_equal(inked(canvas, MAX(right, 10), 300), 0);
        if (room >= text_width(NORMAL_1X, "Üb…") && room < text_width(NORMAL_1X, text)) {
            struct canvas *whole = canvas_with(NORMAL_1X, text, 300);
            assert_above(inked(canvas, 10, right), 0);
            assert_below(inked(canvas, 10, right), inked(whole, 10, 300));
            free_canvas(whole);
        }
        free_canvas(canvas);
    }
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

struct command {
    int argc;
    char *argv[8];
};
#define COMMAND(...) (&(struct command){COUNT(((char *[]){__VA_ARGS__})), {__VA_ARGS__}})

static void run(void *argument)
{
    struct command *command = argument;
    if (!freopen("/dev/null", "w", stdout))
        _exit(99);
    _exit((int)find_command("plot")->run(command->argc, command->argv));
}

static void refuse(const char *text, const char *part)
{
    expect_refusal(run, COMMAND((char *)write_log_file("bad.jsonl", text)), EXIT_FAILED, part);
}

TEST(mistakes_get_a_sentence)
{
    char *good = write_log_file("good.jsonl", log_text);
    expect_refusal(run, COMMAND(temp_path("none.jsonl")), EXIT_IO, "none.jsonl");
    expect_refusal(run, &(struct command){.argc = 0}, EXIT_USAGE, "needs a log");
    expect_refusal(run, COMMAND(good, "--png", good), EXIT_USAGE, "overwrite");
    char *finite = (char *)write_log_file("finite.jsonl", "{\"step\":1,\"loss\":4}\n");
    expect_refusal(run, COMMAND(finite, "--png", "/nowhere/x.png"), EXIT_IO, "/nowhere/x.png");
    refuse("step 1 loss 4\n", "line 1 is not a JSON object");
    refuse("{\"step\":1,\"loss\":4}\n[1]\n", "line 2 is not a JSON object");
    refuse("{\"step\":\"x\",\"loss\":4}\n", "not the number of a step");
    refuse("{\"run\":{}}\n", "holds no losses;");
    refuse("", "holds no losses");
    refuse("{\"step\":1,\"loss\":null}\n", "no losses that are finite");
    expect_refusal(run, COMMAND(finite, "--smooth", "9"), EXIT_USAGE, "has 1 step: take fewer");
    expect_refusal(run, COMMAND(finite, "--smooth", "2.5"), EXIT_USAGE, "neither a whole number");
    expect_refusal(run, COMMAND(finite, "--from", "99"), EXIT_USAGE, "which is 1");
    char *low = write_log_file("low.jsonl", "{\"floor\":5}\n{\"step\":1,\"loss\":4}\n");
    expect_refusal(run, COMMAND(low, "--log"), EXIT_USAGE, "is above their floor");
    struct outcome outcome = run_child(run, COMMAND(good, low, "--log"));
    assert_int_equal(outcome.code, EXIT_OK);
    assert_contains(outcome.text, "because");
    outcome = run_child(run, COMMAND(good));
    assert_int_equal(outcome.code, EXIT_OK);
    assert_contains(outcome.text, "1 loss is not finite, and is left out");
    outcome = run_child(run, COMMAND((char *)write_log_file(
                                 "huge.jsonl", "{\"step\":0,\"loss\":-9e299}\n{\"step\":0,\"loss\":9e299}\n")));
    assert_int_equal(outcome.code, EXIT_OK);
}
