/* reshard_plan.c - from the pieces of one mesh to those of another: what to copy where, for one tensor.
 *
 * This is how a checkpoint of K ranks loads on N: however a tensor is cut, its elements are the same, in the same
 * order.  So the tensor is walked from its first element to its last.  At each moment one piece of either side has the
 * next element.  A copy is as many elements as follow one another in the tensor and in both pieces.
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
 *
 * Source: "Data loading method, device, electronic equipment and storage medium" (Baidu, 2023).
 */
#include "reshard.h"

struct side {
    const struct kept_tensor *tensor;
    const char *where; /* the path at which the pieces lie, for messages */
    size_t *done;      /* by piece: how many of its elements have been walked over */
    size_t now;        /* the piece of the last copy */
};

/* Moves the side to the piece whose next element is the tensor's element `at`: side->now becomes this piece, and
 * *stretch how many elements follow one another there.  Returns false if no piece has this element next. */
static bool advance_to(struct side *side, size_t at, size_t *stretch)
{
    for (size_t i = 0; i < side->tensor->n_pieces; i++) {
        size_t k = (side->now + i) % side->tensor->n_pieces;
        const struct piece *piece = &side->tensor->pieces[k];
        if (side->done[k] < piece_elements(piece) && element_of(side->tensor, piece, side->done[k], stretch) == at) {
            side->now = k;
            return true;
        }
    }
    return false;
}

/* The problem that no piece has element `at` next, or that the walk has ended at `at` and a piece still has elements.
 * The message names the first element that is wrong: one that is still next in a piece, which is an overlap, or else
 * `at`. */
static struct problem *uncovered_problem(const struct side *side, size_t at)
{
    size_t first = at, stretch;
    for (size_t k = 0; k < side->tensor->n_pieces; k++) {
        const struct piece *piece = &side->tensor->pieces[k];
        if (side->done[k] == piece_elements(piece))
            continue;
        size_t next = element_of(side->tensor, piece, side->done[k], &stretch);
        first = MIN(first, next);
    }
    return new_problem(EXIT_FAILED, "%s: the pieces of tensor %s, %s, do not cover it once: %s element %zu of %zu",
                       side->where, side->tensor->name, kept_name[side->tensor->role],
                       first < at ? "more than one has" : "none has", first, tensor_elements(side->tensor));
}

static struct side make_side(const struct kept_tensor *tensor, const char *where)
{
    return (struct side){.tensor = tensor, .where = where, .done = allocate(tensor->n_pieces, sizeof(size_t))};
}

/* The walk has ended.  Returns the problem that a piece still has elements, or NULL. */
static struct problem *unfinished_problem(const struct side *side)
{
    for (size_t k = 0; k < side->tensor->n_pieces; k++)
        if (side->done[k] < piece_elements(&side->tensor->pieces[k]))
            return uncovered_problem(side, tensor_elements(side->tensor));
    return NULL;
}

/* Walks through the tensor, and appends the copies to the plan.  Returns NULL, or the problem with the pieces. */
static struct problem *walk_tensor(struct side sides[2], struct copies *plan)
{
    struct side *from_side = &sides[0], *to_side = &sides[1];
    for (size_t at = 0, n; at < tensor_elements(plan->from); at += n) {
        n = SIZE_MAX;
        for (struct side *side = sides; side < sides + 2; side++) {
            size_t stretch;
            if (!advance_to(side, at, &stretch))
                return uncovered_problem(side, at);
            n = MIN(n, stretch);
        }
        struct copy copy = {.from_piece = from_side->now, .to_piece = to_side->now, .n = n};
        copy.from_offset = from_side->done[from_side->now];
        copy.to_offset = to_side->done[to_side->now];
        GROW(plan->items, plan->cap, plan->n + 1);
        plan->items[plan->n++] = copy;
        from_side->done[from_side->now] += n;
        to_side->done[to_side->now] += n;
    }
    struct problem *problem = unfinished_problem(from_side);
    return problem ? problem : unfinished_problem(to_side);
}

struct problem *plan_copies(const struct kept_tensor *from, const struct kept_tensor *to, const char *where,
                            struct copies *plan)
{
    struct side sides[] = {make_side(from, where), make_side(to, "the target")};
    *plan = (struct copies){.from = from, .to = to};
    struct problem *problem = walk_tensor(sides, plan);
    free(sides[0].done);
    free(sides[1].done);
    return problem;
}

/* ---- the proof --------------------------------------------------------------------------------------------------- */

static int by_destination(const void *left, const void *right)
{
    const struct copy *a = left;
    const struct copy *b = right;
    return BY(a->to_piece, b->to_piece, COMPARE(a->to_offset, b->to_offset));
}

/* Is there a piece of that number, in which n elements lie from element `at` on? */
static bool has_range(const struct kept_tensor *tensor, size_t piece, size_t at, size_t n)
{
    if (piece >= tensor->n_pieces)
        return false;
    size_t all = piece_elements(&tensor->pieces[piece]);
    return at <= all && n <= all - at;
}

/* Does the copy, which lies in both pieces, take each element to where the same one belongs? */
static bool keeps_elements(const struct copies *plan, const struct copy *copy)
{
    const struct piece *from = &plan->from->pieces[copy->from_piece];
    const struct piece *to = &plan->to->pieces[copy->to_piece];
    for (size_t i = 0; i < copy->n;) {
        size_t from_stretch, to_stretch;
        size_t read = element_of(plan->from, from, copy->from_offset + i, &from_stretch);
        size_t written = element_of(plan->to, to, copy->to_offset + i, &to_stretch);
        if (read != written)
            return false;
        i += MIN(from_stretch, to_stretch);
    }
    return true;
}

/* What is wrong with the copy, which comes after others of the plan, as the end of a sentence; NULL: nothing.
 * written: by piece of the target, how many elements these others have written, from the first one on. */
static const char *describe_fault(const struct copies *plan, const struct copy *copy, const size_t *written)
{
    if (copy->n == 0)
        return "begins a copy of no element";
    if (!has_range(plan->from, copy->from_piece, copy->from_offset, copy->n) ||
        !has_range(plan->to, copy->to_piece, copy->to_offset, copy->n))
        return "begins a copy that leaves its pieces";
    if (!keeps_elements(plan, copy))
        return "gets the value of another element";
    if (copy->to_offset < written[copy->to_piece])
        return "is written twice";
    if (copy->to_offset > written[copy->to_piece])
        return "comes after one that is not written";
    return NULL;
}

static struct problem *plan_problem(const struct copies *plan, size_t to, size_t at, const char *fault)
{
    return new_problem(EXIT_FAILED, "the copy plan is wrong: element %zu of piece %zu of tensor %s, %s, %s", at, to,
                       plan->to->name, kept_name[plan->to->role], fault);
}

struct problem *prove_copies(const struct copies *plan)
{
    struct problem *problem = NULL;
    size_t *written = allocate(plan->to->n_pieces, sizeof *written); /* as describe_fault() takes it */
    struct copy *sorted = copy_bytes(plan->items, plan->n * sizeof *sorted);
    SORT(sorted, plan->n, by_destination);
    for (size_t i = 0; i < plan->n && !problem; i++) {
        const struct copy *copy = &sorted[i];
        const char *fault = describe_fault(plan, copy, written);
        if (fault)
            problem = plan_problem(plan, copy->to_piece, copy->to_offset, fault);
        else
            written[copy->to_piece] += copy->n;
    }
    for (size_t k = 0; k < plan->to->n_pieces && !problem; k++)
        if (written[k] != piece_elements(&plan->to->pieces[k]))
            problem = plan_problem(plan, k, written[k], "is not written");
    free(sorted);
    free(written);
    return problem;
}
