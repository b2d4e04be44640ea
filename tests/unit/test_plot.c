/* test_plot.c - yard plot: what it prints, its picture read back, and what it refuses. */
#include "tests/support/child.h"
#include "tools/plot/plot.h"
#include "trainer/cmd/cmd.h"
#include "trainer/file/file.h"

#include <zlib.h>

static char *write_log(const char *name, const char *text) { return write_file(name, text, strlen(text)); }

static const char *const log_text =
    "{\"run\":{}}\n"
    "{\"step\":1,\"loss\":4.0}\n{\"step\":2,\"loss\":3.0}\n{\"step\":2,\"val_loss\":3.5}\n"
    "{\"step\":3,\"loss\":null}\n{\"step\":4,\"loss\":2.0}\n{\"step\":4,\"val_loss\":2.5}\n"
    "{\"step\":5,\"lo"; /* being written */

static struct point train[] = {{1, 4}, {2, 3}, {4, 2}}, val[] = {{2, 3.5}, {4, 2.5}};
static struct series series[] = {{"a.jsonl", "train", 0, false, 0, train, 3, 3},
                                 {"a.jsonl", "val", 0, true, 0, val, 2, 2}};
static const struct plot plot = {"loss", series, 2, 2};

static char *printed(int columns, int rows, bool colour)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    draw_on_terminal(f, &plot, columns, rows, colour);
    fclose(f);
    return text;
}

TEST(letters)
{
    char *text = printed(40, 9, false);
    assert_string_equal(text, "       4 |**                           \n"
                              "         |  **                         \n"
                              "         |    **   ooo                 \n"
                              "         |      **    ooooo            \n"
                              "       3 |        ****     oooo        \n"
                              "         |            *****    ooooo   \n"
                              "         |                 ****     ooo\n"
                              "         |                     *****   \n"
                              "       2 |                          ***\n"
                              "         +-----------------------------\n"
                              "     step          2                  4\n"
                              "        *  a.jsonl train: last 2.0000, lowest 2.0000 at step 4\n"
                              "        o  a.jsonl val: last 2.5000, lowest 2.5000 at step 4\n");
    free(text);
}

TEST(colours)
{
    char *text = printed(40, 9, true);
    assert_non_null(strstr(text, "\033[34m*"));   /* training */
    assert_non_null(strstr(text, "\033[1;94mo")); /* validation */
    free(text);
}

/* ---- the picture ----------------------------------------------------------------------------------------------- */

static uint32_t number_at(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The chunk at *at, of a known type, whose checksum is right. */
static const unsigned char *next_chunk(const unsigned char *file, size_t size, size_t *at, const char *type,
                                       uint32_t *n)
{
    assert_true(*at + 12 <= size);
    const unsigned char *chunk = file + *at;
    *n = number_at(chunk);
    assert_true(*n <= size - *at - 12);
    assert_memory_equal(chunk + 4, type, 4);
    assert_int_equal(number_at(chunk + 8 + *n), crc32(0, chunk + 4, *n + 4));
    *at += 12 + *n;
    return chunk + 8;
}

TEST(a_picture_is_read_back)
{
    const char *path = temp_path("plot.png");
    struct canvas *c = draw_picture(&plot, 301, 200);
    write_png(path, c->pixels, c->width, c->height);
    size_t size, at = 8;
    uint32_t n;
    unsigned char *file = (unsigned char *)read_whole(path, &size), rows[200 * (3 * 301 + 1)];
    assert_memory_equal(file, "\x89PNG\r\n\x1a\n", 8);
    const unsigned char *head = next_chunk(file, size, &at, "IHDR", &n);
    assert_int_equal(number_at(head), 301);
    assert_int_equal(number_at(head + 4), 200);
    assert_memory_equal(head + 8, "\x08\x02\0\0\0", 5);
    const unsigned char *data = next_chunk(file, size, &at, "IDAT", &n);
    uLongf bytes = sizeof rows;
    assert_int_equal(uncompress(rows, &bytes, data, n), Z_OK);
    assert_int_equal(bytes, sizeof rows);
    next_chunk(file, size, &at, "IEND", &n);
    assert_int_equal(at, size);
    size_t coloured = 0;
    for (size_t i = 0; i < 200 * 301; i++) {
        const unsigned char *p = rows + i / 301 * (3 * 301 + 1) + 1 + i % 301 * 3;
        assert_int_equal(c->pixels[i], 0xff000000u | (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2]);
        coloured += c->pixels[i] == 0xff0072b2;
    }
    assert_true(coloured > 200); /* the validation curve */
    free(file);
    free_canvas(c);
}

/* What lies outside of the canvas is not drawn. */
TEST(drawing_is_cut_at_the_edges)
{
    struct canvas *c = new_canvas(8, 4);
    fill_rect(c, -5, -5, 6, 6, 1);
    fill_rect(c, 7, 3, INT32_MAX, INT32_MAX, 2);
    fill_rect(c, 3, 3, -2, 1, 9);
    draw_line(c, -40000, 2, 40000, 2, 3);
    draw_line(c, 4, -9, 4, -1, 9);
    draw_text(c, 100, -100, 2, "cut", 9);
    const uint32_t expected[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                 3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 2};
    assert_memory_equal(c->pixels, expected, sizeof expected);
    free_canvas(c);
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

struct command {
    int argc;
    char *argv[8];
};
#define COMMAND(...) (&(struct command){COUNT(((char *[]){__VA_ARGS__})), {__VA_ARGS__}})

static void run(void *argument)
{
    struct command *c = argument;
    if (!freopen("/dev/null", "w", stdout))
        _exit(99);
    _exit(find_command("plot")->run(c->argc, c->argv));
}

static void refuse(const char *text, const char *part)
{
    expect_refusal(run, COMMAND((char *)write_log("bad.jsonl", text)), EXIT_FAILED, part);
}

TEST(mistakes_get_a_sentence)
{
    char *good = write_log("good.jsonl", log_text);
    expect_refusal(run, COMMAND(temp_path("none.jsonl")), EXIT_IO, "none.jsonl");
    expect_refusal(run, &(struct command){.argc = 0}, EXIT_USAGE, "needs a log");
    expect_refusal(run, COMMAND(good, "--png", good), EXIT_USAGE, "overwrite");
    char *finite = (char *)write_log("finite.jsonl", "{\"step\":1,\"loss\":4}\n");
    expect_refusal(run, COMMAND(finite, "--png", "/nowhere/x.png"), EXIT_IO, "/nowhere/x.png");
    refuse("step 1 loss 4\n", "line 1 is no JSON object");
    refuse("{\"step\":1,\"loss\":4}\n[1]\n", "line 2 is no JSON object");
    refuse("{\"step\":\"x\",\"loss\":4}\n", "no number of a step");
    refuse("{\"run\":{}}\n", "holds no losses;");
    refuse("", "holds no losses");
    refuse("{\"step\":1,\"loss\":null}\n", "no losses that are finite");
    struct outcome o = run_child(run, COMMAND(good));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.text, "not finite: 1 losses"));
    o = run_child(
        run, COMMAND((char *)write_log("huge.jsonl", "{\"step\":0,\"loss\":-9e299}\n{\"step\":0,\"loss\":9e299}\n")));
    assert_int_equal(o.code, 0);
}
