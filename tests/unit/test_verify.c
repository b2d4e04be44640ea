/* test_verify.c - proving that a list computes what it should.
 *
 * It tests verify() and compare_values() of src/tools/proof.  verify() looks at bytes and order, compare_values() at
 * what is computed; a pass that only moves values round must pass both.  Finished lists are broken on purpose, one way
 * at a time, and each test says which checker must notice.  A checker that is blind to one way of being wrong is found.
 *
 * No OpenCL device is opened here.
 */
#include "techniques/pass/edit.h"
#include "tests/support/support_paper.h"

/* ---- lists that were broken on purpose --------------------------------------------------------------------------- */

/* Place and order the list again, as is done after passes. */
static void finish_again(struct trainer *t)
{
    for (size_t i = 0; i < t->pool->n; i++) {
        struct tensor *x = t->pool->tensors[i];
        x->step = NULL;
        x->held_from = INT32_MAX;
        x->held_until = x->slab = -1;
    }
    finish_list(t->train);
}

static struct trainer *plan_two(void) { return plan_tiny(write_hardware("tiny.txt", &plausible_speeds), 2); }

/* Caught by verify(): order.  The values are those of the list's own order, so nothing is wrong with them. */
TEST(a_dropped_wait)
{
    struct trainer *t = plan_two();
    expect_sound("whole", t->train, values_of(t, t->train));
    assert_true(expect_waits_needed(t->train, 4) > 40);
    assert_null(compare_values(values_of(t, t->train), t->train));
    free_trainer(t);
}

static void move_task(struct step *s, size_t from, size_t to)
{
    struct task *t = s->task[from];
    if (from < to)
        memmove(&s->task[from], &s->task[from + 1], (to - from) * sizeof t);
    else
        memmove(&s->task[to + 1], &s->task[to], (from - to) * sizeof t);
    s->task[to] = t;
    for (size_t i = 0; i < s->n; i++)
        s->task[i]->index = i;
}

static bool overlap(const struct tensor *a, const struct tensor *b)
{
    return a->storage == b->storage && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* The last task before i that writes what i reads, or -1. */
static int producer_of(const struct step *s, int i, const struct tensor *x)
{
    for (int k = i - 1; k >= 0; k--)
        for (int a = 0; a < s->task[k]->n_access; a++)
            if (overlap(s->task[k]->access[a].tensor, x) && (s->task[k]->access[a].mode & ACCESS_WRITE))
                return k;
    return -1;
}

/* Caught by compare_values(): it reads another value, or what is not yet written.  Placed and ordered as it now stands,
 * the list is in itself sound wherever the tensor persists, so verify() alone may have nothing to say. */
TEST(a_task_before_its_producer)
{
    struct trainer *t = plan_two();
    struct step *s = t->train;
    size_t moved = 0, by_verify = 0;
    for (int i = 0; i < (int)s->n; i += 3)
        for (int a = 0; a < s->task[i]->n_access; a++) {
            const struct access *x = &s->task[i]->access[a];
            int k = x->mode & ACCESS_READ ? producer_of(s, i, x->tensor) : -1;
            if (k < 0)
                continue;
            move_task(s, (size_t)i, (size_t)k);
            finish_again(t);
            char *wrong = verify(s, NULL);
            by_verify += wrong != NULL;
            free(wrong);
            expect_wrong(s->task[k]->name, compare_values(values_of(t, t->train), s), "reads");
            move_task(s, (size_t)k, (size_t)i);
            moved++;
            break;
        }
    assert_true(moved > 50);
    assert_true(by_verify > moved / 2);
    finish_again(t);
    expect_sound("moved back", s, values_of(t, t->train));
    free_trainer(t);
}

static bool same_task(const struct task *a, const struct task *b)
{
    return a->layer == b->layer && a->lane == b->lane && strcmp(a->name, b->name) == 0;
}

/* Caught by compare_values(): both tensors are written and live, so the list is sound in itself. */
TEST(the_wrong_micro_batch)
{
    struct trainer *t = plan_two();
    struct step *s = t->train;
    size_t tried = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < i && s->task[i]->micro == 1; k++) {
            if (s->task[k]->micro != 0 || !same_task(s->task[i], s->task[k]))
                continue;
            for (int a = 0; a < s->task[i]->n_access; a++) {
                struct access *x = &s->task[i]->access[a];
                struct tensor *right = x->tensor, *wrong = s->task[k]->access[a].tensor;
                if (x->mode != ACCESS_READ || right == wrong)
                    continue;
                x->tensor = wrong;
                expect_wrong(s->task[i]->name, compare_values(values_of(t, t->train), s), "reads other values");
                x->tensor = right;
                tried++;
            }
        }
    assert_true(tried > 50);
    free_trainer(t);
}

/* A tensor that is written once and read later, up to its end. */
static bool is_simple(const struct step *s, const struct tensor *x)
{
    size_t writes = 0;
    bool read_last = false;
    if (x->storage != x || x->persistent || x->step != s || x->held_until <= x->held_from + 1)
        return false;
    for (int i = x->held_from; i <= x->held_until; i++)
        for (int a = 0; a < s->task[i]->n_access; a++)
            if (s->task[i]->access[a].tensor->storage == x) {
                writes += (s->task[i]->access[a].mode & ACCESS_WRITE) != 0;
                read_last = s->task[i]->access[a].mode == ACCESS_READ;
            }
    return writes == 1 && read_last;
}

/* Caught by verify(): bytes.  As if the life of x had ended too early: another tensor, which is first written while x
 * is still to be read, lies on its bytes.  `from` and `to`: how far before x's last reader. */
static size_t free_early(struct trainer *t, int from, int to)
{
    size_t tried = 0;
    for (size_t i = 0; i < t->pool->n; i++) {
        const struct tensor *x = t->pool->tensors[i];
        for (size_t k = 0; is_simple(t->train, x) && k < t->pool->n; k++) {
            struct tensor *y = t->pool->tensors[k];
            if (y == x || y->storage != y || y->step != t->train || y->device != x->device || y->bytes > x->bytes ||
                y->held_from <= x->held_from || y->held_from < x->held_until - from ||
                y->held_from > x->held_until - to)
                continue;
            size_t address = y->address;
            int slab = y->slab;
            y->address = x->address;
            y->slab = x->slab;
            depend(t->train, ALL_EDGES);
            assert_null(compare_values(values_of(t, t->train), t->train)); /* which looks at no addresses */
            expect_wrong(x->name, verify(t->train, NULL), "tensor");
            y->address = address;
            y->slab = slab;
            tried++;
            break;
        }
    }
    depend(t->train, ALL_EDGES);
    return tried;
}

TEST(freed_too_early)
{
    struct trainer *t = plan_two();
    assert_true(free_early(t, 1 << 20, 1) > 30);
    assert_true(free_early(t, 0, 0) > 5);
    expect_sound("mended", t->train, values_of(t, t->train));
    free_trainer(t);
}

/* ---- swapping: copies that change nothing, and such that do ---------------------------------------------------- */

/* a goes out to h and comes back as b, which g reads; w persists.
 *
 *     f   compute    a          out  download  h <- a        in  upload  b <- h        g  compute  w <- b
 */
struct exchange {
    struct paper paper;
    struct values *plain; /* the values of the list without the copies */
    struct tensor *a, *b, *h;
};

static struct exchange new_swap(bool h_persists)
{
    struct exchange s = {.paper = new_paper(1, &slow_speeds)};
    struct paper *p = &s.paper;
    struct lane *compute = p->device->lane[LANE_COMPUTE];
    s.a = new_bytes(p, p->device, "a", 8, false);
    s.b = new_bytes(p, p->device, "b", 8, false);
    s.h = new_bytes(p, p->host, "h", 8, h_persists);
    struct tensor *w = new_bytes(p, p->device, "w", 8, true);
    add_paper(p, compute, "f", s.a, w, NULL);
    add_paper(p, compute, "g", w, s.a, NULL);
    s.plain = number_values(p->step);
    add_copy(p->step, p->device->lane[LANE_DOWNLOAD], "out", s.h, s.a);
    add_copy(p->step, p->device->lane[LANE_UPLOAD], "in", s.b, s.h);
    move_task(p->step, 1, 3);
    p->step->task[3]->access[1].tensor = s.b;
    return s;
}

static void order_swap(struct exchange *s)
{
    must(place(s->paper.pool, &s->paper.step, 1, PLACE_TO_CHECK));
    depend(s->paper.step, ALL_EDGES);
}

static void end_swap(struct exchange *s)
{
    free_values(s->plain);
    end_paper(&s->paper);
}

/* Caught by both when h is new in every step; by compare_values() alone when h keeps what the last step left there. */
TEST(swapped_in_before_out)
{
    for (int persists = 0; persists < 2; persists++) {
        struct exchange s = new_swap(persists);
        move_task(s.paper.step, 2, 1);
        order_swap(&s);
        expect_wrong("in before out", compare_values(s.plain, s.paper.step), "other values");
        if (persists)
            expect_sound("sound in itself", s.paper.step, NULL);
        else
            expect_wrong("in before out", verify(s.paper.step, NULL), "tensor h before anything is written");
        end_swap(&s);
    }
}

/* Caught by verify(): order.  Two lanes and the step's end are crossed, and every wait on the way is needed. */
TEST(a_swap_needs_its_waits)
{
    struct exchange s = new_swap(false);
    order_swap(&s);
    expect_waits_needed(s.paper.step, 1);
    end_swap(&s);
}

/* Caught by compare_values(): it is w that goes out and comes back as b. */
TEST(a_swap_of_another_value)
{
    struct exchange s = new_swap(false);
    s.paper.step->task[1]->access[1].tensor = s.paper.step->task[0]->access[1].tensor; /* out: h <- w */
    order_swap(&s);
    expect_sound("sound in itself", s.paper.step, NULL);
    expect_wrong("w in place of a", compare_values(s.plain, s.paper.step), "task 3 g");
    end_swap(&s);
}

/* What persists is a result too: a copy to it counts although no task of the list reads it. */
TEST(a_copy_that_is_left_out)
{
    for (int wrong = 0; wrong < 2; wrong++) {
        struct paper p = new_paper(1, &slow_speeds);
        struct tensor *x = new_bytes(&p, p.device, "x", 8, false), *y = new_bytes(&p, p.device, "y", 8, false);
        struct tensor *result = new_bytes(&p, p.host, "result", 8, true);
        add_paper(&p, p.device->lane[LANE_COMPUTE], "make x", x, NULL, NULL);
        add_paper(&p, p.device->lane[LANE_COMPUTE], "make y", y, x, NULL);
        add_copy(p.step, p.device->lane[LANE_DOWNLOAD], "keep", result, y);
        struct values *values = number_values(p.step);
        if (wrong)
            p.step->task[2]->access[1].tensor = x;
        else
            p.step->n--;
        expect_wrong(wrong ? "another tensor is kept" : "nothing is kept", compare_values(values, p.step), "");
        p.step->n = 3;
        free_values(values);
        end_paper(&p);
    }
}

/* ---- pieces, repeats and stand-ins ------------------------------------------------------------------------------- */

/* Each makes one change to a fresh list: in a good way (fault 0), or with a fault.  false: there is no such place. */
typedef bool change(struct trainer *t, struct edit *e, size_t place, int fault);

static struct task *nth_task(const struct trainer *t, const char *name, size_t nth)
{
    for (size_t i = 0; i < t->train->n; i++) {
        if (strcmp(t->train->task[i]->name, name) != 0)
            continue;
        if (nth == 0)
            return t->train->task[i];
        nth--;
    }
    return NULL;
}

/* In every place, and with every fault: verify accepts the good change and no other.  Returns the faults it caught. */
static size_t try_change(const char *what, change *make, int ranks, int faults)
{
    size_t caught = 0;
    for (int fault = 0; fault <= faults; fault++)
        for (size_t place = 0;; place++) {
            struct trainer *t = plan_tiny(write_hardware("tiny.txt", &plausible_speeds), ranks);
            struct edit *e = open_edit(t->train);
            bool made = make(t, e, place, fault);
            commit(e);
            finish_again(t);
            char *wrong = made ? verify(t->train, values_of(t, t->train)) : NULL;
            if (made && (wrong != NULL) != (fault > 0))
                test_failed("%s, fault %d in place %zu: %s\n", what, fault, place, wrong ? wrong : "nothing wrong");
            if (made && fault)
                expect_wrong(what, compare_values(values_of(t, t->train), t->train), "");
            caught += wrong != NULL;
            free(wrong);
            free_trainer(t);
            if (!made)
                break;
        }
    print_message("%s: %zu faults caught\n", what, caught);
    return caught;
}

/* Elementwise tasks of all kinds are cut into three; one piece is left out, reads the piece beside, or comes twice. */
static bool cut_a_task(struct trainer *t, struct edit *e, size_t place, int fault)
{
    static const char *const names[] = {"adamw", "tied.add", "reduce.add", "mlp.gelu", "mlp.gelu.dx", "mlp.residual"};
    struct task *piece[3], *task = place < COUNT(names) ? nth_task(t, names[place], 1) : NULL;
    if (!task)
        return false;
    size_t n = cut(e, task, 3, piece);
    assert_int_equal(n, 3);
    if (fault >= 1 && fault <= 3)
        drop(e, piece[fault - 1]);
    for (int i = 0; i < task->n_access && fault == 4; i++)
        if (piece[0]->access[i].mode == ACCESS_READ && piece[0]->access[i].tensor->bytes >= 512) {
            piece[1]->access[i].tensor = piece[0]->access[i].tensor;
            break;
        }
    return true;
}

static struct tensor *twin_on(struct trainer *t, const struct tensor *x, struct device *d)
{
    const struct tensor_form form = {
        .device = d,
        .class = x->class,
        .name = x->name,
        .element = x->element,
        .shape = x->shape,
    };
    return new_tensor(t->pool, &form);
}

/* The (T, T) matrix is made again before the backward that reads it.  Faults: the softmax, which works in place, is
 * left on the old tensor; it reads another layer's q and k; it is left out. */
static bool repeat_attention(struct trainer *t, struct edit *e, size_t place, int fault)
{
    struct task *scores = nth_task(t, "attn.scores", place), *softmax = nth_task(t, "attn.softmax", place);
    if (!scores)
        return false;
    struct tensor *att = softmax->access[0].tensor, *qkv = scores->access[1].tensor; /* (of CLBlast: out, a, b) */
    struct tensor *other = nth_task(t, "attn.scores", place ^ 1)->access[1].tensor;
    struct task *reader = NULL;
    for (size_t i = softmax->index + 2; !reader; i++) /* it comes after attn.mix */
        for (int k = 0; k < t->train->task[i]->n_access; k++)
            reader = t->train->task[i]->access[k].tensor == att ? t->train->task[i] : reader;
    assert_string_equal(reader->name, "attn.dv");
    struct tensor *twin = twin_on(t, att, att->device);
    insert_before(e, reader);
    struct task *again = repeat(e, scores);
    repoint(e, again, att, twin);
    if (fault == 2)
        repoint(e, again, qkv, other);
    if (fault != 3) {
        again = repeat(e, softmax);
        if (fault != 1)
            repoint(e, again, att, twin);
    }
    repoint(e, reader, att, twin);
    return true;
}

/* The accesses of an AdamW task: those of its arguments up to ADAMW_STATE (model.h). */
enum { ADAMW_ACCESSES = ADAMW_STATE + 1 };

/* What can be wrong with an update on the host. */
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
    struct task *mine;                 /* that of the host */
    struct task *up;                   /* the parameters' copy back to the device */
    struct task *down[ADAMW_ACCESSES]; /* the copies to the host; NULL: the tensor lives there */
};

static struct task *copy_to_host(struct trainer *t, const struct task *adamw, int access)
{
    struct tensor *from = adamw->access[access].tensor;
    struct tensor *there = twin_on(t, from, t->machine->host);
    return add_copy(t->train, adamw->lane->device->lane[LANE_DOWNLOAD], "to.host", there, from);
}

static struct host_update update_on_host_well(struct trainer *t, struct edit *e, struct task *adamw)
{
    struct device *host = t->machine->host;
    struct lane *up = adamw->lane->device->lane[LANE_UPLOAD];
    struct tensor *there[ADAMW_ACCESSES];
    struct host_update u = {.adamw = adamw};
    insert_before(e, adamw);
    for (int i = 0; i < ADAMW_ACCESSES; i++) {
        there[i] = adamw->access[i].tensor;
        if (i == ADAMW_M || i == ADAMW_V) {
            set_home(e, there[i], host);
            continue;
        }
        u.down[i] = copy_to_host(t, adamw, i);
        there[i] = u.down[i]->access[0].tensor;
    }
    u.mine = add_host(t->train, host->lane[LANE_CPU], "adamw.host", adamw->run, NULL);
    for (int i = 0; i < ADAMW_ACCESSES; i++)
        add_access(u.mine, there[i], adamw->access[i].mode);
    u.up = add_copy(t->train, up, "from.host", adamw->access[ADAMW_P].tensor, there[ADAMW_P]);
    stand_in(e, u.mine, adamw);
    return u;
}

/* The gradient of another update on the same device, as large as this one's; or, where there is none, m. */
static struct tensor *another_gradient(const struct trainer *t, const struct task *adamw)
{
    const struct tensor *own = adamw->access[ADAMW_G].tensor;
    struct task *other = nth_task(t, "adamw", 0);
    for (size_t nth = 1; other; nth++) {
        struct tensor *gradient = other->access[ADAMW_G].tensor;
        if (other != adamw && gradient->device == own->device && gradient->bytes == own->bytes)
            return gradient;
        other = nth_task(t, "adamw", nth);
    }
    return adamw->access[ADAMW_M].tensor;
}

static struct tensor *persistent_twin(struct trainer *t, const struct tensor *x)
{
    struct tensor *twin = twin_on(t, x, x->device);
    twin->persistent = true;
    return twin;
}

static void spoil(struct trainer *t, struct edit *e, const struct host_update *u, enum update_fault fault)
{
    struct access *gradient = &u->down[ADAMW_G]->access[1]; /* what the copy reads */
    struct access *control = &u->down[ADAMW_CONTROL]->access[1];
    struct tensor *m = u->adamw->access[ADAMW_M].tensor;
    switch (fault) {
    case NO_FAULT:
        break;
    case VALUE_STAYS_AWAY:
        drop(e, u->up);
        break;
    case OTHER_GRADIENT:
        gradient->tensor = another_gradient(t, u->adamw);
        break;
    case OTHER_CONTROL:
        control->tensor = persistent_twin(t, control->tensor);
        break;
    case VALUE_NEVER_CAME:
        drop(e, u->down[ADAMW_P]);
        u->mine->access[ADAMW_P].tensor->persistent = true;
        break;
    case M_STAYS:
        set_home(e, m, u->adamw->lane->device);
        insert_before(e, u->mine);
        repoint(e, u->mine, m, copy_to_host(t, u->adamw, ADAMW_M)->access[0].tensor);
        break;
    }
}

/* An update runs on the host. */
static bool update_on_host(struct trainer *t, struct edit *e, size_t place, int fault)
{
    struct task *adamw = nth_task(t, "adamw", place);
    if (!adamw)
        return false;
    struct host_update u = update_on_host_well(t, e, adamw);
    spoil(t, e, &u, fault);
    return true;
}

/* Three ranks' gradients are summed as (g0 + g1) + g2.  Faults: g1 and g2 change places, in all of it or in one piece
 * of three; g1 comes twice. */
static bool change_chain(struct trainer *t, struct edit *e, size_t place, int fault)
{
    struct task *first = nth_task(t, "reduce.add", 2 * place), *second = nth_task(t, "reduce.add", 2 * place + 1);
    struct task *a[3], *b[3];
    if (!first)
        return false;
    size_t n = cut(e, first, 3, a);
    assert_int_equal(n, cut(e, second, 3, b));
    for (size_t i = 0; i < n && fault; i++) {
        if (fault == 2 && i != 1 % n)
            continue;
        struct tensor *g1 = a[i]->access[1].tensor;
        if (fault != 3)
            a[i]->access[1].tensor = b[i]->access[1].tensor;
        b[i]->access[1].tensor = g1;
    }
    return true;
}

TEST(pieces_repeats_and_stand_ins)
{
    /* The faults, each in every place that the list has for it. */
    const size_t updates = 7; /* on two ranks those of two layers, of the embedding, and on one of the last LayerNorm */
    assert_int_equal(try_change("cut", cut_a_task, 2, 4), 4 * 6);
    assert_int_equal(try_change("repeat", repeat_attention, 2, 3), 3 * 8);
    assert_int_equal(try_change("stand in", update_on_host, 2, LAST_FAULT), LAST_FAULT * updates);
    assert_int_equal(try_change("chain", change_chain, 3, 3), 3 * 10);
}

/* Work that nothing reads counts as well. */
TEST(a_piece_is_missing)
{
    for (size_t missing = 0; missing < 3; missing++) {
        struct paper p = new_paper(1, &slow_speeds);
        struct task *piece[3];
        struct tensor *x = new_bytes(&p, p.device, "x", 512, false), *y = new_bytes(&p, p.device, "y", 512, false);
        add_paper(&p, p.device->lane[LANE_COMPUTE], "make", x, NULL, NULL);
        struct task *t = add_paper(&p, p.device->lane[LANE_COMPUTE], "work", y, x, NULL);
        set_elementwise(t);
        struct values *values = number_values(p.step);
        struct edit *e = open_edit(p.step);
        assert_int_equal(cut(e, t, 3, piece), 3);
        drop(e, piece[missing]);
        commit(e);
        expect_wrong("a piece is missing", compare_values(values, p.step), "work");
        free_values(values);
        end_paper(&p);
    }
}

/* What a move between two devices leaves on the host is no result: another way there is as good.  The copy of a result
 * is not missed before the list is compared. */
TEST(a_move_that_takes_another_way)
{
    struct paper p = new_paper(2, &slow_speeds);
    struct device *there = &p.machine->device[1];
    struct tensor *w = new_bytes(&p, p.device, "w", 64, true);
    struct tensor *x = new_bytes(&p, p.device, "x", 64, false);
    struct tensor *y = new_bytes(&p, there, "y", 64, false);
    struct tensor *z = new_bytes(&p, there, "z", 64, true);
    struct tensor *kept = new_bytes(&p, p.host, "kept", 64, true);
    struct tensor *way = new_bytes(&p, p.host, "way", 64, false);
    add_paper(&p, p.device->lane[LANE_COMPUTE], "f", x, w, NULL);
    add_move(p.step, "move", y, x, FOR_MOVES);
    struct task *down = p.step->task[1], *up = p.step->task[2];
    add_paper(&p, there->lane[LANE_COMPUTE], "g", z, y, NULL);
    struct task *result = add_copy(p.step, there->lane[LANE_DOWNLOAD], "result", kept, z);
    struct values *values = number_values(p.step);
    struct edit *e = open_edit(p.step);
    insert_before(e, down);
    add_copy(p.step, p.device->lane[LANE_DOWNLOAD], "out", way, x);
    add_copy(p.step, there->lane[LANE_UPLOAD], "in", y, way);
    drop(e, down);
    drop(e, up);
    commit(e);
    finish_list(p.step);
    expect_sound("another way", p.step, values);
    e = open_edit(p.step);
    drop(e, result);
    commit(e);
    expect_wrong("no result", compare_values(values, p.step), "a tensor that persists ends with another value");
    free_values(values);
    end_paper(&p);
}
