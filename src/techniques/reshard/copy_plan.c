/* copy_plan.c - from the pieces of one mesh to those of another: what to copy where, for one tensor.
 *
 * The tensor is walked from its first element to its last.  At each moment one piece of either side has the next
 * element. A copy is as many elements as follow one another in the tensor and in both pieces.
 *
 *     from   | 0 . . . . . | 1 . . . . . |            3 ranks of 4 rows from 2 of 6
 *     to     | 0 . . . | 1 . . . | 2 . . . |
 *     plan     0-0       0-1 1-1   1-2
 *
 * Nothing is assumed of how either side was cut, so any pair of meshes has a plan, or a place where pieces are wrong:
 *
 *     a hole       an element that no piece has next
 *     an overlap   an element that was walked in one piece and stays the next one in another, which is noticed at the
 *                  first element that no piece has next, or at the end
 */
#include "copy_plan.h"

struct side {
    const struct kept_tensor *t;
    const char *where; /* the path at which the pieces lie, for messages */
    size_t *done;      /* by piece: how many of its elements have been walked over */
    size_t now;        /* the piece of the last copy */
};

/* Finds the piece whose next element is the tensor's element `at`: s->now becomes this piece, and *stretch how many
 * elements follow one another there.  Returns false if no piece has this element next. */
static bool find_next(struct side *s, size_t at, size_t *stretch)
{
    for (size_t i = 0; i < s->t->n; i++) {
        size_t k = (s->now + i) % s->t->n;
        const struct piece *p = &s->t->piece[k];
        if (s->done[k] < piece_elements(p) && element_of(s->t, p, s->done[k], stretch) == at) {
            s->now = k;
            return true;
        }
    }
    return false;
}

/* Fails: no piece has element `at` next, or the walk has ended there and a piece still has elements.  The message names
 * the first element that is wrong: an element that is still next in a piece, which is an overlap, or else `at`. */
static _Noreturn void refuse_cover(const struct side *s, size_t at)
{
    size_t first = at, stretch;
    for (size_t k = 0; k < s->t->n; k++) {
        const struct piece *p = &s->t->piece[k];
        if (s->done[k] == piece_elements(p))
            continue;
        size_t next = element_of(s->t, p, s->done[k], &stretch);
        first = MIN(first, next);
    }
    fail(EXIT_FAILED, "%s: the pieces of tensor %s, %s, do not cover it once: %s element %zu of %zu", s->where,
         s->t->name, kept_name[s->t->role], first < at ? "more than one has" : "none has", first,
         tensor_elements(s->t));
}

struct copies plan_copies(const struct kept_tensor *from, const struct kept_tensor *to, const char *where)
{
    struct copies plan = {.from = from, .to = to};
    struct side sides[] = {{.t = from, .where = where, .done = allocate(from->n, sizeof(size_t))},
                           {.t = to, .where = "where it goes to", .done = allocate(to->n, sizeof(size_t))}};
    struct side *a = &sides[0], *b = &sides[1];
    struct side *end = sides + 2;
    for (size_t at = 0, n; at < tensor_elements(from); at += n) {
        n = SIZE_MAX;
        for (struct side *s = sides; s < end; s++) {
            size_t stretch;
            if (!find_next(s, at, &stretch))
                refuse_cover(s, at);
            n = MIN(n, stretch);
        }
        struct copy copy = {.from_piece = a->now, .to_piece = b->now, .n = n};
        copy.from_offset = a->done[a->now];
        copy.to_offset = b->done[b->now];
        *APPEND(plan.copy, plan.n, plan.cap) = copy;
        a->done[a->now] += n;
        b->done[b->now] += n;
    }
    for (struct side *s = sides; s < end; s++)
        for (size_t k = 0; k < s->t->n; k++)
            if (s->done[k] < piece_elements(&s->t->piece[k]))
                refuse_cover(s, tensor_elements(s->t));
    free(a->done);
    free(b->done);
    return plan;
}

size_t bytes_before(const struct kept_tensor *t, size_t piece)
{
    size_t elements = 0;
    for (size_t i = 0; i < piece; i++)
        if (t->piece[i].rank == t->piece[piece].rank)
            elements += piece_elements(&t->piece[i]);
    return ELEMENT_BYTES * elements;
}

/* ---- the proof -------------------------------------------------------------------------------------------------- */

COMPARISON(by_destination, struct copy, BY(a->to_piece, b->to_piece, COMPARE(a->to_offset, b->to_offset)))

static bool lies_within(const struct piece *p, size_t at, size_t n)
{
    size_t all = piece_elements(p);
    return at <= all && n <= all - at;
}

/* Does the copy lie in both pieces, and take each element to where the same one belongs? */
static bool is_sound(const struct copies *p, const struct copy *c)
{
    if (c->n == 0 || c->from_piece >= p->from->n || c->to_piece >= p->to->n)
        return false;
    const struct piece *from = &p->from->piece[c->from_piece], *to = &p->to->piece[c->to_piece];
    if (!lies_within(from, c->from_offset, c->n) || !lies_within(to, c->to_offset, c->n))
        return false;
    for (size_t i = 0; i < c->n;) {
        size_t from_stretch, to_stretch;
        size_t read = element_of(p->from, from, c->from_offset + i, &from_stretch);
        size_t written = element_of(p->to, to, c->to_offset + i, &to_stretch);
        if (read != written)
            return false;
        i += MIN(from_stretch, to_stretch);
    }
    return true;
}

static struct problem *plan_problem(const struct copies *p, size_t to, size_t at, const char *fault)
{
    return new_problem(EXIT_FAILED, "the copy plan is wrong: element %zu of piece %zu of tensor %s, %s, %s", at, to,
                       p->to->name, kept_name[p->to->role], fault);
}

struct problem *prove_copies(const struct copies *p)
{
    struct problem *found = NULL;
    size_t *written = allocate(p->to->n, sizeof *written); /* by piece: so many elements of it, from its first on */
    struct copy *sorted = copy_bytes(p->copy, p->n * sizeof *sorted);
    SORT(sorted, p->n, by_destination);
    for (size_t i = 0; i < p->n && !found; i++) {
        const struct copy *c = &sorted[i];
        if (!is_sound(p, c))
            found = plan_problem(p, c->to_piece, c->to_offset, "gets the value of another element");
        else if (c->to_offset < written[c->to_piece])
            found = plan_problem(p, c->to_piece, c->to_offset, "is written twice");
        else if (c->to_offset > written[c->to_piece])
            found = plan_problem(p, c->to_piece, c->to_offset, "comes after one that is not written");
        else
            written[c->to_piece] += c->n;
    }
    for (size_t k = 0; k < p->to->n && !found; k++)
        if (written[k] != piece_elements(&p->to->piece[k]))
            found = plan_problem(p, k, written[k], "is not written");
    free(sorted);
    free(written);
    return found;
}
