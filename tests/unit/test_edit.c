/* test_edit.c - the verbs in which passes are written: insert, move, cut, repoint, undo.
 *
 * It tests edit.c of src/techniques/pass.  After each verb the list means what it meant, or the verb refuses and says
 * what is in the way; after undo no byte is other than before.  A task that moves past what it depends on, a wait that
 * is lost with the task that it was for, and a piece that writes beside its part are found.
 *
 * To see it fail: in may_pass() of edit.c, exchange `task` and `neighbour` in the line of `first`.
 *
 * Lists are small and written by hand, so that what must come of a verb can be seen.
 */
#include "techniques/pass/pass.h"
#include "tests/support/support_paper.h"

/*     f   compute   a <- w         w persists; a, b and c have 2048 bytes
 *     g   compute   b <- a
 *     h   compute   c <- a
 *     i   compute   w <- b, c
 */
struct diamond {
    struct paper paper;
    struct tensor *w, *a, *b, *c;
    struct task *f, *g, *h, *i;
};

static struct diamond new_diamond(void)
{
    struct diamond d = {.paper = new_paper(1, &slow_speeds)};
    struct paper *p = &d.paper;
    struct lane *compute = p->device->lane[LANE_COMPUTE];
    d.w = new_bytes(p, p->device, "w", 512, true);
    d.a = new_bytes(p, p->device, "a", 512, false);
    d.b = new_bytes(p, p->device, "b", 512, false);
    d.c = new_bytes(p, p->device, "c", 512, false);
    d.f = add_paper(p, compute, "f", d.a, d.w, NULL);
    d.g = add_paper(p, compute, "g", d.b, d.a, NULL);
    d.h = add_paper(p, compute, "h", d.c, d.a, NULL);
    d.i = add_paper(p, compute, "i", d.w, d.b, d.c);
    struct task *all[] = {d.f, d.g, d.h, d.i};
    for (size_t i = 0; i < COUNT(all); i++)
        set_elementwise(all[i]);
    return d;
}

static struct task *add_named(struct diamond *d, const char *name)
{
    return add_paper(&d->paper, d->paper.device->lane[LANE_COMPUTE], name, NULL, NULL, NULL);
}

/* The names of the tasks in list order, and their positions. */
static void expect_order(const struct step *s, const char *expected)
{
    char *names = copy_string("");
    for (size_t i = 0; i < s->n; i++) {
        char *more = format_string("%s%s%s", names, i ? " " : "", s->task[i]->name);
        free(names);
        names = more;
        assert_int_equal(s->task[i]->index, i);
    }
    assert_string_equal(names, expected);
    free(names);
}

TEST(tasks_come_where_they_are_inserted)
{
    struct diamond d = new_diamond();
    struct step *s = d.paper.step;
    d.g->layer = 3;
    d.g->micro = 1;
    d.g->role = ROLE_BACKWARD;
    struct edit *e = open_edit(s);
    insert_behind(e, d.g);
    add_named(&d, "g1");
    struct task *second = add_named(&d, "g2");
    insert_before(e, d.f);
    add_named(&d, "f-2");
    add_named(&d, "f-1");
    insert_before(e, second);
    add_named(&d, "g1.5");
    insert_behind(e, d.i);
    add_named(&d, "end");
    commit(e);
    expect_order(s, "f-2 f-1 f g g1 g1.5 g2 h i end");
    assert_int_equal(second->layer, 3);
    assert_int_equal(second->micro, 1);
    assert_int_equal(second->role, ROLE_BACKWARD);
    add_named(&d, "later"); /* no edit is open: at the end, and of no layer */
    assert_int_equal(s->task[s->n - 1]->layer, -1);
    expect_order(s, "f-2 f-1 f g g1 g1.5 g2 h i end later");
    end_paper(&d.paper);
}

TEST(moves_stop_at_data_edges)
{
    struct diamond d = new_diamond();
    struct step *s = d.paper.step;
    struct edit *e = open_edit(s);
    assert_false(sink(e, d.f, d.h));
    assert_false(hoist(e, d.i, d.g));
    assert_false(sink(e, d.i, d.f));
    assert_false(hoist(e, d.f, d.g));
    assert_true(sink(e, d.g, d.g));
    assert_true(sink(e, d.g, d.h));
    assert_true(hoist(e, d.g, d.h));
    assert_true(hoist(e, d.h, d.g));
    commit(e);
    expect_order(s, "f h g i");
    end_paper(&d.paper);
}

/* "After" a task that is cut means after its last piece; "after" one that has left means where it was. */
TEST(insertion_stays_when_a_task_is_cut)
{
    struct diamond d = new_diamond();
    struct task *piece[2];
    struct edit *e = open_edit(d.paper.step);
    insert_behind(e, d.g);
    cut(e, d.g, 2, piece);
    add_named(&d, "new");
    insert_before(e, d.h);
    cut(e, d.h, 2, piece);
    add_named(&d, "more");
    insert_behind(e, d.i);
    drop(e, d.i);
    add_named(&d, "end");
    commit(e);
    expect_order(d.paper.step, "f g g new more h h end");
    end_paper(&d.paper);
}

/* Ranges that lie side by side are no conflict; a held update may pass no backward, whatever the two touch. */
TEST(what_stands_in_the_way_of_a_move)
{
    struct paper p = new_paper(1, &slow_speeds);
    struct lane *lane = p.device->lane[LANE_COMPUTE];
    struct tensor *x = new_bytes(&p, p.device, "x", 1024, true);
    struct task *a = add_paper(&p, lane, "a", new_range(p.pool, x, "x[0:512]", 0, 512), NULL, NULL);
    struct task *b = add_paper(&p, lane, "b", new_range(p.pool, x, "x[512:1024]", 512, 1024), NULL, NULL);
    struct task *update = add_paper(&p, lane, "update", NULL, NULL, NULL);
    b->gate = GATE_HOLDS;
    update->gate = GATE_HELD;
    struct edit *e = open_edit(p.step);
    assert_true(sink(e, a, b));
    assert_true(hoist(e, a, b));
    assert_true(hoist(e, b, a));
    assert_true(sink(e, b, a));
    assert_false(hoist(e, update, b));
    commit(e);
    expect_order(p.step, "a b update");
    end_paper(&p);
}

/* By position: "1 after 0, 2 after 3'". */
static void expect_afters(const struct step *s, const char *expected)
{
    size_t n;
    char *all = copy_string("");
    struct after_pair *pairs = find_after_pairs(s, &n);
    for (size_t i = 0; i < n; i++)
        append_text(&all, "%s%d after %d%s", i ? ", " : "", pairs[i].second, pairs[i].first,
                    pairs[i].previous ? "'" : "");
    assert_string_equal(all, expected);
    free(pairs);
    free(all);
}

/* Pieces, repeats and stand-ins wait as their original did, and are waited for; moves keep the order that was said. */
TEST(waits_that_no_tensor_says_are_handed_on)
{
    struct diamond d = new_diamond();
    struct step *s = d.paper.step;
    struct task *piece[2];
    struct task *mark = add_named(&d, "mark"), *end = add_named(&d, "end"), *other = add_named(&d, "other");
    add_after(s, end, d.h, SAME_STEP);
    add_after(s, d.h, d.g, SAME_STEP);
    add_after(s, d.h, end, STEP_BEFORE);
    add_after(s, mark, mark, STEP_BEFORE);
    expect_afters(s, "2 after 1, 2 after 5', 4 after 4', 5 after 2");
    struct edit *e = open_edit(s);
    assert_false(hoist(e, d.h, d.g));
    assert_false(sink(e, d.g, d.h));
    assert_true(hoist(e, end, mark));
    assert_false(hoist(e, end, d.h));
    assert_int_equal(cut(e, d.h, 2, piece), 2);
    assert_false(sink(e, piece[0], end));
    insert_before(e, d.i);
    stand_in(e, add_paper(&d.paper, d.paper.host->lane[LANE_CPU], "in", d.b, d.a, NULL), d.g);
    insert_behind(e, other);
    repeat(e, piece[1]);
    commit(e);
    expect_order(s, "f h h in i end mark other h");
    expect_afters(s, "1 after 5', 2 after 5', 5 after 1, 5 after 2, 6 after 6', 8 after 3, 8 after 5'");
    end_paper(&d.paper);
}

TEST(undo_leaves_nothing)
{
    struct diamond d = new_diamond();
    struct paper *p = &d.paper;
    size_t n = p->pool->n;
    struct tensor *part = new_view(p->pool, d.w, "w.part", 128, SHAPE(256));
    struct edit *e = open_edit(p->step);
    struct task *piece[3];
    assert_true(sink(e, d.g, d.h));
    set_home(e, d.w, p->host);
    struct tensor *x = new_bytes(p, p->device, "x", 512, false);
    repoint(e, d.g, d.a, x);
    assert_int_equal(cut(e, d.h, 3, piece), 3);
    insert_behind(e, d.f);
    stand_in(e, repeat(e, d.f), d.f);
    assert_ptr_equal(d.g->access[1].tensor, x);
    assert_ptr_equal(part->device, p->host);
    undo(e);
    expect_order(p->step, "f g h i");
    assert_ptr_equal(d.g->access[1].tensor, d.a);
    assert_ptr_equal(d.w->device, p->device);
    assert_ptr_equal(part->device, p->device);
    assert_int_equal(p->pool->n, n + 1);
    for (size_t i = 0; i < p->pool->n; i++) { /* each storage knows the views that are left, and no others */
        size_t views = 0, chain = 0;
        const struct tensor *storage = p->pool->tensors[i];
        for (size_t k = 0; k < p->pool->n; k++)
            views += p->pool->tensors[k]->storage == storage;
        for (const struct tensor *one = storage; one && storage->storage == storage; one = one->view, chain++)
            assert_ptr_equal(one->storage, storage);
        assert_int_equal(chain, views);
    }
    uint64_t last = d.i->origin;
    assert_int_equal(add_named(&d, "next")->origin, last + 1);
    end_paper(p);
}

/* Pieces and repeats are of the task's message, what stands in for it too, and what is added beside it is not. */
TEST(messages_are_handed_on)
{
    struct diamond d = new_diamond();
    struct paper *p = &d.paper;
    d.h->message = 7;
    p->step->last_message = 7;
    struct edit *e = open_edit(p->step);
    struct task *piece[3];
    insert_behind(e, d.h);
    assert_int_equal(add_named(&d, "beside")->message, 0);
    assert_int_equal(repeat(e, d.h)->message, 7);
    struct task *other = add_paper(p, p->device->lane[LANE_COMPUTE], "other", d.b, d.a, NULL);
    stand_in(e, other, d.h);
    assert_int_equal(other->message, 7);
    assert_int_equal(cut(e, other, 3, piece), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(piece[i]->message, 7);
    p->step->last_message = 9; /* a pass sends two messages more */
    undo(e);
    assert_int_equal(d.h->message, 7);
    assert_int_equal(p->step->last_message, 7);
    end_paper(p);
}

/* In a list from a step file: bytes need be no multiple of an element's. */
TEST(ranges_are_repointed_to_the_byte)
{
    struct paper p = new_paper(1, &slow_speeds);
    struct tensor *a = new_bytes_tensor(p.pool, p.device, MEM_WORK, "a", 7), *b = tensor_like(p.pool, p.device, a);
    struct task *t = add_paper(&p, p.device->lane[LANE_COMPUTE], "t", new_range(p.pool, a, "a[1:3]", 1, 3), NULL, NULL);
    struct edit *e = open_edit(p.step);
    repoint(e, t, a, b);
    commit(e);
    const struct tensor *now = t->access[0].tensor;
    assert_int_equal(b->bytes, 7);
    assert_ptr_equal(now->storage, b);
    assert_int_equal(now->offset, 1);
    assert_int_equal(now->bytes, 2);
    end_paper(&p);
}

/* 2048 bytes on an alignment of 512: four pieces are the most. */
TEST(pieces_cover_the_task)
{
    for (size_t wanted = 1; wanted <= 6; wanted++) {
        struct diamond d = new_diamond();
        struct task *piece[6];
        d.h->flops = 1000;
        struct values *values = number_values(d.paper.step);
        struct edit *e = open_edit(d.paper.step);
        size_t n = cut(e, d.h, wanted, piece);
        size_t at = 0;
        size_t bytes = 0;
        double flops = 0;
        assert_int_equal(n, MIN(wanted, 4));
        for (size_t i = 0; i < n; i++) {
            const struct tensor *out = piece[i]->access[0].tensor;
            assert_int_equal(out->offset, at);
            assert_int_equal(out->offset % 512, 0);
            assert_int_equal(piece[i]->piece_begin, at);
            at += out->bytes;
            bytes += piece[i]->bytes;
            flops += piece[i]->flops;
        }
        assert_int_equal(at, 2048);
        assert_int_equal(bytes, 4096); /* 2048 that h reads, 2048 that it writes */
        expect_number("flops", flops, 1000);
        commit(e);
        finish_paper(&d.paper);
        expect_sound("the list", d.paper.step, values);
        free_values(values);
        end_paper(&d.paper);
    }
}

TEST(a_piece_is_cut_again)
{
    struct diamond d = new_diamond();
    struct task *half[2], *quarter[2];
    struct values *values = number_values(d.paper.step);
    struct edit *e = open_edit(d.paper.step);
    cut(e, d.h, 2, half);
    assert_int_equal(cut(e, half[1], 2, quarter), 2);
    assert_int_equal(quarter[1]->piece_begin, 1536); /* 3/4 of 2048 */
    commit(e);
    finish_paper(&d.paper);
    expect_sound("the list", d.paper.step, values);
    free_values(values);
    end_paper(&d.paper);
}

/* A marker copies a tensor onto itself, which is nothing.  A copy within a storage moves bytes. */
TEST(copies_within_a_storage_are_work)
{
    struct diamond d = new_diamond();
    struct lane *lane = d.paper.host->lane[LANE_CPU];
    struct tensor *all = new_bytes(&d.paper, d.paper.host, "all", 8, true);
    struct tensor *front = new_range(d.paper.pool, all, "front", 0, 4);
    struct tensor *back = new_range(d.paper.pool, all, "back", 4, 8);
    struct task *marker = add_copy(d.paper.step, lane, "marker", front, front);
    struct task *moves = add_copy(d.paper.step, lane, "moves", back, front);
    assert_true(copies_nothing(marker));
    assert_int_equal(marker->bytes, 0);
    assert_false(copies_nothing(moves));
    assert_int_equal(moves->bytes, 8); /* 4 are read, 4 written */
    end_paper(&d.paper);
}

/* The word says whether the task works, and is no work itself. */
TEST(looking_at_a_word_is_no_work)
{
    struct diamond d = new_diamond();
    struct tensor *word = new_bytes(&d.paper, d.paper.host, "word", 1, true);
    size_t bytes = d.g->bytes;
    int n_access = d.g->n_access;
    assert_true(bytes > 0);
    need_choice(d.g, word, 1, ASSUME_RUNS);
    assert_int_equal(d.g->bytes, bytes);
    assert_int_equal(d.g->n_access, n_access + 1);
    assert_true(touches_bytes(d.g, word, ACCESS_READ));
    end_paper(&d.paper);
}

/* A word for each task: fwd reads w, own writes it too; on the host upd makes w's mirror m anew; up copies m to w, and
 * off its first half to w's second. */
static size_t guest_uses(const char *words)
{
    struct paper p = new_paper(1, &slow_speeds);
    struct lane *compute = p.device->lane[LANE_COMPUTE], *cpu = p.host->lane[LANE_CPU];
    struct tensor *w = new_bytes(&p, p.device, "w", 512, true), *a = new_bytes(&p, p.device, "a", 512, false);
    struct task *last = add_paper(&p, compute, "begin", a, NULL, NULL);
    struct edit *e = open_edit(p.step);
    struct tensor *m = mirror(e, w, p.host);
    struct tensor *from = new_range(p.pool, m, "front", 0, m->bytes / 2);
    struct tensor *to = new_range(p.pool, w, "back", m->bytes / 2, m->bytes);
    char *rest = lasting("%s", words);
    for (char *word; (word = strsep(&rest, " "));) {
        insert_behind(e, last);
        if (strcmp(word, "fwd") == 0)
            last = add_paper(&p, compute, "fwd", a, w, NULL);
        else if (strcmp(word, "own") == 0)
            last = add_paper(&p, compute, "own", w, w, NULL);
        else if (strcmp(word, "upd") == 0)
            last = add_paper(&p, cpu, "upd", m, NULL, NULL);
        else if (strcmp(word, "up") == 0)
            last = add_copy(p.step, p.device->lane[LANE_UPLOAD], "up", w, m);
        else
            last = add_copy(p.step, p.device->lane[LANE_UPLOAD], "off", to, from);
    }
    commit(e);
    struct uses *u = find_uses(p.step->task, p.step->n, p.pool);
    size_t n = uses_of_guest(u, w);
    free_uses(u);
    end_paper(&p);
    return n;
}

/* Only where the copies up, and nothing else, write w, and all readers come before the host's update. */
TEST(what_can_be_a_guest)
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
