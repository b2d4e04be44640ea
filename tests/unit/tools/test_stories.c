/* test_stories.c - grammars: the texts that they make, and how well a model can know these.
 *
 * It tests src/tools/stories.  It checks that a grammar without sense is refused at its line, that its entropy is the
 * one that was worked out by hand, and that a model which is trained on its text comes down to the floor, not below it,
 * and learns the grammar's probabilities.  It catches an entropy that forgets a choice, a text that is not drawn as the
 * grammar says, and a floor that a model goes below.
 *
 * To see it fail: in stories.c, let a phrase end a byte early: place->at + 2 in place of + 1.
 *
 * The entropies of small grammars were worked out by hand, as the comments beside them show.
 */
#include "tests/support/support.h"
#include "tests/support/support_training.h"
#include "tools/stories/stories.h"
#include "trainer/base/embedded.h"
#include "trainer/data/data.h"
#include "trainer/file/file.h"

#include <math.h>

static struct stories *grammar(const char *text) { return read_stories("my.txt", copy_string(text)); }

/* The n bytes of the text as tokens; the caller frees them. */
static uint16_t *tokens_of(const char *text, size_t n)
{
    uint16_t *tokens = allocate(n, sizeof *tokens);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (unsigned char)text[i];
    return tokens;
}

/* The mean loss in nats per byte of a story of n bytes, in one window over all of them, the first of which is given. */
static double long_run(const struct stories *stories, size_t n)
{
    char *text = tell_stories(stories, n);
    uint16_t *tokens = tokens_of(text, n);
    double loss = stories_floor(stories, tokens, n, (int)n - 1);
    free(text);
    free(tokens);
    return loss;
}

/* ---- grammars ---------------------------------------------------------------------------------------------------- */

static void read_and_tell(void *text)
{
    struct stories *stories = grammar(text);
    double rate = stories_rate(stories), loss = long_run(stories, 200);
    CHECK(rate >= 0 && rate < 8 && loss >= 0 && isfinite(loss), "rate %g, loss %g", rate, loss);
    free_stories(stories);
}

TEST(wrong_grammars_are_refused)
{
    static const struct {
        const char *grammar, *says;
    } wrong[] = {
        {"", "my.txt has no first scene"},
        {"hello\n", "my.txt:1: expected `table NAME COLUMN...` or `scene NAME TABLE...`, not \"hello\""},
        {"  1 a -> b\n", "my.txt:1: expected `table"},
        {"table\n", "my.txt:1: expected `table NAME COLUMN...`"},
        {"table t a\n x y\nscene a\n 1 x -> a\n", "my.txt:2: expected a word for each column of \"t\""},
        {"table t a b\n x\nscene a\n 1 x -> a\n", "my.txt:2: expected a word for each column of \"t\""},
        {"scene a\n 1 x -> a\nscene a\n 1 x -> a\n", "my.txt:3: there is a scene of that name above"},
        {"scene a\n 1 x -> b\nscene b t\n 1 y -> a\n", "my.txt:3: there is no table \"t\""},
        {"table t a\n x\nscene a t\n 1 {t} -> a\n", "my.txt has no first scene that remembers nothing"},
        {"scene a\n", "my.txt:1: there is nothing below \"a\""},
        {"scene a\n x -> a\n", "my.txt:2: expected `WEIGHT PHRASE -> SCENE`"},
        {"scene a\n 0 x -> a\n", "my.txt:2: expected `WEIGHT PHRASE -> SCENE`"},
        {"scene a\n 1 x\n", "my.txt:2: expected `WEIGHT PHRASE -> SCENE`"},
        {"scene a\n 1 -> a\n", "my.txt:2: expected `WEIGHT PHRASE -> SCENE`"},
        {"scene a\n 1 x -> b\n", "my.txt:2: there is no scene \"b\""},
        {"scene a\n 1 {t} -> a\n", "my.txt:2: there is no table \"t\""},
        {"scene a\n 1 {t -> a\n", "my.txt:2: \"{t\" has no }"},
        {"table t a\n x\nscene a\n 1 {t.b} -> a\n", "my.txt:4: table \"t\" has no column \"b\""},
        {"table t a\nscene a\n 1 {t} -> a\n", "my.txt:1: there is nothing below \"t\""},
        {"table t a\n x\nscene a\n 1 y -> b\nscene b t\n 1 z -> a\n", "my.txt:4: scene \"b\" remembers \"t\""},
        {"scene a\n 1 x -> b\nscene b\n 1 y -> b\n", "my.txt: some stories never end"},
        {"scene a\n 1 so -> a\n 1 so it was -> a\n", "my.txt:1: this scene can say \"so \", and also \"so it was \""},
        {"scene a\n 1 so -> a\n 2 so -> a\n", "where one phrase begins another"},
        {"scene a\n 1 x -> b\nscene b\n 9999 z -> b\n 1 w -> a\n", "or are far too long"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_refusal(read_and_tell, (void *)wrong[i].grammar, EXIT_USAGE, wrong[i].says);
}

TEST(a_line_of_over_1000_bytes_is_refused)
{
    char *text = copy_string("scene a\n 1 ");
    for (int i = 0; i < 334; i++) /* of three bytes each: 1,002 */
        append_text(&text, "{t}");
    expect_refusal(read_and_tell, text, EXIT_USAGE, "my.txt:2: a line can have 1000 bytes");
    free(text);
}

TEST(a_scene_of_over_254_lines_is_refused)
{
    char *text = copy_string("scene a\n");
    for (int i = 0; i < 255; i++)
        append_text(&text, " 1 w%d. -> a\n", i);
    expect_refusal(read_and_tell, text, EXIT_USAGE, "my.txt:1: there can be 16 tables, and 254 lines below");
    free(text);
}

/* Three tables of 60 rows make 60 x 60 x 60 = 216,000 phrases. */
TEST(a_choice_of_over_100000_phrases_is_refused)
{
    char *rows = copy_string("");
    for (int i = 0; i < 60; i++)
        append_text(&rows, " w%d.\n", i);
    char *text =
        format_string("table t a\n%stable u a\n%stable v a\n%sscene a\n 1 {t} {u} {v} -> a\n", rows, rows, rows);
    expect_refusal(read_and_tell, text, EXIT_USAGE, "over 100000 phrases");
    free(text);
    free(rows);
}

/* A damaged grammar is refused with one sentence, or is another grammar. */
TEST(damaged_grammars_are_refused_or_others)
{
    static const char spice[] = "{}.->/#_ \t\n019tableschr";
    size_t n = strlen(embedded_stories);
    int refused = 0;
    for (uint32_t k = 0; k < 150; k++) {
        char *text = copy_string(embedded_stories);
        for (uint64_t i = 0; i < 1 + k % 5; i++) {
            struct random4 random4 = random_words(k, STREAM_TEST, 1, i);
            size_t at = random4.word[0] % n, length = random4.word[2] % 30;
            text[at] = spice[random4.word[1] % (sizeof spice - 1)];
            bool loses_some = random4.word[3] % 3 == 0; /* a part of the text, perhaps whole lines */
            if (loses_some && at + length < strlen(text))
                memmove(text + at, text + at + length, strlen(text + at + length) + 1);
        }
        struct outcome outcome = run_child(read_and_tell, text);
        bool is_refused = outcome.code == EXIT_USAGE && strncmp(outcome.text, "yard: my.txt", 12) == 0;
        if (outcome.code != EXIT_OK && !is_refused)
            test_failed("code %d, signal %d: %s for:\n%s\n", outcome.code, outcome.signal, outcome.text, text);
        if (outcome.code == EXIT_USAGE)
            refused++;
        free(text);
    }
    assert_in_range(refused, 20, 140); /* of 150: mutations are of both kinds */
}

/* ---- entropy ----------------------------------------------------------------------------------------------------- */

/* Scene a says "x " or "yy " and goes to b, which says "zzz " three times of four and comes back to a, or "w " and
 * stays.  So b follows b once in four times, and a story has one a and 1 / (3/4) = 4/3 b.  The choice of a has an
 * entropy of ln 2, that of b one of ln 4 - 3/4 ln 3.  A word of a has 2.5 bytes in the mean, and one of b 3/4 of 4 and
 * 1/4 of 2. */
TEST(entropy_of_two_scenes_is_what_a_hand_finds)
{
    struct stories *stories = grammar("scene a\n 1 x -> b\n 1 yy -> b\nscene b # comment\n 3 zzz -> a\n 1 w -> b\n");
    double nats = log(2) + 4. / 3 * (log(4) - 0.75 * log(3));
    double bytes = 2.5 + 4. / 3 * (0.75 * 4 + 0.25 * 2);
    assert_close(stories_rate(stories), nats / bytes, 1e-12);
    assert_close(long_run(stories, 300000), nats / bytes, 2e-3);
    free_stories(stories);
}

/* A story is a row of the table, so it takes one choice of two. */
TEST(entropy_of_a_table_is_what_a_hand_finds)
{
    static const char *const rows[] = {"x y he\n\n", "z w she\n\n"};
    struct stories *stories =
        grammar("table t a b\n x_y he\n z_w she\nscene a\n 1 {t} -> b\nscene b t\n 1 {t.b}// -> a\n");
    assert_close(stories_rate(stories), log(2) / 8.5, 1e-12); /* the stories have 8 and 9 bytes */
    char *text = tell_stories(stories, 40);
    for (size_t i = 0; i + 9 < 40;) {
        const char *story = rows[text[i] == 'x' ? 0 : 1];
        assert_int_equal(strncmp(text + i, story, strlen(story)), 0);
        i += strlen(story);
    }
    free(text);
    free_stories(stories);
}

TEST(a_table_its_column_and_a_scene_may_have_one_name)
{
    struct stories *stories = grammar("table t a t\n x yy\n z ww\nscene a\n 1 {t} -> t\nscene t t\n 1 {t.t} -> a\n");
    assert_close(stories_rate(stories), log(2) / 5, 1e-12); /* one choice of two: "x yy " or "z ww " */
    free_stories(stories);
}

/* The long-run loss of one who knows the chain is its entropy, which no shorter window reaches; and the text has the
 * frequencies of the grammar. */
TEST(entropy_of_the_default_is_its_long_run_loss)
{
    struct stories *stories = read_stories("data/stories.txt", copy_string(embedded_stories));
    enum { N = 1 << 20 };
    assert_close(long_run(stories, N), stories_rate(stories), 0.01 * stories_rate(stories));
    char *text = tell_stories(stories, N);
    uint16_t *tokens = tokens_of(text, N);
    double above = 8;
    for (int seq_len = 4; seq_len <= 1024; seq_len *= 4) {
        double floor = stories_floor(stories, tokens, N, seq_len);
        assert_below(floor, above);
        assert_above(floor, stories_rate(stories));
        above = floor;
    }
    text[N - 1] = '\0';
    double n = 0, mornings = 0; /* the stories, and those that begin in the morning: a quarter, by the grammar */
    for (const char *end = strstr(text, "\n\n"); end; end = strstr(end + 2, "\n\n")) {
        n++;
        if (strncmp(end + 2, "In the morning ", 15) == 0)
            mornings++;
    }
    assert_above(n, 3000);
    assert_close(mornings / n, 0.25, 4 * sqrt(0.25 * 0.75 / n)); /* four standard deviations */
    free(text);
    free(tokens);
    free_stories(stories);
}

/* ---- a model ----------------------------------------------------------------------------------------------------- */

/* The probability that `text`, of T tokens, goes on with `word`. */
static double probability(struct trainer *trainer, const char *text, const char *word)
{
    double product = 1;
    char *all = format_string("%s%s", text, word);
    for (size_t n = strlen(text); all[n]; n++) {
        assert_at_most(n, (size_t)trainer->seq_len);
        for (size_t i = 0; i < n; i++)
            trainer->extra.sample_window[i] = (unsigned char)all[i];
        trainer->extra.sample_position = (int)n - 1;
        execute(trainer->sample_list, (uint32_t)n);
        drain(trainer->sample_list);
        const float *logits = tensor_memory(trainer->sample_logits);
        double sum = 0;
        for (int i = 0; i < trainer->config.vocab; i++)
            sum += exp((double)logits[i] - (double)logits[(unsigned char)all[n]]);
        product /= sum;
    }
    free(all);
    return product;
}

/* Each word of a small grammar, after words that tell the scene. */
LONG_TEST(a_model_learns_the_probabilities)
{
    static const struct {
        const char *text, *word;
        double expected;
    } words[] = {{"the dog sang.\nthe dog sang.\n", "the ", 5. / 6}, {"the dog sang.\nthe dog sang.\n", "all ", 1. / 6},
                 {"dog sang.\nthe dog sang.\nthe ", "dog ", 1. / 2}, {"dog sang.\nthe dog sang.\nthe ", "cat ", 1. / 3},
                 {"dog sang.\nthe dog sang.\nthe ", "owl ", 1. / 6}, {"sang.\nthe dog sang.\nthe dog ", "sang.", 0.8},
                 {"sang.\nthe dog sang.\nthe dog ", "ran.", 0.2},    {"sang.\nthe dog sang.\nthe cat ", "sang.", 0.5},
                 {"sang.\nthe dog sang.\nall ", "slept.", 1}};
    need_own_products();
    write_text("words.txt", "%s",
               "scene start\n 5 the -> who\n 1 all -> night\nscene night\n 1 slept./ -> start\n"
               "scene who\n 3 dog -> dog\n 2 cat -> cat\n 1 owl -> cat\n"
               "scene dog\n 4 sang./ -> start\n 1 ran./ -> start\n"
               "scene cat\n 1 sang./ -> start\n 1 ran./ -> start\n");
    expect_yard(EXIT_OK, "words.txt",
                "train --model tiny --batch 16 --steps 800 --lr 1e-2 --sample-tokens 0 --data stories:%s "
                "--save %s",
                temp_path("words.txt"), temp_path("words"));
    struct settings *settings = parse_words("--model tiny");
    settings->source = open_source(temp_path("words"), 0);
    struct config config = settings->source.config;
    struct trainer *trainer = new_trainer_for(settings, &config, open_vocabulary(settings, config.vocab), LIST_SAMPLE);
    init_from_source(trainer->model, &settings->source);
    for (size_t i = 0; i < COUNT(words); i++) {
        double found = probability(trainer, words[i].text, words[i].word);
        if (!(fabs(found - words[i].expected) < 0.07))
            test_failed("\"%s\" goes on with \"%s\" with probability %g, expected %g\n", words[i].text, words[i].word,
                        found, words[i].expected);
    }
    free_trainer(trainer);
    close_source(&settings->source);
}

/* floor <= loss <= floor + 0.03, whatever the seed. */
LONG_TEST(a_model_comes_down_to_the_floor)
{
    need_own_products();
    for (int seed = 1; seed <= 3; seed++) {
        struct ran ran =
            run_yard("train --model tiny --batch 16 --steps 3500 --lr 1e-2 --seed %d --sample-tokens 0 --log %s", seed,
                     temp_path("log"));
        assert_int_equal(ran.code, EXIT_OK);
        double loss, floor;
        FILE *out = fopen(ran.stdout_path, "r");
        int found = 0;
        for (char line[400]; fgets(line, sizeof line, out);)
            if (sscanf(line, "step 3500/3500 validation loss %lf floor %lf", &loss, &floor) == 2)
                found++;
        fclose(out);
        assert_int_equal(found, 1);
        if (!(loss >= floor && loss <= floor + 0.03))
            test_failed("seed %d: loss %g, floor %g\n", seed, loss, floor);
    }
    size_t n;
    char *log = read_whole(temp_path("log"), &n);
    log[strcspn(log, "\n")] = '\0';
    json_t *first = json_loads(log, 0, NULL);
    struct stories *stories = read_stories("data/stories.txt", copy_string(embedded_stories));
    assert_close(number_at(first, "rate"), stories_rate(stories), 1e-8);
    assert_above(number_at(first, "floor"), stories_rate(stories));
    free_stories(stories);
    json_decref(first);
    free(log);
}
