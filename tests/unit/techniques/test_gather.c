/* test_gather.c - ZeRO-3: devices keep parameters in shards, and gather them for as long as they use them.
 *
 * It tests src/techniques/gather.  It checks that gathers come one window ahead, that what is gathered is read, that
 * nothing but shards is kept, and that a proof of values distinguishes the shards.  It catches a layer that is gathered
 * although no task reads it, and a replica that persists.
 *
 * To see it fail: in gather.h, gather two windows ahead: WINDOWS_AHEAD = 2.
 *
 * test_mesh_bits.c tests the bits of such a training, and test_mesh_memory.c the bytes of its state.
 */
#include "planning/pass/edit.h"
#include "planning/pass/uses.h"
#include "planning/predict/plan.h"
#include "tests/support/support.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_training.h"

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* Is it gathered parameters on the first device? */
static bool is_gathered(const struct tensor *tensor)
{
    return tensor->storage == tensor && !tensor->persistent && tensor->class == MEM_PARAMETERS && tensor->list &&
           tensor->device->index == 0;
}

static int first_reader(const struct uses *uses, const struct tensor *tensor)
{
    const struct use_range found = uses_of(uses, tensor);
    for (size_t i = 0; i < found.n; i++)
        if (found.uses[i].mode & ACCESS_READ)
            return found.uses[i].position;
    return NONE;
}

/* How many other gathered tensors are first read between the last copy into this one and its own first reader. */
static size_t count_windows_ahead(const struct uses *uses, const struct pool *pool, const struct tensor *gathered)
{
    int reader = first_reader(uses, gathered);
    int copied = last_write_before(uses, gathered, reader);
    size_t n = 0;
    assert_int_not_equal(copied, NONE);
    for (size_t i = 0; i < pool->n; i++) {
        if (!is_gathered(pool->tensors[i]))
            continue;
        int other = first_reader(uses, pool->tensors[i]);
        if (copied < other && other < reader)
            n++;
    }
    return n;
}

/* Gathers come one window ahead: between the copies that fill a tensor and its first reader, another gathered one is
 * read first.  Nothing is read before the first window. */
TEST(layers_are_gathered_ahead)
{
    struct trainer *trainer =
        plan_training(parse_words("--model nano --layers 8 --batch 4 -d 0:0x2 --zero 3"), LIST_TRAIN);
    struct uses *uses = new_uses(trainer->train_list->tasks, trainer->train_list->n, trainer->pool);
    size_t gathered = 0;
    size_t first = 0;
    for (size_t i = 0; i < trainer->pool->n; i++) {
        const struct tensor *tensor = trainer->pool->tensors[i];
        if (!is_gathered(tensor))
            continue;
        size_t ahead = count_windows_ahead(uses, trainer->pool, tensor);
        if (ahead > 1)
            test_failed("%s is gathered %zu windows ahead\n", tensor->name, ahead);
        if (ahead == 0)
            first++;
        gathered++;
    }
    assert_int_equal(first, 1);
    size_t layers = (size_t)trainer->model->params->config.layers;
    size_t last_norm = 1, embedding = 1, head = 1;
    assert_int_equal(gathered, 2 * (layers + last_norm) + embedding + head); /* 2: forward and backward */
    free_uses(uses);
    free_trainer(trainer);
}

/* Each micro-batch has windows of its own, of the same parameters, and gets no more than it reads. */
TEST(what_is_gathered_is_read)
{
    struct trainer *trainer =
        plan_training(parse_words("--model tiny --batch 8 -d 0:0x2 --zero 3 --micro-batch 1"), LIST_TRAIN);
    size_t gathers = 0;
    for (size_t i = 0; i < trainer->train_list->n; i++) {
        const struct task *gather = trainer->train_list->tasks[i];
        bool read = false;
        if (strcmp(gather->name, "gather") != 0)
            continue;
        for (size_t k = i + 1; k < trainer->train_list->n && !read; k++)
            read = touches_bytes(trainer->train_list->tasks[k], copy_target(gather), ACCESS_READ);
        if (!read)
            test_failed("task %zu gathers %s, and nobody reads it\n", i, copy_target(gather)->storage->name);
        gathers++;
    }
    assert_above(gathers, 0);
    free_trainer(trainer);
}

/* How many tasks lie between two gathers at most, if they change their sources: each pair costs a proof of the list. */
enum { FARTHEST_PAIR = 12 };

static void set_source(struct task *copy, struct tensor *source) { copy->accesses[1].tensor = source; }

/* Two gathers of as many bytes change their sources: the proof must find it. */
TEST(a_wrong_shard_is_found)
{
    contexts_joined(); /* so that a gather copies from a shard itself */
    struct trainer *trainer = plan_training(parse_words("--model tiny --batch 4 -d 0:0x2 --zero 3"), LIST_TRAIN);
    restore_contexts();
    expect_sound("the list", trainer->train_list, values_of(trainer, trainer->train_list));
    size_t found = 0;
    for (size_t i = 0; i < trainer->train_list->n; i++)
        for (size_t k = i + 1; k < trainer->train_list->n && k < i + FARTHEST_PAIR; k++) {
            struct task *first = trainer->train_list->tasks[i], *second = trainer->train_list->tasks[k];
            if (strcmp(first->name, "gather") != 0 || strcmp(second->name, "gather") != 0)
                continue;
            struct tensor *own = copy_source(first), *other = copy_source(second);
            if (own->bytes != other->bytes || own->storage == other->storage)
                continue;
            set_source(first, other);
            set_source(second, own);
            expect_wrong("another shard", compare_values(values_of(trainer, trainer->train_list), trainer->train_list),
                         "reads other values");
            set_source(first, own);
            set_source(second, other);
            found++;
        }
    assert_above(found, 0);
    free_trainer(trainer);
}

/* No broadcast is left, no replica persists, and what the update writes are shards. */
static void expect_only_shards(bool apart)
{
    contexts_apart(apart);
    struct trainer *trainer =
        plan_training(parse_words("--model tiny --batch 4 -d 0:0x4 --mesh dp=2,pp=2 --zero 3"), ALL_LISTS | OPEN_DATA);
    restore_contexts();
    size_t updates = 0;
    for (size_t i = 0; i < trainer->train_list->n; i++) {
        const struct task *task = trainer->train_list->tasks[i];
        assert_int_not_equal(task->role, ROLE_BROADCAST);
        if (task->role != ROLE_UPDATE)
            continue;
        assert_true(task->accesses[0].tensor->storage->replica.is_shard); /* the parameters */
        updates++;
    }
    int shards = trainer->model->params->n_units * trainer->mesh.dp;
    assert_at_least(updates, shards - 1); /* a small one is empty */
    for (size_t i = 0; i < trainer->pool->n; i++) {
        const struct tensor *tensor = trainer->pool->tensors[i];
        if (tensor->persistent && tensor->class == MEM_PARAMETERS)
            assert_true(tensor->storage->replica.is_shard);
    }
    assert_null(verify_list(trainer->eval_list, values_of(trainer, trainer->eval_list)));
    assert_null(verify_list(trainer->sample_list, values_of(trainer, trainer->sample_list)));
    free_trainer(trainer);
}

TEST(only_shards_are_kept_in_one_context) { expect_only_shards(false); }

TEST(only_shards_are_kept_in_separate_contexts) { expect_only_shards(true); }
