/* test_edit.c - the verbs in which passes are written: insert, move, cut, repoint and undo.
 *
 * It tests edit.c of src/planning/pass.  It checks that after each verb the list means what it meant before, or that
 * the verb refuses and says what is in the way; and that after undo every byte is as it was.  It catches a task that
 * moves past another one that it depends on, a wait that is lost with the task that it was for, and a slice that writes
 * outside its part.
 *
 * To see it fail: in try_to_pass() of edit.c, exchange `task` and `neighbour` in the line of `first`.
 *
 * The lists are small and written by hand, so that a reader sees what each verb must make of them.
 */
#include "planning/pass/pass.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_schedule.h"

/*     make    compute   a <- w         w persists; a, b and c have 2048 bytes
 *     left    compute   b <- a
 *     right   compute   c <- a
 *     join    compute   w <- b, c
 */
struct diamond {
    struct paper paper;
    struct tensor *w, *a, *b, *c;
    struct task *make, *left, *right, *join;
};

static struct diamond make_diamond(void)
{
    struct diamond diamond = {.paper = new_paper(1, &slow_speeds)};
    struct paper *paper = &diamond.paper;
    struct lane *compute = paper->device->lanes[LANE_COMPUTE];
    diamond.w = new_words(paper, paper->device, "w", 512, PERSISTENT);
    diamond.a = new_words(paper, paper->device, "a", 512, TRANSIENT);
    diamond.b = new_words(paper, paper->device, "b", 512, TRANSIENT);
    diamond.c = new_words(paper, paper->device, "c", 512, TRANSIENT);
    diamond.make = add_paper(paper, compute, "make", diamond.a, diamond.w, NULL);
    diamond.left = add_paper(paper, compute, "left", diamond.b, diamond.a, NULL);
    diamond.right = add_paper(paper, compute, "right", diamond.c, diamond.a, NULL);
    diamond.join = add_paper(paper, compute, "join", diamond.w, diamond.b, diamond.c);
    struct task *all[] = {diamond.make, diamond.left, diamond.right, diamond.join};
    for (size_t i = 0; i < COUNT(all); i++)
        set_elementwise(all[i]);
    return diamond;
}

static struct task *add_named(struct diamond *diamond, const char *name)
{
    return add_paper(&diamond->paper, diamond->paper.device->lanes[LANE_COMPUTE], name, NULL, NULL, NULL);
}

TEST(tasks_come_where_they_are_inserted)
{
    struct diamond diamond = make_diamond();
    struct list *list = diamond.paper.list;
    diamond.left->layer = 3;
    diamond.left->micro = 1;
    diamond.left->role = ROLE_BACKWARD;
    struct edit *edit = open_edit(list);
    insert_behind(edit, diamond.left);
    add_named(&diamond, "left1");
    struct task *second = add_named(&diamond, "left2");
    insert_before(edit, diamond.make);
    add_named(&diamond, "make-2");
    add_named(&diamond, "make-1");
    insert_before(edit, second);
    add_named(&diamond, "left1.5");
    insert_behind(edit, diamond.join);
    add_named(&diamond, "end");
    commit_edit(edit);
    expect_order(list, "make-2 make-1 make left left1 left1.5 left2 right join end");
    assert_int_equal(second->layer, 3);
    assert_int_equal(second->micro, 1);
    assert_int_equal(second->role, ROLE_BACKWARD);
    add_named(&diamond, "later"); /* no edit is open: at the end, and of no layer */
    assert_int_equal(list->tasks[list->n - 1]->layer, -1);
    expect_order(list, "make-2 make-1 make left left1 left1.5 left2 right join end later");
    end_paper(&diamond.paper);
}

TEST(a_copy_before_a_task_leaves_the_place)
{
    struct diamond diamond = make_diamond();
    struct list *list = diamond.paper.list;
    struct edit *edit = open_edit(list);
    insert_behind(edit, diamond.right);
    list->tags.layer = 5;
    add_copy_before(edit, diamond.make, diamond.paper.device->lanes[LANE_UPLOAD], "copy", diamond.b, diamond.c);
    add_named(&diamond, "right1");
    add_copy_before(edit, diamond.join, diamond.paper.device->lanes[LANE_UPLOAD], "late", diamond.b, diamond.c);
    add_named(&diamond, "right2");
    commit_edit(edit);
    expect_order(list, "copy make left right right1 right2 late join");
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        bool was_there = task == diamond.make || task == diamond.left || task == diamond.right || task == diamond.join;
        assert_int_equal(task->layer, was_there ? -1 : 5);
    }
    end_paper(&diamond.paper);
}

TEST(moves_stop_at_data_edges)
{
    struct diamond diamond = make_diamond();
    struct list *list = diamond.paper.list;
    struct edit *edit = open_edit(list);
    assert_false(sink_task(edit, diamond.make, diamond.right)); /* left is on the way, and reads what make writes */
    assert_false(hoist_task(edit, diamond.join, diamond.left)); /* right is on the way, and writes what join reads */
    assert_false(sink_task(edit, diamond.join, diamond.make));  /* make is before join, not after it */
    assert_false(hoist_task(edit, diamond.make, diamond.left)); /* left is after make, not before it */
    assert_true(sink_task(edit, diamond.left, diamond.left));   /* left stays where it is */
    assert_true(sink_task(edit, diamond.left, diamond.right));  /* both only read a: make right left join */
    assert_true(hoist_task(edit, diamond.left, diamond.right)); /* and back: make left right join */
    assert_true(hoist_task(edit, diamond.right, diamond.left)); /* make right left join */
    commit_edit(edit);
    expect_order(list, "make right left join");
    end_paper(&diamond.paper);
}

/* "After" a task that is cut means after its last slice; "after" one that has left means where it was. */
TEST(insertion_stays_when_a_task_is_cut)
{
    struct diamond diamond = make_diamond();
    struct task *slice[2];
    struct edit *edit = open_edit(diamond.paper.list);
    insert_behind(edit, diamond.left);
    cut_task(edit, diamond.left, 2, slice);
    add_named(&diamond, "new");
    insert_before(edit, diamond.right);
    cut_task(edit, diamond.right, 2, slice);
    add_named(&diamond, "more");
    insert_behind(edit, diamond.join);
    drop_task(edit, diamond.join);
    add_named(&diamond, "end");
    commit_edit(edit);
    expect_order(diamond.paper.list, "make left left new more right right end");
    end_paper(&diamond.paper);
}

static void drop_twice(void *unused)
{
    (void)unused;
    struct diamond diamond = make_diamond();
    struct edit *edit = open_edit(diamond.paper.list);
    drop_task(edit, diamond.left);
    drop_task(edit, diamond.make); /* the task before it, to which it still points */
    drop_task(edit, diamond.left);
}

TEST(a_task_is_dropped_once)
{
    struct outcome outcome = run_child(drop_twice, NULL);
    assert_int_equal(outcome.signal, SIGABRT);
    assert_contains(outcome.text, "task left has left the list before");
}

/* Ranges that lie side by side are no conflict; a held update may pass no backward, whatever the two touch. */
TEST(ranges_side_by_side_may_be_moved_past_each_other)
{
    struct paper paper = new_paper(1, &slow_speeds);
    struct lane *lane = paper.device->lanes[LANE_COMPUTE];
    struct tensor *tensor = new_words(&paper, paper.device, "x", 1024, PERSISTENT);
    struct task *a = add_paper(&paper, lane, "a", new_range(paper.pool, tensor, "x[0:512]", 0, 512), NULL, NULL);
    struct task *b = add_paper(&paper, lane, "b", new_range(paper.pool, tensor, "x[512:1024]", 512, 1024), NULL, NULL);
    struct task *update = add_paper(&paper, lane, "update", NULL, NULL, NULL);
    b->extra.gate = GATE_OPENS;
    update->extra.gate = GATE_WAITS;
    struct edit *edit = open_edit(paper.list);
    assert_true(sink_task(edit, a, b));
    assert_true(hoist_task(edit, a, b));
    assert_true(hoist_task(edit, b, a));
    assert_true(sink_task(edit, b, a));
    assert_false(hoist_task(edit, update, b));
    commit_edit(edit);
    expect_order(paper.list, "a b update");
    end_paper(&paper);
}

/* `expected` names the waits that add_after() has stated, by positions: "1 after 0, 2 after 3'". */
static void expect_listed_waits(const struct list *list, const char *expected)
{
    size_t n;
    char *all = copy_string("");
    struct listed_wait *waits = collect_listed_waits(list, &n);
    for (size_t i = 0; i < n; i++)
        append_text(&all, "%s%d after %d%s", i ? ", " : "", waits[i].consumer, waits[i].producer,
                    waits[i].previous ? "'" : "");
    assert_string_equal(all, expected);
    free(waits);
    free(all);
}

/* Slices, repeats and stand-ins wait as their original did, and are waited for; moves keep the order that was said. */
TEST(waits_that_no_tensor_says_are_handed_on)
{
    struct diamond diamond = make_diamond();
    struct list *list = diamond.paper.list;
    struct task *slice[2];
    struct task *mark = add_named(&diamond, "mark"), *end = add_named(&diamond, "end"),
                *other = add_named(&diamond, "other");
    add_after(list, end, diamond.right, SAME_STEP);
    add_after(list, diamond.right, diamond.left, SAME_STEP);
    add_after(list, diamond.right, end, STEP_BEFORE);
    add_after(list, mark, mark, STEP_BEFORE);
    expect_listed_waits(list, "2 after 1, 2 after 5', 4 after 4', 5 after 2");
    struct edit *edit = open_edit(list);
    assert_false(hoist_task(edit, diamond.right, diamond.left));
    assert_false(sink_task(edit, diamond.left, diamond.right));
    assert_true(hoist_task(edit, end, mark));
    assert_false(hoist_task(edit, end, diamond.right));
    assert_int_equal(cut_task(edit, diamond.right, 2, slice), 2);
    assert_false(sink_task(edit, slice[0], end));
    insert_before(edit, diamond.join);
    stand_in(edit, add_paper(&diamond.paper, diamond.paper.host->lanes[LANE_CPU], "in", diamond.b, diamond.a, NULL),
             diamond.left);
    insert_behind(edit, other);
    repeat_task(edit, slice[1]);
    commit_edit(edit);
    expect_order(list, "make right right in join end mark other right");
    expect_listed_waits(list, "1 after 5', 2 after 5', 5 after 1, 5 after 2, 6 after 6', 8 after 3, 8 after 5'");
    end_paper(&diamond.paper);
}

TEST(undo_leaves_nothing)
{
    struct diamond diamond = make_diamond();
    struct paper *paper = &diamond.paper;
    struct tensor *part = new_view(paper->pool, diamond.w, "w.part", 128, SHAPE(256));
    uint64_t before = fingerprint(paper->list);
    struct edit *edit = open_edit(paper->list);
    struct task *slice[3];
    assert_true(sink_task(edit, diamond.left, diamond.right));
    set_home(edit, diamond.w, paper->host);
    struct tensor *mirrored = mirror_tensor(edit, diamond.w, paper->device);
    make_transient(edit, diamond.w);
    make_persistent(edit, diamond.b);
    set_exclusive(edit, part);
    struct tensor *tensor = new_words(paper, paper->device, "x", 512, TRANSIENT);
    repoint_task(edit, diamond.left, diamond.a, tensor);
    assert_int_equal(cut_task(edit, diamond.right, 3, slice), 3);
    insert_behind(edit, diamond.make);
    stand_in(edit, repeat_task(edit, diamond.make), diamond.make);
    replace_on_host(edit, diamond.join, paper->host->lanes[LANE_CPU], (struct tensor *[]){mirrored, tensor, tensor});
    assert_ptr_equal(diamond.left->accesses[1].tensor, tensor);
    assert_ptr_equal(part->device, paper->host);
    assert_false(part->persistent);
    undo_edit(edit);
    expect_order(paper->list, "make left right join");
    assert_true(fingerprint(paper->list) == before);
    end_paper(paper);
}

/* The list is looked at, edited and undone as if the edit had been committed, and then the edit is undone. */
TEST(a_preview_is_undone)
{
    struct diamond diamond = make_diamond();
    struct list *list = diamond.paper.list;
    uint64_t before = fingerprint(list);
    struct edit *edit = open_edit(list);
    insert_before(edit, diamond.make);
    struct task *first = add_named(&diamond, "first");
    drop_task(edit, diamond.join);
    assert_true(sink_task(edit, diamond.left, diamond.right));
    preview_edit(edit);
    expect_order(list, "first make right left");
    uint64_t previewed = fingerprint(list);
    struct edit *later = open_edit(list);
    drop_task(later, first);
    insert_behind(later, diamond.left);
    add_named(&diamond, "last");
    assert_true(sink_task(later, diamond.right, diamond.left));
    undo_edit(later);
    expect_order(list, "first make right left");
    assert_true(fingerprint(list) == previewed);
    undo_edit(edit);
    expect_order(list, "make left right join");
    assert_true(fingerprint(list) == before);
    end_paper(&diamond.paper);
}

static void expect_obstacle(const struct edit *edit, struct obstacle expected)
{
    const struct obstacle *found = last_obstacle(edit);
    assert_ptr_equal(found->first, expected.first);
    assert_ptr_equal(found->second, expected.second);
    assert_ptr_equal(found->over, expected.over);
    assert_ptr_equal(found->on_way, expected.on_way);
}

TEST(an_obstacle_says_what_is_in_the_way)
{
    struct diamond diamond = make_diamond();
    struct list *list = diamond.paper.list;
    struct task *make = diamond.make, *left = diamond.left, *right = diamond.right, *join = diamond.join;
    struct task *end = add_named(&diamond, "end");
    add_after(list, end, right, SAME_STEP);
    struct edit *edit = open_edit(list);
    assert_false(sink_task(edit, make, right));
    expect_obstacle(edit, (struct obstacle){.first = make, .second = left, .over = diamond.a, .on_way = left});
    assert_false(hoist_task(edit, join, left));
    expect_obstacle(edit, (struct obstacle){.first = right, .second = join, .over = diamond.c, .on_way = right});
    assert_true(hoist_task(edit, end, join));
    assert_false(hoist_task(edit, end, left));
    expect_obstacle(edit, (struct obstacle){.first = right, .second = end, .over = NULL, .on_way = right});
    assert_false(hoist_task(edit, make, left));
    assert_null(last_obstacle(edit)->on_way);
    assert_ptr_equal(last_obstacle(edit)->second, make);
    undo_edit(edit);
    end_paper(&diamond.paper);
}

enum wish { NO_WISH, WISH_PERSISTENT, WISH_PERSISTENT_AND_BACK, WISH_EXCLUSIVE };

/* Of a list in which `a` is no longer used when `c` is made: do the two lie at one address?
 *
 *     f   a         g   b <- a         h   c <- b         i   d <- c
 */
static bool lie_at_one_address(enum wish wish)
{
    struct paper paper = new_paper(1, &slow_speeds);
    struct lane *compute = paper.device->lanes[LANE_COMPUTE];
    static const char *const tensor_names[] = {"a", "b", "c", "d"};
    static const char *const task_names[] = {"f", "g", "h", "i"};
    struct tensor *tensors[COUNT(tensor_names)];
    for (size_t i = 0; i < COUNT(tensor_names); i++) {
        tensors[i] = new_words(&paper, paper.device, tensor_names[i], 512, TRANSIENT);
        add_paper(&paper, compute, task_names[i], tensors[i], i ? tensors[i - 1] : NULL, NULL);
    }
    struct tensor *part = new_view(paper.pool, tensors[0], "a.part", 128, SHAPE(256));
    struct edit *edit = open_edit(paper.list);
    if (wish == WISH_EXCLUSIVE)
        set_exclusive(edit, part);
    if (wish == WISH_PERSISTENT || wish == WISH_PERSISTENT_AND_BACK)
        make_persistent(edit, tensors[0]);
    assert_int_equal(part->persistent, tensors[0]->persistent);
    if (wish == WISH_PERSISTENT_AND_BACK)
        make_transient(edit, tensors[0]);
    assert_int_equal(part->persistent, wish == WISH_PERSISTENT);
    commit_edit(edit);
    finish_paper(&paper);
    bool shared = tensors[0]->slab == tensors[2]->slab && tensors[0]->address == tensors[2]->address;
    end_paper(&paper);
    return shared;
}

TEST(persistent_and_exclusive_tensors_share_no_bytes)
{
    assert_true(lie_at_one_address(NO_WISH));
    assert_false(lie_at_one_address(WISH_PERSISTENT));
    assert_true(lie_at_one_address(WISH_PERSISTENT_AND_BACK));
    assert_false(lie_at_one_address(WISH_EXCLUSIVE));
}

TEST(a_task_of_the_host_takes_the_place_of_another)
{
    struct diamond diamond = make_diamond();
    struct paper *paper = &diamond.paper;
    struct lane *lane = paper->host->lanes[LANE_CPU];
    struct tensor *b = new_words(paper, paper->host, "b", 512, PERSISTENT);
    struct tensor *a = new_words(paper, paper->host, "a", 512, PERSISTENT);
    uint64_t origin = diamond.left->extra.origin;
    diamond.left->extra.on_host = (struct host_version){.function = no_work, .seconds = 3};
    diamond.left->flops = 1000;
    diamond.left->extra.gate = GATE_WAITS;
    size_t bytes = diamond.left->bytes;
    struct edit *edit = open_edit(paper->list);
    struct task *mine = replace_on_host(edit, diamond.left, lane, (struct tensor *[]){b, a});
    add_named(&diamond, "next");
    commit_edit(edit);
    expect_order(paper->list, "make left next right join");
    assert_ptr_equal(paper->list->tasks[1], mine);
    assert_ptr_equal(mine->lane, lane);
    assert_true(mine->function == no_work);
    assert_int_equal(mine->extra.origin, origin);
    assert_int_equal(mine->extra.gate, GATE_WAITS);
    assert_int_equal(mine->bytes, bytes);
    assert_close(mine->extra.seconds, 3, 0);
    assert_close(mine->flops, 1000, 0);
    assert_int_equal(mine->n_accesses, 2);
    assert_ptr_equal(mine->accesses[0].tensor, b);
    assert_int_equal(mine->accesses[0].mode, ACCESS_WRITE);
    assert_ptr_equal(mine->accesses[1].tensor, a);
    assert_int_equal(mine->accesses[1].mode, ACCESS_READ);
    end_paper(paper);
}

/* Slices, repeats and stand-ins of a task belong to its message.  What is added beside the task does not. */
TEST(messages_are_handed_on)
{
    struct diamond diamond = make_diamond();
    struct paper *paper = &diamond.paper;
    diamond.right->extra.message = 7;
    paper->list->extra.last_message = 7;
    struct edit *edit = open_edit(paper->list);
    struct task *slice[3];
    insert_behind(edit, diamond.right);
    assert_int_equal(add_named(&diamond, "beside")->extra.message, 0);
    assert_int_equal(repeat_task(edit, diamond.right)->extra.message, 7);
    struct task *other = add_paper(paper, paper->device->lanes[LANE_COMPUTE], "other", diamond.b, diamond.a, NULL);
    stand_in(edit, other, diamond.right);
    assert_int_equal(other->extra.message, 7);
    assert_int_equal(cut_task(edit, other, 3, slice), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(slice[i]->extra.message, 7);
    paper->list->extra.last_message = 9; /* a pass sends two messages more */
    undo_edit(edit);
    assert_int_equal(diamond.right->extra.message, 7);
    assert_int_equal(paper->list->extra.last_message, 7);
    end_paper(paper);
}

/* A tensor of a step file may have any number of bytes, here 7, which is no multiple of an element's 4. */
TEST(ranges_are_repointed_to_the_byte)
{
    struct paper paper = new_paper(1, &slow_speeds);
    struct tensor *a = new_bytes_tensor(paper.pool, paper.device, MEM_WORK, "a", 7),
                  *b = tensor_like(paper.pool, paper.device, a);
    struct task *task =
        add_paper(&paper, paper.device->lanes[LANE_COMPUTE], "t", new_range(paper.pool, a, "a[1:3]", 1, 3), NULL, NULL);
    struct edit *edit = open_edit(paper.list);
    repoint_task(edit, task, a, b);
    commit_edit(edit);
    const struct tensor *now = task->accesses[0].tensor;
    assert_int_equal(b->bytes, 7);
    assert_ptr_equal(now->storage, b);
    assert_int_equal(now->offset, 1);
    assert_int_equal(now->bytes, 2);
    end_paper(&paper);
}

/* 2048 bytes on an alignment of 512: four slices are the most. */
TEST(slices_cover_the_task)
{
    for (size_t wanted = 1; wanted <= 6; wanted++) {
        struct diamond diamond = make_diamond();
        struct task *slice[6];
        diamond.right->flops = 1000;
        struct values *values = hash_values(diamond.paper.list);
        struct edit *edit = open_edit(diamond.paper.list);
        size_t n = cut_task(edit, diamond.right, wanted, slice);
        size_t at = 0;
        size_t bytes = 0;
        double flops = 0;
        assert_int_equal(n, MIN(wanted, 4));
        for (size_t i = 0; i < n; i++) {
            const struct tensor *out = slice[i]->accesses[0].tensor;
            assert_int_equal(out->offset, at);
            assert_int_equal(out->offset % 512, 0);
            assert_int_equal(slice[i]->extra.slice_begin, at);
            at += out->bytes;
            bytes += slice[i]->bytes;
            flops += slice[i]->flops;
        }
        assert_int_equal(at, 2048);
        assert_int_equal(bytes, 4096); /* 2048 that right reads, 2048 that it writes */
        expect_number("flops", flops, 1000);
        commit_edit(edit);
        finish_paper(&diamond.paper);
        expect_sound("the list", diamond.paper.list, values);
        free_values(values);
        end_paper(&diamond.paper);
    }
}

TEST(a_slice_is_cut_again)
{
    struct diamond diamond = make_diamond();
    struct task *half[2], *quarter[2];
    struct values *values = hash_values(diamond.paper.list);
    struct edit *edit = open_edit(diamond.paper.list);
    cut_task(edit, diamond.right, 2, half);
    assert_int_equal(cut_task(edit, half[1], 2, quarter), 2);
    assert_int_equal(quarter[1]->extra.slice_begin, 1536); /* 3/4 of 2048 */
    commit_edit(edit);
    finish_paper(&diamond.paper);
    expect_sound("the list", diamond.paper.list, values);
    free_values(values);
    end_paper(&diamond.paper);
}

/* A marker copies a tensor onto itself, which is nothing.  A copy within a storage moves bytes. */
TEST(copies_within_a_storage_are_work)
{
    struct diamond diamond = make_diamond();
    struct lane *lane = diamond.paper.host->lanes[LANE_CPU];
    struct tensor *all = new_words(&diamond.paper, diamond.paper.host, "all", 8, PERSISTENT);
    struct tensor *front = new_range(diamond.paper.pool, all, "front", 0, 4);
    struct tensor *back = new_range(diamond.paper.pool, all, "back", 4, 8);
    struct task *marker = add_copy(diamond.paper.list, lane, "marker", front, front);
    struct task *moves = add_copy(diamond.paper.list, lane, "moves", back, front);
    assert_true(copies_nothing(marker));
    assert_int_equal(marker->bytes, 0);
    assert_false(copies_nothing(moves));
    assert_int_equal(moves->bytes, 8); /* 4 are read, 4 written */
    end_paper(&diamond.paper);
}

/* A task reads a word on the host that says whether it runs.  These bytes do not count as its work. */
TEST(looking_at_a_word_is_no_work)
{
    struct diamond diamond = make_diamond();
    struct tensor *word = new_words(&diamond.paper, diamond.paper.host, "word", 1, PERSISTENT);
    size_t bytes = diamond.left->bytes;
    int n_access = diamond.left->n_accesses;
    assert_above(bytes, 0);
    need_side_bits(diamond.left, word, 1, ASSUME_RUNS);
    assert_int_equal(diamond.left->bytes, bytes);
    assert_int_equal(diamond.left->n_accesses, n_access + 1);
    assert_true(touches_bytes(diamond.left, word, ACCESS_READ));
    end_paper(&diamond.paper);
}

/* Counts the guest uses of w in a list with a task for each word:
 *
 *     fwd   reads w               upd   makes w's mirror anew, on the host
 *     own   reads and writes w    up    copies the mirror to w
 *                                 off   copies the mirror's first half to w's second half
 */
static size_t guest_uses(const char *words)
{
    struct paper paper = new_paper(1, &slow_speeds);
    struct lane *compute = paper.device->lanes[LANE_COMPUTE], *cpu = paper.host->lanes[LANE_CPU];
    struct tensor *w = new_words(&paper, paper.device, "w", 512, PERSISTENT),
                  *a = new_words(&paper, paper.device, "a", 512, TRANSIENT);
    struct task *last = add_paper(&paper, compute, "begin", a, NULL, NULL);
    struct edit *edit = open_edit(paper.list);
    struct tensor *mirrored = mirror_tensor(edit, w, paper.host);
    struct tensor *from = new_range(paper.pool, mirrored, "front", 0, mirrored->bytes / 2);
    struct tensor *to = new_range(paper.pool, w, "back", w->bytes / 2, w->bytes);
    char *rest = lasting("%s", words);
    for (char *word; (word = strsep(&rest, " "));) {
        insert_behind(edit, last);
        if (strcmp(word, "fwd") == 0)
            last = add_paper(&paper, compute, "fwd", a, w, NULL);
        else if (strcmp(word, "own") == 0)
            last = add_paper(&paper, compute, "own", w, w, NULL);
        else if (strcmp(word, "upd") == 0)
            last = add_paper(&paper, cpu, "upd", mirrored, NULL, NULL);
        else if (strcmp(word, "up") == 0)
            last = add_copy(paper.list, paper.device->lanes[LANE_UPLOAD], "up", w, mirrored);
        else
            last = add_copy(paper.list, paper.device->lanes[LANE_UPLOAD], "off", to, from);
    }
    commit_edit(edit);
    struct uses *uses = new_uses(paper.list->tasks, paper.list->n, paper.pool);
    size_t n = count_guest_uses(uses, w);
    free_uses(uses);
    end_paper(&paper);
    return n;
}

/* Only where the copies up, and nothing else, write w, and all readers come before the host's update. */
TEST(a_guest_is_written_by_copies_alone_and_read_before_the_update)
{
    static const struct {
        const char *words;
        size_t uses;
    } cases[] = {
        {"fwd upd up", 1}, {"fwd fwd upd up", 2}, {"fwd upd fwd up", 0}, {"fwd own upd up", 0},
        {"upd up fwd", 0}, {"fwd upd off", 0},    {"upd up", 0},         {"fwd fwd", 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (guest_uses(cases[i].words) != cases[i].uses)
            test_failed("%s: %zu uses, expected %zu\n", cases[i].words, guest_uses(cases[i].words), cases[i].uses);
}
