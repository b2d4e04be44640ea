/* test_mesh.c - meshes of devices: what each device has, and how the results of several devices are added up.
 *
 * It tests src/trainer/mesh, and the order of the norm in src/trainer/model/optimizer.c.  It checks that each device
 * has one place, that each element of a parameter is in one shard, that sums are in the order of the ranks, and that no
 * device is sent everything at once.  It catches a shard that overlaps another, and a sum that depends on which device
 * comes first.
 *
 * To see it fail: in collective.c, let all devices receive from the same one in each turn: sender = turn.
 *
 * A loop in this file computes the expected sums, which must agree to the bit.  test_mesh_orders.c tests orders of
 * turns, test_mesh_bits.c bits of a training, and test_grid.c bits on all meshes of a grid.
 */
#include "planning/lists/lists.h"
#include "planning/predict/plan.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_training.h"

/* ---- coordinates, stages, shards --------------------------------------------------------------------------------- */

TEST(every_device_has_one_place)
{
    struct mesh mesh = {.dp = 3, .pp = 4, .tp = 2, .chunks = 2};
    bool taken[3 * 4 * 2] = {false}; /* by rank */
    for (int dp = 0; dp < mesh.dp; dp++)
        for (int stage = 0; stage < n_stages(&mesh); stage++)
            for (int tp = 0; tp < mesh.tp; tp++) {
                int rank = rank_at(&mesh, dp, stage) + tp;
                assert_int_equal(dp_of(&mesh, rank), dp);
                assert_int_equal(tp_of(&mesh, rank), tp);
                assert_true(has_stage(&mesh, rank, stage));
                assert_false(has_stage(&mesh, rank, stage + 1)); /* which is on the next device */
                taken[rank] = true;
            }
    for (int rank = 0; rank < n_ranks(&mesh); rank++)
        assert_true(taken[rank]);
}

TEST(shards_cover_a_unit_once)
{
    for (int n = 1; n <= 9; n++)
        for (size_t elements = 1; elements < 12 * NORM_BLOCK; elements += 1237) {
            size_t at = 0;
            for (int k = 0; k < n; k++) {
                struct range shard = shard_of(elements, k, n);
                assert_int_equal(shard.begin, at);
                if (shard.begin != elements)
                    assert_int_equal(shard.begin % NORM_BLOCK, 0);
                at = shard.end;
            }
            assert_int_equal(at, elements);
        }
}

/* Every element of the whole is in one part, at the place that its row and column there say. */
static void expect_parts(const struct cut *cut, const int64_t shape[2], int n)
{
    size_t elements = (size_t)(shape[0] * shape[1]), covered = 0;
    bool *taken = allocate(elements, sizeof *taken);
    for (int k = 0; k < n; k++) {
        struct part part = part_of(cut, shape, k, n);
        for (size_t i = 0; i < part.stretches; i++)
            for (size_t at = part.begin; at < part.end; at++) {
                assert_false(taken[i * part.length + at]);
                taken[i * part.length + at] = true;
                covered++;
            }
    }
    assert_int_equal(covered, cut->split == SPLIT_NONE ? elements * (size_t)n : elements);
    free(taken);
}

TEST(parts_cover_a_parameter_once)
{
    for (int n = 1; n <= 5; n++) {
        expect_parts(&(struct cut){SPLIT_ROWS, 1, 1}, (int64_t[]){7, 4}, n);
        expect_parts(&(struct cut){SPLIT_ROWS, 3, 2}, (int64_t[]){30, 5}, n);
        expect_parts(&(struct cut){SPLIT_COLUMNS, 1, 3}, (int64_t[]){4, 15}, n);
        expect_parts(&(struct cut){SPLIT_COLUMNS, 2, 3}, (int64_t[]){4, 30}, n);
    }
    struct part v_of_the_second = part_of(&(struct cut){SPLIT_ROWS, 3, 2}, (int64_t[]){18, 5}, 1, 2);
    assert_int_equal(v_of_the_second.stretches, 3);
    assert_int_equal(v_of_the_second.length, 30); /* 3 heads of 2 rows */
    assert_int_equal(v_of_the_second.begin, 10);  /* the first has one head */
    assert_int_equal(v_of_the_second.end, 30);
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* n tensors that persist, of which each becomes the sum of all. */
static float *reduced(int n, size_t elements)
{
    char devices[16];
    snprintf(devices, sizeof devices, "0:0x%d", n);
    struct machine *machine = open_machine(&(struct machine_options){.devices = devices});
    struct pool *pool = new_pool(machine);
    struct list *list = new_list(pool, "reduce");
    struct tensor **tensors = allocate((size_t)n, sizeof *tensors);
    float *all = allocate((size_t)n * elements, sizeof *all);
    for (int k = 0; k < n; k++) {
        tensors[k] = new_work_tensor(pool, &machine->devices[k], "x", SHAPE((int64_t)elements));
        tensors[k]->persistent = true;
    }
    add_all_reduce(list, "sum", tensors, n);
    must(finish_lists(pool, &list, 1));
    for (int k = 0; k < n; k++) {
        float *values = random_floats(elements, (uint64_t)k + 1);
        write_tensor(tensors[k], values);
        free(values);
    }
    execute(list, 1);
    drain(list);
    for (int k = 0; k < n; k++)
        read_tensor(tensors[k], all + (size_t)k * elements);
    stop_lane_threads(machine);
    free(tensors);
    free_list_and_machine(list);
    return all;
}

TEST(sums_are_in_rank_order)
{
    static const size_t sizes[] = {1, 128, 300, 128 * 5, 4999};
    for (int apart = 0; apart < 2; apart++)
        for (int n = 1; n <= 5; n++)
            for (size_t i = 0; i < COUNT(sizes); i++) {
                contexts_apart(apart);
                float *found = reduced(n, sizes[i]);
                float *expected = NULL;
                for (int k = 0; k < n; k++) {
                    float *values = random_floats(sizes[i], (uint64_t)k + 1);
                    if (!expected) {
                        expected = values;
                        continue;
                    }
                    for (size_t e = 0; e < sizes[i]; e++)
                        expected[e] += values[e];
                    free(values);
                }
                for (size_t k = 0; k < (size_t)n; k++)
                    expect_same_bits("all-reduce", found + k * sizes[i], expected, sizes[i]);
                free(found);
                free(expected);
            }
    restore_contexts();
}

/* The device of the nth task on lanes of that kind. */
static int device_of_nth(const struct list *list, enum lane_kind kind, size_t nth)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->tasks[i]->lane->kind != kind)
            continue;
        if (nth == 0)
            return list->tasks[i]->lane->device->index;
        nth--;
    }
    return -1;
}

/* The n tasks on lanes of that kind from the first one on are of n devices. */
static void expect_spread(const struct list *list, enum lane_kind kind, size_t first, size_t n)
{
    unsigned seen = 0;
    for (size_t i = 0; i < n; i++)
        seen |= 1u << device_of_nth(list, kind, first + i);
    assert_int_equal(seen, (1u << n) - 1);
}

/* With n parts on n devices all send and all receive in each turn, so none is waited for by all others. */
TEST(no_device_gets_everything_at_once)
{
    enum { N = 4 };
    struct paper paper = new_paper(N, &slow_speeds);
    struct tensor *tensors[N];
    for (int k = 0; k < N; k++)
        tensors[k] = new_words(&paper, &paper.machine->devices[k], "x", N * 128, PERSISTENT);
    add_all_reduce(paper.list, "sum", tensors, N);
    for (size_t turn = 0; turn < N - 1; turn++) { /* each copy goes through the host: down, then up */
        expect_spread(paper.list, LANE_DOWNLOAD, turn * N, N);
        expect_spread(paper.list, LANE_UPLOAD, turn * N, N);
    }
    expect_spread(paper.list, LANE_DOWNLOAD, (N - 1) * N, N); /* sums come down once each, and go up to all others */
    for (size_t k = 0; k < N; k++) {
        size_t first = (N - 1) * (N + k);
        assert_int_equal(device_of_nth(paper.list, LANE_UPLOAD, first), (k + 1) % N);
    }
    end_paper(&paper);
}

/* Block sums are added up by unit, tensor-parallel rank and shard: in the same order for every dp.  (Another one shows
 * in the bits, but with few data.) */
TEST(the_norm_has_one_order)
{
    struct trainer *trainer =
        plan_training(parse_words("--model tiny -d 0:0x8 --mesh dp=2,pp=2,tp=2"), LIST_TRAIN | OPEN_DATA);
    int layer = -2;
    int last = 0;
    int seen = 0;
    for (size_t i = 0; i < trainer->train_list->n; i++) {
        const struct task *task = trainer->train_list->tasks[i];
        int rank = task->lane->device->index,
            at = tp_of(&trainer->mesh, rank) * trainer->mesh.dp + dp_of(&trainer->mesh, rank);
        if (strcmp(task->name, "norm.blocks") != 0)
            continue;
        if (task->layer == layer)
            assert_above(at, last);
        layer = task->layer;
        last = at;
        seen++;
    }
    assert_int_equal(seen, 2 * 4 + 3 + 1); /* two layers; the embedding, whose positions count once; the final norm */
    free_trainer(trainer);
}
