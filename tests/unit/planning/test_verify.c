/* test_verify.c - proving that a list computes what it should.
 *
 * It tests verify_list() and compare_values() of src/planning/proof.  The first looks at bytes and order, and the
 * second at what is computed.  A pass that only moves values around must pass both.  This test breaks finished lists on
 * purpose, in one way at a time, and checks that the checker which should notice does so.  So it catches a checker that
 * is blind to one kind of mistake.
 *
 * To see it fail: in verify.c, take each edge for a wait: leave out edge->needs_wait beside producer_node().
 *
 * No OpenCL device is opened here, except by the journey.
 */
#include "planning/lists/lists.h"
#include "planning/pass/edit.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_schedule.h"
#include "trainer/train/train.h"

/* ---- lists that were broken on purpose --------------------------------------------------------------------------- */

/* Place and order the list again, as is done after passes. */
static void finish_again(struct trainer *trainer)
{
    for (size_t i = 0; i < trainer->pool->n; i++) {
        struct tensor *tensor = trainer->pool->tensors[i];
        tensor->list = NULL;
        tensor->held_from = INT32_MAX;
        tensor->held_until = NONE;
        tensor->slab = NONE;
    }
    finish_list(trainer->train_list);
}

static struct trainer *plan_two(void) { return plan_tiny(write_hardware("tiny.txt", &plausible_speeds), 2); }

/* Caught by verify_list(): order.  The values are those of the list's own order, so nothing is wrong with them. */
TEST(a_dropped_wait_is_an_error_of_order)
{
    struct trainer *trainer = plan_two();
    expect_sound("whole", trainer->train_list, values_of(trainer, trainer->train_list));
    assert_above(expect_waits_needed(trainer->train_list, 4), 40); /* every fourth wait of this list: over 80 */
    assert_null(compare_values(values_of(trainer, trainer->train_list), trainer->train_list));
    free_trainer(trainer);
}

static void move_task(struct list *list, size_t from, size_t to)
{
    struct task *task = list->tasks[from];
    if (from < to)
        memmove(&list->tasks[from], &list->tasks[from + 1], (to - from) * sizeof task);
    else
        memmove(&list->tasks[to + 1], &list->tasks[to], (from - to) * sizeof task);
    list->tasks[to] = task;
    for (size_t i = 0; i < list->n; i++)
        list->tasks[i]->index = i;
}

/* The last task before i that writes what i reads, or NONE. */
static int producer_of(const struct list *list, int i, const struct tensor *tensor)
{
    for (int k = i - 1; k >= 0; k--)
        for (int a = 0; a < list->tasks[k]->n_accesses; a++)
            if (share_bytes(list->tasks[k]->accesses[a].tensor, tensor) &&
                (list->tasks[k]->accesses[a].mode & ACCESS_WRITE))
                return k;
    return NONE;
}

/* Caught by compare_values(): it reads another value, or what is not yet written.  Placed and ordered as it now stands,
 * the list is in itself sound wherever the tensor persists, so verify_list() alone may have nothing to say. */
TEST(a_task_before_its_producer_is_found)
{
    struct trainer *trainer = plan_two();
    struct list *list = trainer->train_list;
    size_t moved = 0, by_verify = 0;
    for (int i = 0; i < (int)list->n; i += 3)
        for (int a = 0; a < list->tasks[i]->n_accesses; a++) {
            const struct access *access = &list->tasks[i]->accesses[a];
            int k = access->mode & ACCESS_READ ? producer_of(list, i, access->tensor) : NONE;
            if (k == NONE)
                continue;
            move_task(list, (size_t)i, (size_t)k);
            finish_again(trainer);
            struct problem *problem = verify_list(list, NULL);
            if (problem)
                by_verify++;
            free(problem);
            expect_wrong(list->tasks[k]->name, compare_values(values_of(trainer, trainer->train_list), list), "reads");
            move_task(list, (size_t)k, (size_t)i);
            moved++;
            break;
        }
    assert_above(moved, 50); /* the list has over 100 tasks that can be moved so */
    assert_above(by_verify, moved / 2);
    finish_again(trainer);
    expect_sound("moved back", list, values_of(trainer, trainer->train_list));
    free_trainer(trainer);
}

static bool same_task(const struct task *a, const struct task *b)
{
    return a->layer == b->layer && a->lane == b->lane && strcmp(a->name, b->name) == 0;
}

/* Caught by compare_values(): both tensors are written and live, so the list is sound in itself. */
TEST(the_wrong_micro_batch_is_found)
{
    struct trainer *trainer = plan_two();
    struct list *list = trainer->train_list;
    size_t tried = 0;
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < i && list->tasks[i]->micro == 1; k++) {
            if (list->tasks[k]->micro != 0 || !same_task(list->tasks[i], list->tasks[k]))
                continue;
            for (int a = 0; a < list->tasks[i]->n_accesses; a++) {
                struct access *access = &list->tasks[i]->accesses[a];
                struct tensor *right = access->tensor, *wrong = list->tasks[k]->accesses[a].tensor;
                if (access->mode != ACCESS_READ || right == wrong)
                    continue;
                access->tensor = wrong;
                expect_wrong(list->tasks[i]->name, compare_values(values_of(trainer, trainer->train_list), list),
                             "reads other values");
                access->tensor = right;
                tried++;
            }
        }
    assert_above(tried, 50);
    free_trainer(trainer);
}

/* A tensor that is written once and read later, up to its end. */
static bool is_simple(const struct list *list, const struct tensor *tensor)
{
    size_t writes = 0;
    bool read_last = false;
    if (tensor->storage != tensor || tensor->persistent || tensor->list != list)
        return false;
    if (tensor->held_until <= tensor->held_from + 1) /* it is used by two tasks in a row */
        return false;
    for (int i = tensor->held_from; i <= tensor->held_until; i++)
        for (int a = 0; a < list->tasks[i]->n_accesses; a++)
            if (list->tasks[i]->accesses[a].tensor->storage == tensor) {
                if (list->tasks[i]->accesses[a].mode & ACCESS_WRITE)
                    writes++;
                read_last = list->tasks[i]->accesses[a].mode == ACCESS_READ;
            }
    return writes == 1 && read_last;
}

/* Could the other tensor lie on the tensor's bytes, if it is first written between `from` and `to` tasks before the
 * tensor's last reader? */
static bool could_lie_there(const struct tensor *tensor, const struct tensor *other, int from, int to)
{
    bool is_alike = other->storage == other && other->list == tensor->list && other->device == tensor->device;
    if (other == tensor || !is_alike || other->bytes > tensor->bytes)
        return false;
    int before_end = tensor->held_until - other->held_from;
    return other->held_from > tensor->held_from && before_end <= from && before_end >= to;
}

/* Caught by verify_list(): bytes.  As if the life of a tensor had ended too early: another tensor, which is first
 * written while it is still to be read, lies on its bytes.  `from` and `to`: how far before its last reader. */
static size_t free_early(struct trainer *trainer, int from, int to)
{
    size_t tried = 0;
    for (size_t i = 0; i < trainer->pool->n; i++) {
        const struct tensor *tensor = trainer->pool->tensors[i];
        for (size_t k = 0; is_simple(trainer->train_list, tensor) && k < trainer->pool->n; k++) {
            struct tensor *other = trainer->pool->tensors[k];
            if (!could_lie_there(tensor, other, from, to))
                continue;
            size_t address = other->address;
            int slab = other->slab;
            other->address = tensor->address;
            other->slab = tensor->slab;
            depend(trainer->train_list, ALL_EDGES);
            /* This looks at no addresses. */
            assert_null(compare_values(values_of(trainer, trainer->train_list), trainer->train_list));
            expect_wrong(tensor->name, verify_list(trainer->train_list, NULL), "tensor");
            other->address = address;
            other->slab = slab;
            tried++;
            break;
        }
    }
    depend(trainer->train_list, ALL_EDGES);
    return tried;
}

TEST(bytes_freed_too_early_are_found)
{
    struct trainer *trainer = plan_two();
    assert_above(free_early(trainer, 1 << 20, 1), 30);
    assert_above(free_early(trainer, 0, 0), 5);
    expect_sound("mended", trainer->train_list, values_of(trainer, trainer->train_list));
    free_trainer(trainer);
}

/* ---- swapping: copies that change nothing, and such that do ------------------------------------------------------ */

/* a goes out to h and comes back as b, which g reads; w persists.
 *
 *     f   compute    a          out  download  h <- a        in  upload  b <- h        g  compute  w <- b
 */
struct exchange {
    struct paper paper;
    struct values *plain; /* the values of the list without the copies */
    struct tensor *a, *b, *h;
};

static struct exchange new_swap(enum lifetime of_h)
{
    struct exchange exchange = {.paper = new_paper(1, &slow_speeds)};
    struct paper *paper = &exchange.paper;
    struct lane *compute = paper->device->lanes[LANE_COMPUTE];
    exchange.a = new_words(paper, paper->device, "a", 8, TRANSIENT);
    exchange.b = new_words(paper, paper->device, "b", 8, TRANSIENT);
    exchange.h = new_words(paper, paper->host, "h", 8, of_h);
    struct tensor *tensor = new_words(paper, paper->device, "w", 8, PERSISTENT);
    add_paper(paper, compute, "f", exchange.a, tensor, NULL);
    add_paper(paper, compute, "g", tensor, exchange.a, NULL);
    exchange.plain = hash_values(paper->list);
    add_copy(paper->list, paper->device->lanes[LANE_DOWNLOAD], "out", exchange.h, exchange.a);
    add_copy(paper->list, paper->device->lanes[LANE_UPLOAD], "in", exchange.b, exchange.h);
    move_task(paper->list, 1, 3);
    paper->list->tasks[3]->accesses[1].tensor = exchange.b;
    return exchange;
}

static void order_swap(struct exchange *exchange)
{
    must(place(exchange->paper.pool, &exchange->paper.list, 1, PLACE_TO_CHECK));
    depend(exchange->paper.list, ALL_EDGES);
}

static void end_swap(struct exchange *exchange)
{
    free_values(exchange->plain);
    end_paper(&exchange->paper);
}

/* Caught by both when h is new in every step; by compare_values() alone when h keeps what the last step left there. */
TEST(a_swap_in_before_its_out_is_found)
{
    for (int persists = 0; persists < 2; persists++) {
        struct exchange exchange = new_swap(persists ? PERSISTENT : TRANSIENT);
        move_task(exchange.paper.list, 2, 1);
        order_swap(&exchange);
        expect_wrong("in before out", compare_values(exchange.plain, exchange.paper.list), "other values");
        if (persists)
            expect_sound("sound in itself", exchange.paper.list, NULL);
        else
            expect_wrong("in before out", verify_list(exchange.paper.list, NULL),
                         "tensor h before anything is written");
        end_swap(&exchange);
    }
}

/* Caught by verify_list(): order.  Two lanes and the step's end are crossed, and every wait on the way is needed. */
TEST(a_swap_needs_its_waits)
{
    struct exchange exchange = new_swap(TRANSIENT);
    order_swap(&exchange);
    expect_waits_needed(exchange.paper.list, 1);
    end_swap(&exchange);
}

/* Caught by compare_values(): it is w that goes out and comes back as b. */
TEST(a_swap_of_another_value_is_found)
{
    struct exchange exchange = new_swap(TRANSIENT);
    /* out: h <- w */
    exchange.paper.list->tasks[1]->accesses[1].tensor = exchange.paper.list->tasks[0]->accesses[1].tensor;
    order_swap(&exchange);
    expect_sound("sound in itself", exchange.paper.list, NULL);
    expect_wrong("w in place of a", compare_values(exchange.plain, exchange.paper.list), "task 3 g");
    end_swap(&exchange);
}

/* A tensor that persists is a result too: a copy to it counts although no task of the list reads it. */
TEST(a_copy_that_is_left_out_is_found)
{
    for (int wrong = 0; wrong < 2; wrong++) {
        struct paper paper = new_paper(1, &slow_speeds);
        struct tensor *x = new_words(&paper, paper.device, "x", 8, TRANSIENT),
                      *y = new_words(&paper, paper.device, "y", 8, TRANSIENT);
        struct tensor *result = new_words(&paper, paper.host, "result", 8, PERSISTENT);
        add_paper(&paper, paper.device->lanes[LANE_COMPUTE], "make x", x, NULL, NULL);
        add_paper(&paper, paper.device->lanes[LANE_COMPUTE], "make y", y, x, NULL);
        add_copy(paper.list, paper.device->lanes[LANE_DOWNLOAD], "keep", result, y);
        struct values *values = hash_values(paper.list);
        if (wrong)
            paper.list->tasks[2]->accesses[1].tensor = x;
        else
            paper.list->n--;
        expect_wrong(wrong ? "another tensor is kept" : "nothing is kept", compare_values(values, paper.list), "");
        paper.list->n = 3;
        free_values(values);
        end_paper(&paper);
    }
}

/* ---- slices, repeats and stand-ins ------------------------------------------------------------------------------- */

/* Each makes one change to a fresh list: in a good way (fault 0), or with a fault.  false: there is no such place. */
typedef bool change(struct trainer *trainer, struct edit *edit, size_t place, int fault);

static struct task *nth_task(const struct trainer *trainer, const char *name, size_t nth)
{
    for (size_t i = 0; i < trainer->train_list->n; i++) {
        if (strcmp(trainer->train_list->tasks[i]->name, name) != 0)
            continue;
        if (nth == 0)
            return trainer->train_list->tasks[i];
        nth--;
    }
    return NULL;
}

/* Makes the change in every place, right and with every fault: verify_list() accepts the right one and no other.
 * Returns how many faults were caught. */
static size_t try_change(const char *what, change *make, int ranks, int faults)
{
    size_t caught = 0;
    for (int fault = 0; fault <= faults; fault++)
        for (size_t place = 0;; place++) {
            struct trainer *trainer = plan_tiny(write_hardware("tiny.txt", &plausible_speeds), ranks);
            struct edit *edit = open_edit(trainer->train_list);
            bool made = make(trainer, edit, place, fault);
            commit_edit(edit);
            finish_again(trainer);
            struct problem *problem =
                made ? verify_list(trainer->train_list, values_of(trainer, trainer->train_list)) : NULL;
            if (made && (problem != NULL) != (fault > 0))
                test_failed("%s, fault %d in place %zu: %s\n", what, fault, place,
                            problem ? problem->sentence : "nothing wrong");
            if (made && fault)
                expect_wrong(what, compare_values(values_of(trainer, trainer->train_list), trainer->train_list), "");
            if (problem)
                caught++;
            free(problem);
            free_trainer(trainer);
            if (!made)
                break;
        }
    print_message("%s: %zu faults caught\n", what, caught);
    return caught;
}

/* Elementwise tasks of all kinds are cut into three; one slice is left out, reads the slice beside, or comes twice. */
static bool cut_a_task(struct trainer *trainer, struct edit *edit, size_t place, int fault)
{
    static const char *const names[] = {"adamw", "tied.add", "reduce.add", "mlp.gelu", "mlp.gelu.dx", "mlp.residual"};
    struct task *slice[3];
    struct task *task = place < COUNT(names) ? nth_task(trainer, names[place], 1) : NULL;
    if (!task)
        return false;
    size_t n = cut_task(edit, task, 3, slice);
    assert_int_equal(n, 3);
    if (fault >= 1 && fault <= 3)
        drop_task(edit, slice[fault - 1]);
    for (int i = 0; i < task->n_accesses && fault == 4; i++)
        if (slice[0]->accesses[i].mode == ACCESS_READ && slice[0]->accesses[i].tensor->bytes >= 512) {
            slice[1]->accesses[i].tensor = slice[0]->accesses[i].tensor;
            break;
        }
    return true;
}

/* The (T, T) matrix is made again before the backward that reads it.  Faults: the softmax, which works in place, is
 * left on the old tensor; it reads another layer's q and k; it is left out. */
static bool repeat_attention(struct trainer *trainer, struct edit *edit, size_t place, int fault)
{
    struct task *scores = nth_task(trainer, "attn.scores", place), *softmax = nth_task(trainer, "attn.softmax", place);
    if (!scores)
        return false;
    struct tensor *att = softmax->accesses[0].tensor, *qkv = scores->accesses[1].tensor; /* (of CLBlast: out, a, b) */
    bool is_even = place % 2 == 0;
    size_t other_place = is_even ? place + 1 : place - 1; /* another layer's */
    struct tensor *other = nth_task(trainer, "attn.scores", other_place)->accesses[1].tensor;
    struct task *reader = NULL;
    for (size_t i = softmax->index + 2; !reader; i++) /* it comes after attn.mix */
        for (int k = 0; k < trainer->train_list->tasks[i]->n_accesses; k++)
            reader = trainer->train_list->tasks[i]->accesses[k].tensor == att ? trainer->train_list->tasks[i] : reader;
    assert_string_equal(reader->name, "attn.dv");
    struct tensor *twin = tensor_like(trainer->pool, att->device, att);
    insert_before(edit, reader);
    struct task *again = repeat_task(edit, scores);
    repoint_task(edit, again, att, twin);
    if (fault == 2)
        repoint_task(edit, again, qkv, other);
    if (fault != 3) {
        again = repeat_task(edit, softmax);
        if (fault != 1)
            repoint_task(edit, again, att, twin);
    }
    repoint_task(edit, reader, att, twin);
    return true;
}

/* The accesses of an AdamW task: those of its arguments up to ADAMW_VERDICT (model.h). */
enum { ADAMW_ACCESSES = ADAMW_VERDICT + 1 };

/* The mistakes of an update on the host. */
enum update_fault {
    NO_FAULT,
    VALUE_STAYS_AWAY, /* the new parameters do not come back */
    OTHER_GRADIENT,
    OTHER_CONTROL, /* other settings: the learning rate ... */
    VALUE_NEVER_CAME,
    M_STAYS, /* m stays on the device, and the host has a copy, which it changes in vain */
    LAST_FAULT = M_STAYS
};

struct host_update {
    struct task *adamw;                /* that of the device, which leaves the list */
    struct task *mine;                 /* the update on the host, in its place */
    struct task *up;                   /* the parameters' copy back to the device */
    struct task *down[ADAMW_ACCESSES]; /* the copies to the host; NULL: the tensor lives there */
};

static struct task *copy_to_host(struct trainer *trainer, const struct task *adamw, int access)
{
    struct tensor *from = adamw->accesses[access].tensor;
    struct tensor *there = tensor_like(trainer->pool, trainer->machine->host, from);
    return add_copy(trainer->train_list, adamw->lane->device->lanes[LANE_DOWNLOAD], "to.host", there, from);
}

static struct host_update update_on_host_well(struct trainer *trainer, struct edit *edit, struct task *adamw)
{
    struct device *host = trainer->machine->host;
    struct lane *up = adamw->lane->device->lanes[LANE_UPLOAD];
    struct tensor *there[ADAMW_ACCESSES];
    struct host_update update = {.adamw = adamw};
    insert_before(edit, adamw);
    for (int i = 0; i < ADAMW_ACCESSES; i++) {
        there[i] = adamw->accesses[i].tensor;
        if (i == ADAMW_M || i == ADAMW_V) {
            set_home(edit, there[i], host);
            continue;
        }
        update.down[i] = copy_to_host(trainer, adamw, i);
        there[i] = update.down[i]->accesses[0].tensor;
    }
    update.mine = add_host(trainer->train_list, host->lanes[LANE_CPU], "adamw.host", adamw->function, NULL);
    for (int i = 0; i < ADAMW_ACCESSES; i++)
        add_access(update.mine, there[i], adamw->accesses[i].mode);
    update.up = add_copy(trainer->train_list, up, "from.host", adamw->accesses[ADAMW_P].tensor, there[ADAMW_P]);
    stand_in(edit, update.mine, adamw);
    return update;
}

/* The gradient of another update on the same device, as large as this one's; or, where there is none, m. */
static struct tensor *another_gradient(const struct trainer *trainer, const struct task *adamw)
{
    const struct tensor *own = adamw->accesses[ADAMW_G].tensor;
    struct task *other = nth_task(trainer, "adamw", 0);
    for (size_t nth = 1; other; nth++) {
        struct tensor *gradient = other->accesses[ADAMW_G].tensor;
        if (other != adamw && gradient->device == own->device && gradient->bytes == own->bytes)
            return gradient;
        other = nth_task(trainer, "adamw", nth);
    }
    return adamw->accesses[ADAMW_M].tensor;
}

static struct tensor *persistent_twin(struct trainer *trainer, const struct tensor *tensor)
{
    struct tensor *twin = tensor_like(trainer->pool, tensor->device, tensor);
    twin->persistent = true;
    return twin;
}

static void spoil(struct trainer *trainer, struct edit *edit, const struct host_update *update, enum update_fault fault)
{
    struct access *gradient = &update->down[ADAMW_G]->accesses[1]; /* what the copy reads */
    struct access *control = &update->down[ADAMW_CONTROL]->accesses[1];
    struct tensor *tensor = update->adamw->accesses[ADAMW_M].tensor;
    switch (fault) {
    case NO_FAULT:
        break;
    case VALUE_STAYS_AWAY:
        drop_task(edit, update->up);
        break;
    case OTHER_GRADIENT:
        gradient->tensor = another_gradient(trainer, update->adamw);
        break;
    case OTHER_CONTROL:
        control->tensor = persistent_twin(trainer, control->tensor);
        break;
    case VALUE_NEVER_CAME:
        drop_task(edit, update->down[ADAMW_P]);
        update->mine->accesses[ADAMW_P].tensor->persistent = true;
        break;
    case M_STAYS:
        set_home(edit, tensor, update->adamw->lane->device);
        insert_before(edit, update->mine);
        repoint_task(edit, update->mine, tensor, copy_to_host(trainer, update->adamw, ADAMW_M)->accesses[0].tensor);
        break;
    }
}

/* An update runs on the host. */
static bool update_on_host(struct trainer *trainer, struct edit *edit, size_t place, int fault)
{
    struct task *adamw = nth_task(trainer, "adamw", place);
    if (!adamw)
        return false;
    struct host_update update = update_on_host_well(trainer, edit, adamw);
    spoil(trainer, edit, &update, fault);
    return true;
}

/* Three ranks' gradients are summed as (g0 + g1) + g2.  Faults: g1 and g2 change places, in all of it or in one slice
 * of three; g1 comes twice. */
static bool change_chain(struct trainer *trainer, struct edit *edit, size_t place, int fault)
{
    struct task *first = nth_task(trainer, "reduce.add", 2 * place),
                *second = nth_task(trainer, "reduce.add", 2 * place + 1);
    struct task *a[3], *b[3];
    if (!first)
        return false;
    size_t n = cut_task(edit, first, 3, a);
    assert_int_equal(n, cut_task(edit, second, 3, b));
    for (size_t i = 0; i < n && fault; i++) {
        if (fault == 2 && i != 1 % n)
            continue;
        struct tensor *g1 = a[i]->accesses[1].tensor;
        if (fault != 3)
            a[i]->accesses[1].tensor = b[i]->accesses[1].tensor;
        b[i]->accesses[1].tensor = g1;
    }
    return true;
}

TEST(wrong_slices_repeats_and_stand_ins_are_found)
{
    /* The faults, each in every place that the list has for it. */
    size_t updates = 7; /* on two ranks those of two layers, of the embedding, and on one of the last LayerNorm */
    assert_int_equal(try_change("cut", cut_a_task, 2, 4), 4 * 6);
    assert_int_equal(try_change("repeat", repeat_attention, 2, 3), 3 * 8);
    assert_int_equal(try_change("stand in", update_on_host, 2, LAST_FAULT), LAST_FAULT * updates);
    assert_int_equal(try_change("chain", change_chain, 3, 3), 3 * 10);
}

/* Work that nothing reads counts as well. */
TEST(a_slice_that_is_missing_is_found)
{
    for (size_t missing = 0; missing < 3; missing++) {
        struct paper paper = new_paper(1, &slow_speeds);
        struct task *slice[3];
        struct tensor *x = new_words(&paper, paper.device, "x", 512, TRANSIENT),
                      *y = new_words(&paper, paper.device, "y", 512, TRANSIENT);
        add_paper(&paper, paper.device->lanes[LANE_COMPUTE], "make", x, NULL, NULL);
        struct task *task = add_paper(&paper, paper.device->lanes[LANE_COMPUTE], "work", y, x, NULL);
        set_elementwise(task);
        struct values *values = hash_values(paper.list);
        struct edit *edit = open_edit(paper.list);
        assert_int_equal(cut_task(edit, task, 3, slice), 3);
        drop_task(edit, slice[missing]);
        commit_edit(edit);
        expect_wrong("a slice is missing", compare_values(values, paper.list), "work");
        free_values(values);
        end_paper(&paper);
    }
}

/* A copy that a move between two devices leaves on the host is no result: another way is as good.  The copy of a
 * result is not missed before the list is compared. */
TEST(a_move_may_take_another_way)
{
    struct paper paper = new_paper(2, &slow_speeds);
    struct device *there = &paper.machine->devices[1];
    struct tensor *w = new_words(&paper, paper.device, "w", 64, PERSISTENT);
    struct tensor *x = new_words(&paper, paper.device, "x", 64, TRANSIENT);
    struct tensor *y = new_words(&paper, there, "y", 64, TRANSIENT);
    struct tensor *z = new_words(&paper, there, "z", 64, PERSISTENT);
    struct tensor *kept = new_words(&paper, paper.host, "kept", 64, PERSISTENT);
    struct tensor *way = new_words(&paper, paper.host, "way", 64, TRANSIENT);
    add_paper(&paper, paper.device->lanes[LANE_COMPUTE], "f", x, w, NULL);
    add_move(paper.list, "move", y, x, FOR_MOVES);
    struct task *down = paper.list->tasks[1], *up = paper.list->tasks[2];
    add_paper(&paper, there->lanes[LANE_COMPUTE], "g", z, y, NULL);
    struct task *result = add_copy(paper.list, there->lanes[LANE_DOWNLOAD], "result", kept, z);
    struct values *values = hash_values(paper.list);
    struct edit *edit = open_edit(paper.list);
    insert_before(edit, down);
    add_copy(paper.list, paper.device->lanes[LANE_DOWNLOAD], "out", way, x);
    add_copy(paper.list, there->lanes[LANE_UPLOAD], "in", y, way);
    drop_task(edit, down);
    drop_task(edit, up);
    commit_edit(edit);
    finish_list(paper.list);
    expect_sound("another way", paper.list, values);
    edit = open_edit(paper.list);
    drop_task(edit, result);
    commit_edit(edit);
    expect_wrong("no result", compare_values(values, paper.list), "a tensor that persists ends with another value");
    free_values(values);
    end_paper(&paper);
}

/* ---- where tensors lie ------------------------------------------------------------------------------------------- */

TEST(verify_sees_the_end_of_a_slab)
{
    struct journey journey = new_journey(no_work, NULL);
    must(finish_lists(journey.pool, &journey.list, 1));
    expect_sound("the list", journey.list, NULL);
    journey.p->address = journey.p->device->slabs[0].bytes - journey.p->bytes / 2;
    expect_wrong("journey", verify_list(journey.list, NULL), "tensor p extends past the end of its slab");
    end_journey(&journey);
}

/* p, which no task touches, and y are in two slabs of 8 bytes each, then on the same bytes, then too much. */
TEST(verify_finds_addresses_that_do_not_fit)
{
    struct list *list = read_text_list("device gpu memory=1000 slab=8\ntensor p gpu 8 work keep\ntensor y gpu 8 work\n"
                                       "task f gpu.compute 1 writes=y\n");
    struct tensor *p = list->pool->tensors[0], *y = list->pool->tensors[1];
    assert_int_equal(p->slab, 0);
    assert_int_equal(y->slab, 1);
    assert_int_equal(p->address, y->address);
    list->pool->machine->devices[0].budget = 15;
    expect_wrong("the list", verify_list(list, NULL), "device gpu holds 16 bytes, its budget is 15");
    y->slab = 0;
    y->address = 7;
    expect_wrong("the list", verify_list(list, NULL), "tensor y shares bytes with p, which is kept from step to step");
    y->address = 8;
    list->pool->machine->devices[0].budget = 16;
    expect_sound("the list", list, NULL);
    free_list_and_machine(list);
}

/* Tensors on another device are copied; a word by which the host chooses is not. */
TEST(verify_sees_a_task_that_reads_another_device)
{
    static const struct {
        const char *tasks, *wrong;
    } lists[] = {{"task f a.compute 1 writes=x\ntask g b.compute 1 reads=x\n",
                  "task 1 g of device b touches tensor x of device a: only a copy may"},
                 {"task f b.upload 1 writes=x[0:4]\n",
                  "task 0 f of device b touches tensor x[0:4] of device a: only a copy may"},
                 {"task f a.compute 1 writes=x\ntask g host.cpu 1 reads=x\n",
                  "task 1 g of device host touches tensor x of device a: only a copy may"},
                 {"task f a.compute 1 writes=x\ncopy c y x\ntask g b.compute 1 reads=y\n", NULL},
                 {"task f a.compute 1 writes=x\ncopy c h x\ntask g host.cpu 1 reads=h\n", NULL}};
    for (size_t i = 0; i < COUNT(lists); i++) {
        char *text =
            format_string(A_AND_B "tensor x a 8 work\ntensor y b 8 work\ntensor h host 8 work\n%s", lists[i].tasks);
        struct list *list = read_text_list(text); /* order and bytes are right */
        struct problem *problem = verify_devices(list);
        const char *expected = lists[i].wrong ? lists[i].wrong : "nothing";
        const char *said = problem ? problem->sentence : "nothing";
        if (strcmp(said, expected) != 0)
            test_failed("%s: verify says %s, expected %s\n", lists[i].tasks, said, expected);
        free(problem);
        free(text);
        free_list_and_machine(list);
    }
}
