/* test_schedule.c - schedules of pipelines in PyTorch's form.
 *
 * It tests src/tools/schedule.  It checks that a schedule becomes a list, and that this list becomes the same schedule
 * again; that steps take the time that formulas say; that mistakes are refused with their row and cell; and that
 * training by a schedule keeps its bits.  It catches a turn that is lost or done twice, and an order that is read as
 * another one.
 *
 * To see it fail: in schedule_order.c, take the orders that are folded as a V for those that are not: > for < in
 * `folded`.
 *
 * data/pytorch has seven schedules that PyTorch 2.15 wrote, for 4 devices and 8 micro-batches; others are drawn at
 * random.  schedules.sh trains by them while tasks are delayed.
 */
#include "planning/lists/lists.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_training.h"
#include "tools/schedule/schedule.h"
#include "trainer/file/file.h"

enum { DEVICES = 4, STEPS = 3 };
static const struct {
    const char *name;
    double period, unclipped; /* ms, with F = I = W = 1 ms: data/gallery/entries has the formulas */
    bool trains;
} files[] = {
    {"1F1B-fixed", .period = 33, .unclipped = 33, .trains = true},
    {"GPipe", .period = 33, .unclipped = 33, .trains = true},
    {"Interleaved1F1B", .period = 57, .unclipped = 57, .trains = true},
    {"LoopedBFS", .period = 57, .unclipped = 57},
    {"ZBVZeroBubble", .period = 51, .unclipped = 48, .trains = true},
    {"InterleavedZeroBubble", .period = 51, .unclipped = 51, .trains = true},
    {"DualPipeV", .period = 54, .unclipped = 54, .trains = true},
};

static const char *path_of(size_t file) { return lasting("data/pytorch/%s.4.8.csv", files[file].name); }

/* ---- to a list and back ------------------------------------------------------------------------------------------ */

/* The CSV of the list that follows this CSV.  The list, on a file of its own, is proved too. */
static char *there_and_back(const char *path)
{
    struct list *list = read_list(path);
    finish_list(list);
    expect_sound(path, list, NULL);
    struct schedule *back = new_schedule_of_list(path, list);
    char *text = format_schedule(back);
    free_schedule(back);
    free_list_and_machine(list);
    return text;
}

static void expect_same_text(const char *what, const char *ours, const char *expected)
{
    if (strcmp(ours, expected) != 0)
        test_failed("%s:\n%s\nnot\n%s\n", what, ours, expected);
}

TEST(schedules_come_back_from_their_lists)
{
    for (size_t i = 0; i < COUNT(files); i++) {
        char *text = read_text(path_of(i));
        char *back = there_and_back(path_of(i));
        expect_same_text(files[i].name, back, text);
        free(back);
        struct ran ran = expect_yard(EXIT_OK, "0F0,", "plan --list %s --print-schedule", path_of(i));
        expect_same_text(files[i].name, ran.out, text);
        free(text);
    }
}

TEST(steps_take_as_long_as_in_pytorch)
{
    for (size_t i = 0; i < COUNT(files); i++)
        for (int clip = 0; clip < 2; clip++) {
            json_t *plan = verified_plan("--list %s --clip %d", path_of(i), clip);
            expect_number(files[i].name, number_at(plan, "simulation.step_ms"),
                          clip ? files[i].period : files[i].unclipped);
        }
}

/* A stage's gradients are added up: each task that writes them reads them too, but for the first one of the stage. */
TEST(lists_add_gradients_up)
{
    struct list *list = read_list("data/pytorch/InterleavedZeroBubble.4.8.csv");
    int firsts = 0;
    for (size_t i = 0; i < list->n; i++) {
        int reads = 0, writes = 0;
        for (int k = 0; k < list->tasks[i]->n_accesses; k++) {
            const struct access *access = &list->tasks[i]->accesses[k];
            if (access->tensor->class != MEM_GRADIENTS)
                continue;
            if (access->mode & ACCESS_READ)
                reads++;
            if (access->mode & ACCESS_WRITE)
                writes++;
        }
        if (writes > reads)
            firsts++;
    }
    assert_int_equal(firsts, 2 * DEVICES); /* each device has two stages */
    free_list_and_machine(list);
}

/* ---- random schedules -------------------------------------------------------------------------------------------- */

/* A schedule at random: any stage on any row, turns in any order in which they can come. */
struct random_schedule {
    struct draws draws;
    int rows, stages, micros;
    int row_of[8];
    bool trains;                   /* it is an order for training */
    bool whole[8][6];              /* [stage, micro]: its backward is not in halves */
    bool done[COMPUTATIONS][8][6]; /* a whole backward does both halves */
    char *plain[4], *decorated[4]; /* by row: its cells, and the same with cells that have no turn */
};

/* May the turn be the next one?  What it needs of other turns has been done.  A training adds gradients up in a fixed
 * order: the micro-batches one after another, and a tied head's first at the last stage. */
static bool can_come(const struct random_schedule *schedule, enum computation what, int stage, int micro)
{
    bool is_half = what == INPUT_GRADIENT || what == WEIGHT_GRADIENT;
    int last = schedule->stages - 1;
    enum computation half = what == BACKWARD ? INPUT_GRADIENT : what;
    if (what != FORWARD && schedule->whole[stage][micro] == is_half)
        return false;
    if (schedule->done[half][stage][micro])
        return false;
    bool weights = what == BACKWARD || what == WEIGHT_GRADIENT;
    bool follows_micro = schedule->trains && micro > 0;
    bool follows_last_stage = schedule->trains && weights && stage == 0 && last > 0;
    if (follows_micro && !schedule->done[half][stage][micro - 1])
        return false;
    if (follows_micro && what == BACKWARD && !schedule->done[WEIGHT_GRADIENT][stage][micro - 1])
        return false;
    if (follows_last_stage && !schedule->done[WEIGHT_GRADIENT][last][micro])
        return false;
    if (what == FORWARD)
        return stage == 0 || schedule->done[FORWARD][stage - 1][micro];
    if (what == WEIGHT_GRADIENT)
        return schedule->done[INPUT_GRADIENT][stage][micro];
    return stage == last ? schedule->done[FORWARD][last][micro] : schedule->done[INPUT_GRADIENT][stage + 1][micro];
}

/* One of the turns that can come, of that row (NONE: of any) and, unless it is COMPUTATIONS, of that kind. */
static bool draw_turn(struct random_schedule *schedule, int row, enum computation kind, struct turn *turn)
{
    size_t n = 0;
    for (enum computation what = FORWARD; what < COMPUTATIONS; what++)
        for (int stage = 0; stage < schedule->stages; stage++)
            for (int micro = 0; micro < schedule->micros; micro++) {
                bool fits = (row == NONE || schedule->row_of[stage] == row) && (kind == COMPUTATIONS || kind == what);
                if (!fits || !can_come(schedule, what, stage, micro))
                    continue;
                n++;
                if (draw_below(&schedule->draws, n) == 0)
                    *turn = (struct turn){what, stage, micro};
            }
    return n > 0;
}

static void note_turn(struct random_schedule *schedule, const struct turn *turn)
{
    schedule->done[turn->computation][turn->stage][turn->micro] = true;
    if (turn->computation != BACKWARD)
        return;
    schedule->done[INPUT_GRADIENT][turn->stage][turn->micro] = true;
    schedule->done[WEIGHT_GRADIENT][turn->stage][turn->micro] = true;
}

static void add_random_cell(struct random_schedule *schedule, const struct turn *turn)
{
    static const char *const nothing[] = {"", " ", "0SEND_F3", "1RECV_F0", "2UNSHARD", "0REDUCE_GRAD", "3WAIT_SEND_B1"};
    int row = schedule->row_of[turn->stage];
    struct turn backward;
    bool overlaps = turn->computation == FORWARD && draw_below(&schedule->draws, 2) &&
                    draw_turn(schedule, row, BACKWARD, &backward);
    struct turn_cell turn_cell = {.turns = {*turn}, .n = 1};
    note_turn(schedule, turn);
    if (overlaps) {
        note_turn(schedule, &backward);
        turn_cell.turns[1] = backward;
        turn_cell.n = 2;
    }
    char *cell = cell_text(&turn_cell);
    append_text(&schedule->plain[row], "%s%s", schedule->plain[row] ? "," : "", cell);
    append_text(&schedule->decorated[row], "%s%s", schedule->decorated[row] ? "," : "", cell);
    if (draw_below(&schedule->draws, 3) == 0)
        append_text(&schedule->decorated[row], ",%s", nothing[draw_below(&schedule->draws, COUNT(nothing))]);
    free(cell);
}

static void draw_rows(struct random_schedule *schedule)
{
    schedule->rows = 1 + (int)draw_below(&schedule->draws, 4);
    schedule->stages = schedule->rows + (int)draw_below(&schedule->draws, (size_t)(9 - schedule->rows));
    for (int stage = 0; stage < schedule->stages; stage++)
        schedule->row_of[stage] =
            stage < schedule->rows ? stage : (int)draw_below(&schedule->draws, (size_t)schedule->rows);
}

/* Draws a mesh whose devices have their stages in a loop, or folded as a V. */
static void draw_mesh(struct random_schedule *schedule)
{
    struct mesh mesh = {.dp = 1, .tp = 1};
    mesh.pp = 2 + (int)draw_below(&schedule->draws, 3);
    mesh.chunks = 1 + (int)draw_below(&schedule->draws, (size_t)(8 / mesh.pp));
    mesh.folded = draw_below(&schedule->draws, 2);
    schedule->rows = mesh.pp;
    schedule->stages = n_stages(&mesh);
    for (int stage = 0; stage < schedule->stages; stage++)
        schedule->row_of[stage] = pp_of(&mesh, stage);
}

static void draw_schedule(struct random_schedule *schedule, uint32_t seed, bool trains)
{
    struct turn turn;
    *schedule = (struct random_schedule){.draws = {.seed = seed}, .trains = trains};
    if (trains)
        draw_mesh(schedule);
    else
        draw_rows(schedule);
    schedule->micros = 1 + (int)draw_below(&schedule->draws, 6);
    for (int stage = 0; stage < schedule->stages; stage++)
        for (int micro = 0; micro < schedule->micros; micro++)
            schedule->whole[stage][micro] = draw_below(&schedule->draws, 2);
    while (draw_turn(schedule, NONE, COMPUTATIONS, &turn))
        add_random_cell(schedule, &turn);
}

static void free_random(struct random_schedule *schedule)
{
    for (int row = 0; row < schedule->rows; row++) {
        free(schedule->plain[row]);
        free(schedule->decorated[row]);
    }
}

/* A schedule at random comes back from its list, and the list is proved. */
LAW(random_schedules_come_back)
{
    const struct cases some = cases_of(40, 600);
    for (int seed = some.begin; seed < some.end; seed++) {
        struct random_schedule schedule;
        char *plain = copy_string(""), *decorated = copy_string("");
        draw_schedule(&schedule, (uint32_t)seed, false);
        for (int row = 0; row < schedule.rows; row++) {
            append_text(&plain, "%s\n", schedule.plain[row]);
            append_text(&decorated, "%s,\r\n", schedule.decorated[row]);
        }
        char *back = there_and_back(write_file("random.csv", decorated, strlen(decorated)));
        expect_same_text(lasting("schedule %d", seed), back, plain);
        free(back);
        free(plain);
        free(decorated);
        free_random(&schedule);
    }
}

/* ---- orders that are built in ------------------------------------------------------------------------------------ */

static void append_turn(char **text, const struct turn *turn, const char *after)
{
    char *words = turn_text(turn);
    append_text(text, "%s%s", words, after);
    free(words);
}

/* An order of the trainer as a file: the same turns come back, as an order and as a list. */
static void expect_order_back(const struct turn_order *order, const struct mesh *mesh, int micros)
{
    char *text = copy_string("");
    int n, n_back;
    for (int p = 0; p < mesh->pp; p++) {
        struct turn *turn = pipeline_order(order, mesh, p, micros, &n);
        for (int i = 0; i < n; i++)
            append_turn(&text, &turn[i], i + 1 < n ? "," : "\n");
        free(turn);
    }
    const char *path = write_file("order.csv", text, strlen(text));
    const struct turn_order *back = turn_order_of(path);
    assert_int_equal(back->chunks, mesh->chunks);
    if (mesh->chunks > 1 && mesh->pp > 1)
        assert_int_equal(back->folded, mesh->folded);
    assert_int_equal(back->written->devices, mesh->pp);
    assert_int_equal(back->written->micros, micros);
    expect_same_text("as an order", back->written->text, text);
    for (int p = 0; p < mesh->pp; p++) {
        struct turn *turn = pipeline_order(order, mesh, p, micros, &n),
                    *same = pipeline_order(back, mesh, p, micros, &n_back);
        assert_int_equal(n_back, n);
        for (int i = 0; i < n; i++) {
            assert_int_equal(same[i].computation, turn[i].computation);
            assert_int_equal(same[i].stage, turn[i].stage);
            assert_int_equal(same[i].micro, turn[i].micro);
        }
        free(turn);
        free(same);
    }
    char *as_list = there_and_back(path);
    expect_same_text("as a list", as_list, text);
    free(as_list);
    free(text);
}

TEST(built_in_orders_come_back_from_their_schedules)
{
    for (enum pipeline kind = PIPELINE_1F1B; kind < PIPELINES; kind++)
        for (int pp = 1; pp <= 4; pp++)
            for (int micros = pp; micros <= 3 * pp; micros += pp) {
                const struct turn_order *order = &pipeline_orders[kind];
                struct mesh mesh = {.dp = 1, .pp = pp, .tp = 1, .chunks = order->chunks, .folded = order->folded};
                bool lacks_stages = order->chunks > 1 && pp == 1;
                bool lacks_micros = mesh.folded && micros < 2 * pp;
                if (lacks_stages || lacks_micros)
                    continue;
                if (kind == PIPELINE_INTERLEAVED && micros == 2 * pp)
                    mesh.chunks = 3;
                expect_order_back(order, &mesh, micros);
            }
}

/* --print-schedule says the same of a model's mesh and of its list. */
LAW(models_lists_say_their_order)
{
    const struct cases some = cases_of(PIPELINES, 4 * PIPELINES);
    for (int i = some.begin; i < some.end; i++) {
        int kind = i % PIPELINES, round = i / PIPELINES; /* a round has all kinds of pipelines */
        bool is_even = round % 2 == 0;
        int pp = is_even ? 2 : 4;
        const char *untied = round < 2 ? "" : "--untied";
        const char *words = lasting("plan --model tiny --layers 8 --seq-len 16 --batch 12 --micro-batch 1 --mesh pp=%d "
                                    "--hardware data/hardware/server.txt --pipeline %s %s",
                                    pp, pipeline_name[kind], untied);
        const struct ran model = expect_yard(EXIT_OK, "0F0", "%s --print-schedule", words);
        const struct ran list = expect_yard(EXIT_OK, "tensor", "%s --print-list", words);
        char *text = read_text(list.stdout_path);
        const char *path = write_file("model.txt", text, strlen(text));
        const struct ran of_list = expect_yard(EXIT_OK, "0F0", "plan --list %s --print-schedule", path);
        expect_same_text(words, of_list.out, model.out);
        free(text);
    }
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

TEST(times_are_of_actions_and_stages)
{
    static const struct {
        const char *rows, *times;
        double period;
    } cases[] = {
        {"0F0,0B0", "", 3},
        {"0F0,0I0,0W0", "F=2ms,I=3ms,W=4ms", 9},
        {"0F0,0B0", "F=2ms,I=3ms,W=4ms", 9},
        {"0F0,0B0", "F=2ms,I=3ms,W=4ms,B=5ms", 7},
        {"0F0,1F0,1B0,0B0", "F=0,B=0,1F=5ms,0B=1ms", 6},
        {"0F0,0B0\n1F0,1B0", "send=10ms", 26},
        {"0F0,0B0\n1F0,1B0", "send=10ms 1send=20ms", 36},
        /* what goes forward and what comes back have lanes of their own */
        {"0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2F0,2B0,2F1,2B1", "1send=8ms,0B=10ms", 43},
        {"0F0,0F1,1F0,(1F1;1B0)OVERLAP_F_B,1B1,0B0,0B1", "", 12},
        {"0F0,0F1,1F0,(1F1;1B0)OVERLAP_F_B,1B1,0B0,0B1", "FB=2ms", 11},
        {"0F0,0F1,1F0,(1F1;1B0)OVERLAP_F_B,1B1,0B0,0B1", "0FB=2ms", 12},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *path = write_file("times.csv", cases[i].rows, strlen(cases[i].rows));
        json_t *plan = yard_json("plan --list %s --simulate --json --times '%s'", path, cases[i].times);
        expect_number(cases[i].times, number_at(plan, "simulation.step_ms"), cases[i].period);
    }
    static const char *const wrong[][2] = {
        {"X=1", "--times: \"X=1\": expected F, I, W, B, FB or send"},
        {"F", "\"F\": expected F, I"},
        {"F=-1", "\"F=-1\": expected F, I"},
        {"F=1h", "\"F=1h\": expected F, I"},
        {"4F=1", "\"4F=1\": the schedule has only the stages 0 to 3"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_yard(EXIT_USAGE, wrong[i][1], "plan --list %s --times %s", path_of(0), wrong[i][0]);
    expect_yard(EXIT_USAGE, "has times of its own", "plan --list data/steps/1f1b.txt --times F=1");
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

static void read_wrong(void *text)
{
    const char *path = write_file("wrong.csv", text, strlen(text));
    free_list_and_machine(read_list(path));
}

static void order_wrong(void *text) { turn_order_of(write_file("wrong.csv", text, strlen(text))); }

struct mistake {
    const char *rows, *says; /* after "wrong.csv, " */
};

static void expect_mistakes(const struct mistake *mistakes, size_t n, void (*work)(void *))
{
    for (size_t i = 0; i < n; i++) {
        struct problem *problem = attempt(work, (void *)mistakes[i].rows);
        if (!problem)
            test_failed("accepted:\n%s\n", mistakes[i].rows);
        assert_int_equal(problem->code, EXIT_USAGE);
        assert_contains(problem->sentence, lasting("wrong.csv, %s", mistakes[i].says));
        free(problem);
    }
}

TEST(cells_that_are_no_turns_are_named)
{
    static const struct mistake mistakes[] = {
        {"0F0,0X0", "row 1, cell 2: \"0X0\": expected STAGE, then F, B, I or W, then MICRO-BATCH"},
        {"0F0,F0", "row 1, cell 2: \"F0\": expected STAGE"},
        {"0F0,0B", "row 1, cell 2: \"0B\": expected STAGE"},
        {"0F0,0b0", "row 1, cell 2: \"0b0\": expected STAGE"},
        {"0F0,,0B0 0", "row 1, cell 3: \"0B0 0\": expected STAGE"},
        {"0F0,-1B0", "row 1, cell 2: \"-1B0\": expected STAGE"},
        {"0F0,0B0x", "row 1, cell 2: \"0B0x\": expected STAGE"},
        {"0F0;0B0", "row 1, cell 1: \"0F0;0B0\": expected STAGE"},
        {"0F0,1000F0", "row 1, cell 2: \"1000F0\": expected STAGE"},
        {"0F0,0F10000", "row 1, cell 2: \"0F10000\": expected STAGE"},
        {"0F0,99999999999999999999F0", "row 1, cell 2: \"99999999999999999999F0\": expected STAGE"},
        {"0F0,0SEND_X0", "row 1, cell 2: \"0SEND_X0\": expected STAGE"},
        {"0F0,SEND_F0", "row 1, cell 2: \"SEND_F0\": expected STAGE"},
        {"0F0,\"0B0\"", "row 1, cell 2: \"\"0B0\"\": expected STAGE"},
        {"0F0,(0F1;0B0)", "row 1, cell 2: \"(0F1;0B0)\": expected STAGE"},
        {"0F0,(0B0;0F1)OVERLAP_F_B", "row 1, cell 2: \"(0B0;0F1)OVERLAP_F_B\": expected STAGE"},
        {"0F0,(0F1,0B0)OVERLAP_F_B", "row 1, cell 2: \"(0F1\": expected STAGE"},
        {"0F0,(0F1;0I0)OVERLAP_F_B", "row 1, cell 2: \"(0F1;0I0)OVERLAP_F_B\": expected STAGE"},
    };
    expect_mistakes(mistakes, COUNT(mistakes), read_wrong);
    expect_mistakes(mistakes, COUNT(mistakes), order_wrong);
}

TEST(rows_without_a_turn_are_named)
{
    static const struct mistake mistakes[] = {
        {"", "row 1, cell 1: no turn is in this row"},
        {"0F0,0B0\n\n1F0,1B0", "row 2, cell 1: no turn is in this row"},
        {"0F0,0B0\n0SEND_F0,,", "row 2, cell 1: no turn is in this row"},
    };
    expect_mistakes(mistakes, COUNT(mistakes), read_wrong);
    expect_mistakes(mistakes, COUNT(mistakes), order_wrong);
}

TEST(turns_too_many_or_missing_are_named)
{
    static const struct mistake mistakes[] = {
        {"0F0,0F1,0F1,0B0,0B1", "row 1, cell 3: \"0F1\": 0F1 is in row 1, cell 2 already"},
        {"0F0,0B0,,0I0", "row 1, cell 4: \"0I0\": 0I0 is in row 1, cell 2 already"},
        {"0F0,0I0,0W0,0B0", "row 1, cell 4: \"0B0\": 0B0 is in row 1, cell 2 already"},
        {"0F0,0F1,0B0,0B1\n1F0,1B0,0F1",
         "row 2, cell 3: \"0F1\": stage 0 is in row 1 already, and a stage is on one device"},
        {"0F0,0F1,0B0", "row 1, cell 3: \"0B0\": after it the row ends, and 0I1 or the whole backward is missing"},
        {"0F0,0I0", "row 1, cell 2: \"0I0\": after it the row ends, and 0W0 or the whole backward is missing"},
        {"0F0,0B0,0B1", "row 1, cell 3: \"0B1\": after it the row ends, and 0F1 is missing"},
        {"0F0,0B0\n2F0,2B0", "row 2, cell 1: \"2F0\": it is on stage 2, and stage 1 is in no row"},
        {"0F0,0F1,0B0\n0B1,1F0,1B0,1F1,1B1", "row 2, cell 1: \"0B1\": stage 0 is in row 1 already"},
    };
    expect_mistakes(mistakes, COUNT(mistakes), read_wrong);
    expect_mistakes(mistakes, COUNT(mistakes), order_wrong);
}

TEST(waits_that_never_end_are_named)
{
    static const struct mistake mistakes[] = {
        {"0B0,0F0", "row 1, cell 1: \"0B0\": it waits for ever for \"0F0\", which comes after it in its row"},
        {"0F0,0W0,0I0", "row 1, cell 2: \"0W0\": it waits for ever for \"0I0\", which comes after it"},
        {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n2F0,2F1,2B0,2B1",
         "row 2, cell 2: \"1B0\": it waits for ever for \"2B0\", since what comes before that waits too: \"2F1\" of "
         "row 3, "
         "cell 2"},
        {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1", "row 1, cell 2: \"0B0\": it waits for ever for \"1B0\", since what comes "
                                             "before that waits too: \"1F1\" of row 2, "
                                             "cell 2"},
        {"0F0,0B0,(0F1;0B1)OVERLAP_F_B",
         "row 1, cell 3: \"(0F1;0B1)OVERLAP_F_B\": its backward waits for its forward, so they cannot overlap"},
        {"0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1F1,1B0,1B1", "row 1, cell 2: \"(0F1;0B0)OVERLAP_F_B\": it waits for ever"},
    };
    expect_mistakes(mistakes, COUNT(mistakes), read_wrong);
    expect_mistakes(mistakes, COUNT(mistakes), order_wrong);
}

/* Schedules that can be planned, and not trained with one device's bits. */
TEST(training_names_row_and_cell)
{
    static const struct mistake mistakes[] = {
        {"0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0", "row 1, cell 3: \"0B1\": micro-batch 0 is due"},
        {"0F1,0F0,0B0,0B1", "row 1, cell 1: \"0F1\": micro-batch 0 is due"},
        {"0F0,0F1,0I0,0I1,0W1,0W0", "row 1, cell 5: \"0W1\": micro-batch 0 is due"},
        {"0F0,0F1,0I0,0B1,0W0", "row 1, cell 4: \"0B1\": micro-batch 0 is due"},
        {"1F0,1B0\n0F0,0B0", "row 2, cell 1: \"0F0\": training has stage 0 in row 1, or, folded as a V, in row 1"},
        {"0F0,1F0,1B0,0B0\n2F0,3F0,3B0,2B0", "row 1, cell 2: \"1F0\": training has stage 1 in row 2, or"},
        {"0F0,2F0,2B0,0B0\n1F0,1B0",
         "row 1, cell 2: \"2F0\": it is on the last of 3 stages, and training needs as many"},
        {"0F0,4F0,5F0,5B0,4B0,0B0\n1F0,2F0,3F0,3B0,2B0,1B0",
         "row 2, cell 3: \"3F0\": training has stage 3 in row 1, since those before it are folded as a V"},
        {"0F0,2F0,3F0,3B0,2B0,0B0\n1F0,1B0",
         "row 1, cell 3: \"3F0\": training has stage 3 in row 2, since those before it are dealt round"},
        {"0F0,3F0,4F0,4B0,3B0,0B0\n1F0,2F0,5F0,5B0,2B0,1B0", ""}, /* two Vs, one after the other */
        {"0F0,0I0,0W0\n1F0,1I0,1W0,,", ""},
        {"0F0,0B0,0F1,0B1\n1F0,1I0,1F1,1I1,1W0,1W1", "row 1, cell 2: \"0B0\": it waits for ever for \"1W0\", since "
                                                     "what comes before that waits too: \"1F1\" of row 2, "
                                                     "cell 3"},
        {"0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1", ""},
    };
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        const struct mistake *mistake = &mistakes[i];
        read_wrong((void *)mistake->rows); /* as a list it is right */
        if (*mistake->says)
            expect_mistakes(mistake, 1, order_wrong);
        else
            order_wrong((void *)mistake->rows);
    }
    expect_yard(EXIT_USAGE, "LoopedBFS.4.8.csv, row 1, cell 17: \"4B7\": micro-batch 0 is due",
                "plan --model tiny --layers 8 -d 0:0x4 --mesh pp=4 --batch 8 --micro-batch 1 --pipeline %s",
                "data/pytorch/LoopedBFS.4.8.csv");
}

TEST(what_the_form_cannot_say_is_refused)
{
    static const char *const model = "plan --model tiny --layers 4 --seq-len 16 --batch 4 --hardware "
                                     "data/hardware/server.txt";
    static const char *const refused[][2] = {
        {"--mesh dp=2,pp=2 --micro-batch 1", "the form has one device for a stage, and a send between two"},
        {"--mesh tp=2 --micro-batch 1", "the form has one device for a stage, and a send between two"},
        {"--mesh pp=2 --micro-batch 1 --recompute full",
         "attn.ln: it is on server.0, and micro-batch 0 is on stage 1, which is on server.1"},
    };
    for (size_t i = 0; i < COUNT(refused); i++) {
        const struct ran list = expect_yard(EXIT_OK, "tensor", "%s %s --print-list", model, refused[i][0]);
        char *text = read_text(list.stdout_path);
        const char *path = write_file("wrong.txt", text, strlen(text));
        expect_yard(EXIT_USAGE, "wrong.txt, task ", "plan --list %s --print-schedule", path);
        expect_yard(EXIT_USAGE, refused[i][1], "plan --list %s --print-schedule", path);
        free(text);
    }
    static const char *const lists[][2] = {
        {"data/gallery/dualpipe.txt", "task 8 F: it is on s7, and micro-batch 10 is on stage 0, which is on s0"},
        {"data/gallery/ring-all-reduce.txt", "task 0 backward: cannot tell which stage this backward belongs to"},
        {"data/steps/zero-bubble.txt", "task 144 F: it is on 1f1b.0, and micro-batch 0 is on stage 3"},
        {"tests/data/trains-wrongly.csv", "row 2, cell 1: \"1F1\": on the last stage PyTorch takes this forward for "
                                          "that of micro-batch 0"},
    };
    for (size_t i = 0; i < COUNT(lists); i++)
        expect_yard(EXIT_USAGE, lists[i][1], "plan --list %s --print-schedule", lists[i][0]);
    const char *waits = write_file("waits.csv", "0B0,0F0", 7);
    expect_yard(EXIT_USAGE, "row 1, cell 1: \"0B0\": it waits for ever", "plan --list %s --print-schedule", waits);
    static const char without[] = "device gpu memory=1G\ntensor w gpu 1 parameters\ntask t gpu.compute 1 writes=w\n";
    expect_yard(EXIT_USAGE, "no task is a forward or a backward", "plan --list %s --print-schedule",
                write_file("none.txt", without, sizeof without - 1));
    expect_yard(EXIT_OK, "0F0,0F1,0F2,0F3,0B0", "plan --list data/steps/1f1b.txt --print-schedule");
    expect_yard(EXIT_OK, "0F0,0F1,0B0,0B1\n1F0,1B0",
                "%s --mesh dp=2,pp=2 --micro-batch 1 --stages 3,1 --print-schedule", model);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static const char small_model[] = "--model tiny --gemm own --data LICENSE --layers 8 --seq-len 16 --batch 8";
static const char on_four[] = "-d 0:0x4 --mesh pp=4 --micro-batch 1";

/* A file, then options beside it, all with the bits of one device.  `make test` takes the first three. */
LAW(files_train_to_the_bits_of_one_device)
{
    static const struct {
        size_t file;
        const char *beside;
    } cases[] = {
        {4, ""},
        {6, "--untied --delay-seed 3"},
        {5, "--recompute selective --clip 0"},
        {0, "--delay-seed 1"},
        {1, "--recompute full"},
        {2, "--untied --clip 0 --delay-seed 5"},
        {4, "--untied --clip 0 --swap layer"},
        {5, "--untied --grad-groups 2 --serial --audit"},
        {6, "--clip 0 --recompute full --swap auto"},
        {2, "--grad-groups 2"},
        {4, "--serial --audit"},
    };
    const struct cases some = cases_of(3, COUNT(cases));
    need_own_products();
    for (int i = some.begin; i < some.end; i++) {
        const char *path = path_of(cases[i].file), *beside = cases[i].beside;
        char *one = copy_string(small_model);
        if (strstr(beside, "--untied"))
            append_text(&one, " --untied");
        if (strstr(beside, "--clip 0"))
            append_text(&one, " --clip 0");
        if (strstr(beside, "--grad-groups 2"))
            append_text(&one, " --grad-groups 2 --micro-batch 1");
        bool apart = i % 2 == 1;
        contexts_apart(apart);
        struct state first = train(parse_words(lasting("%s", one)), STEPS);
        const char *words = lasting("%s %s --pipeline %s %s", small_model, on_four, path, beside);
        struct state other = train(parse_words(words), STEPS);
        expect_same_bits(words, other.values, first.values, first.n);
        free(first.values);
        free(other.values);
        free(one);
    }
    restore_contexts();
}

/* Any order that is accepted has the bits of one device. */
LAW(random_orders_train_to_the_bits_of_one_device)
{
    const struct cases some = cases_of(2, 30);
    need_own_products();
    for (int seed = some.begin; seed < some.end; seed++) {
        struct random_schedule schedule;
        char *text = copy_string("");
        draw_schedule(&schedule, (uint32_t)seed, true);
        for (int row = 0; row < schedule.rows; row++)
            append_text(&text, "%s\n", schedule.decorated[row]);
        const char *path = write_file("order.csv", text, strlen(text));
        const char *sizes = lasting("--model tiny --gemm own --data LICENSE --layers 8 --seq-len 16 --batch %d%s%s",
                                    schedule.micros, seed % 2 ? " --untied" : "", seed % 3 ? "" : " --clip 0");
        const char *words = lasting("%s --micro-batch 1 -d 0:0x%d --mesh pp=%d --delay-seed %d --pipeline %s", sizes,
                                    schedule.rows, schedule.rows, seed + 1, path);
        struct state first = train(parse_words(sizes), STEPS);
        struct state other = train(parse_words(words), STEPS);
        expect_same_bits(text, other.values, first.values, first.n);
        free(first.values);
        free(other.values);
        free(text);
        free_random(&schedule);
    }
}

static void expect_trained(const char *as, const char *saved)
{
    char *cmp = format_string("cmp %s/model.safetensors %s/model.safetensors", as, saved);
    if (system(cmp) != 0)
        test_failed("%s differs from %s\n", saved, as);
    free(cmp);
}

/* A checkpoint stores the cells: neither going on nor cutting it anew wants the file. */
TEST(checkpoints_need_no_file)
{
    const char *train = lasting("train %s --val-batches 1 --sample-tokens 0 --steps 4", small_model);
    char *text = read_text(path_of(4));
    const char *file = write_file("mine.csv", text, strlen(text));
    char *one = copy_string(temp_path("one")), *four = copy_string(temp_path("four"));
    char *next = copy_string(temp_path("next")), *cut = copy_string(temp_path("cut"));
    need_own_products();
    expect_yard(EXIT_OK, "", "%s --save %s", train, one);
    expect_yard(EXIT_OK, "", "%s --stop-after 2 --save %s %s --pipeline %s", train, four, on_four, file);
    remove(file);
    static const char *const on[][2] = {
        {"-d 0:0x4", ""},
        {"-d 0:0x2 --mesh pp=2", ""}, /* by 1f1b */
        {"-d 0:0", ""},
        {"-d 0:0x4 --pipeline gpipe", ""},
        {"-d 0:0x4", "--mesh pp=4"},
        {"-d 0:0x2", "--mesh pp=2"},
        {"-d 0:0x4 --mesh pp=4", "--mesh dp=1"},
    };
    for (size_t i = 0; i < COUNT(on); i++) {
        const char *from = four;
        if (*on[i][1]) {
            expect_yard(EXIT_OK, "", "ckpt reshard %s %s %s", four, cut, on[i][1]);
            from = cut;
        }
        expect_yard(EXIT_OK, "", "train --resume %s --save %s %s", from, next, on[i][0]);
        expect_trained(one, next);
        expect_yard(EXIT_OK, "", "ckpt verify %s", next);
        if (system(lasting("rm -rf %s %s", next, cut)) != 0)
            test_failed("rm\n");
    }
    expect_yard(EXIT_USAGE, "its schedule has 8 micro-batches, not 4: try --batch 8 --micro-batch 1",
                "train --resume %s -d 0:0x4 --micro-batch 2", four);
    free(text);
    free(one);
    free(four);
    free(next);
    free(cut);
}

TEST(meshes_that_do_not_fit_are_refused)
{
    static const char *const refused[][2] = {
        {"-d 0:0x4 --pipeline data/pytorch/GPipe.4.8.csv --micro-batch 1",
         "its schedule has 4 rows, one for each device of a pipeline: use --mesh pp=4"},
        {"-d 0:0x2 --mesh pp=2 --pipeline data/pytorch/ZBVZeroBubble.4.8.csv --micro-batch 1",
         "its schedule has 4 rows, one for each device of a pipeline: use --mesh pp=4"},
        {"-d 0:0x4 --mesh pp=4 --pipeline data/pytorch/GPipe.4.8.csv --batch 6 --micro-batch 1",
         "its schedule has 8 micro-batches, not 6: try --batch 8 --micro-batch 1"},
        {"-d 0:0x4 --mesh pp=4 --pipeline data/pytorch/GPipe.4.8.csv --layers 3",
         "needs at least 4 layers, the model has 3"},
        {"--pipeline data/pytorch/GPipe.4.8.txt", "not \"data/pytorch/GPipe.4.8.txt\""},
        {"--pipeline 2f2b",
         "--pipeline takes one of 1f1b|gpipe|interleaved|zbh1|zbh2|dualpipev|FILE.csv, not \"2f2b\""},
    };
    for (size_t i = 0; i < COUNT(refused); i++)
        expect_yard(EXIT_USAGE, refused[i][1], "plan --model tiny --layers 8 --seq-len 16 --batch 8 %s", refused[i][0]);
    expect_yard(EXIT_IO, "cannot open nothing.csv", "plan --model tiny --pipeline nothing.csv");
    expect_yard(EXIT_USAGE, "would overwrite what --pipeline reads",
                "train --model tiny --pipeline data/pytorch/GPipe.4.8.csv --log data/pytorch/GPipe.4.8.csv");
}
