/* test_swap_plans.c - the plans of swapping, compared with all plans that there are.
 *
 * It tests src/techniques/swap.  In a chain of layers each tensor may be kept, made again, or swapped between any two
 * places; the test checks that the planner's plan is as good as the best of these.  It also checks that a small
 * pipeline has no stalls in as few bytes as possible.  It catches a tensor that leaves or comes back at a worse place,
 * and one that is made again although it could be swapped.
 *
 * To see it fail: in swap_choice.c, swap what is to be made again too: false for the comparison in the last line of
 * action_of().
 *
 * The verbs of edits carry out the plans, not the pass, and the results are simulated.
 *
 *     YARD_CASES=N build/tests/test_swap_plans      N random chains
 */
#include "planning/lists/lists.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_swap.h"

#include <math.h>

/* ---- all plans of a chain ---------------------------------------------------------------------------------------- */

enum { MOST_TRIED = 16 }; /* layers */

struct plan { /* what is done about one layer's data, the tensor of that number */
    enum action action;
    int out, in; /* places in the list with what is made again: right after one task, right before another */
};

struct idle { /* where a tensor lies idle, as places in the list with what is made again */
    int begin, end;
};

/* The tensor of layer k lies idle between its use by the forward of layer k + 1, or, in the last layer, the task that
 * makes it, and its first reader after that.  A tensor that is made again has no later use: its twin has. */
static struct idle idle_of(const struct uses *uses, const struct tensor *tensor, bool is_last)
{
    const struct use_range found = uses_of(uses, tensor);
    size_t before = is_last ? 0 : 1;
    struct idle idle = {.begin = found.uses[before].position, .end = found.uses[before].position};
    if (found.n > before + 1)
        idle.end = found.uses[before + 1].position;
    return idle;
}

static void swap_as_planned(struct edit *edit, struct list *list, const struct uses *uses, struct task *const *line,
                            struct tensor *tensor, const struct plan *plan, int end)
{
    struct device *gpu = tensor->device;
    struct tensor *there = tensor_like(list->pool, list->pool->machine->host, tensor);
    struct tensor *back = tensor_like(list->pool, gpu, tensor);
    switch_readers(edit, uses, tensor, end, tensor, back);
    insert_before(edit, line[plan->in]);
    add_copy(list, gpu->lanes[LANE_UPLOAD], "swap.in", back, there);
    insert_behind(edit, line[plan->out]);
    add_copy(list, gpu->lanes[LANE_DOWNLOAD], "swap.out", there, tensor);
}

/* The period of a chain of n layers, of which each is treated as the plan says; INFINITY: it does not fit.
 * The backward of layer k is task 2n - 1 - k.  idle[k]: becomes that of layer k's tensor, between whose ends its copies
 * may lie. */
static double period_with(struct list *list, const struct plan *plan, int n, struct idle *idle)
{
    struct pool *pool = list->pool;
    struct uses *before = new_uses(list->tasks, list->n, pool);
    int first_reader[MOST_TRIED]; /* as remake_tensors() takes it: the tensor of layer k has the number k */
    size_t n_tasks;
    for (int k = 0; k < n; k++)
        first_reader[k] = plan[k].action == REMAKE_TENSOR ? 2 * n - 1 - k : NONE;
    struct edit *edit = open_edit(list);
    free(remake_tensors(edit, pool, before, first_reader, REMAKE_AT_READER));
    struct task **line = tasks_in_order(list, &n_tasks);
    struct uses *uses = new_uses(line, n_tasks, pool);
    for (int k = 0; k < n; k++) {
        idle[k] = idle_of(uses, pool->tensors[k], k + 1 == n);
        if (plan[k].action == SWAP_TENSOR)
            swap_as_planned(edit, list, uses, line, pool->tensors[k], &plan[k], idle[k].end);
    }
    struct forecast forecast = forecast_list(list, NULL);
    double period = forecast.excess_bytes > 0 ? INFINITY : forecast.period;
    free_forecast(&forecast);
    undo_edit(edit);
    free(line);
    free_uses(uses);
    free_uses(before);
    return period;
}

/* Finds where the layers' tensors lie idle with that plan: what it makes again takes places in the list. */
static void find_idles(struct list *list, const struct plan *plan, int n, struct idle *idle)
{
    period_with(list, plan, n, idle);
}

/* The shortest period of all that may be done about layers 0 .. i - 1, with all places of all copies. */
static double best_of_all(struct list *list, struct plan *plan, int n, int i)
{
    struct idle idle[MOST_TRIED];
    double best = INFINITY;
    if (i == 0)
        return period_with(list, plan, n, idle);
    i--;
    plan[i].action = REMAKE_TENSOR;
    best = fmin(best, best_of_all(list, plan, n, i));
    plan[i].action = KEEP_TENSOR;
    best = fmin(best, best_of_all(list, plan, n, i));
    find_idles(list, plan, n, idle);
    plan[i].action = SWAP_TENSOR;
    for (plan[i].out = idle[i].begin; plan[i].out < idle[i].end; plan[i].out++)
        for (plan[i].in = plan[i].out + 1; plan[i].in <= idle[i].end; plan[i].in++)
            best = fmin(best, best_of_all(list, plan, n, i));
    plan[i].action = KEEP_TENSOR;
    return best;
}

/* The period of the plan of --swap auto for a list, with these classes.  The list must fit. */
static double planned_period(struct list *list, unsigned classes)
{
    struct values *values = hash_values(list);
    size_t n;
    asked_swap = (struct swap_options){SWAP_AUTO, classes};
    struct pass_report *report = run_passes(list, NULL, &(struct run_facts){0}, NULL, &n);
    asked_swap.mode = SWAP_OFF;
    double period = number_at(report[0].fields, "period_ms") / 1e3;
    finish_list(list);
    expect_sound("the list", list, values);
    free_reports(report, n);
    free_values(values);
    return period;
}

TEST(a_plan_is_as_good_as_the_best_of_all)
{
    enum { N = 4 };
    int cases = number_from("YARD_CASES", 8);
    int equal = 0;
    int possible = 0;
    for (int i = 0; i < cases; i++) {
        char *text = random_list("chain", i + 1, N);
        struct list *list = read_list_text("%s", text);
        double best = best_of_all(list, (struct plan[N]){{KEEP_TENSOR, 0, 0}}, N, N);
        double found = isfinite(best) ? planned_period(list, 1u << MEM_ACTIVATIONS) : INFINITY;
        if (isfinite(best) && (found > best * 1.02 || found < best * (1 - 1e-9)))
            test_failed("seed %d: %g s, the best is %g s\n%s", i + 1, found, best, text);
        if (isfinite(best))
            possible++;
        if (isfinite(best) && found < best * (1 + 1e-9))
            equal++;
        free_list_and_machine(list);
        free(text);
    }
    assert_above(possible * 2, cases);
    assert_at_least(equal * 100, possible * 90);
}

/* ---- all plans of a small pipeline ------------------------------------------------------------------------------- */

/* Three micro-batches.  `front` computes 2 ms forward and 4 ms backward, and the `next` stage 1 and 4; only the front's
 * memory is short.  A copy of an activation takes 0.34 ms, so a round trip is 0.11 of a layer's 6 ms.
 *
 *     front   F0 F1 F2   B0  B1  B2
 *     next       F0 B0 F1 B1 F2 B2
 *
 * An order of the list says where sends and answers stand among the front's tasks: in one of six ways for each
 * micro-batch (order_of_sends()).  A choice says of each activation that it is kept, made again, or swapped in one of
 * six ways (swaps[]).  So an order is a number of MICRO digits in base 6, and a choice is one in base FATES. */
enum { KEPT, MADE_AGAIN, SWAPPED, FATES = SWAPPED + 6 }; /* of an activation; from SWAPPED on, by swaps[] */
enum { MICRO = 3, ORDERS = 6 * 6 * 6, CHOICES = FATES * FATES * FATES };
enum { MOST_TENSORS = 64 };   /* of such a list, which has 20 */
#define LEAST_FREE (88 * MIB) /* what the search of all choices in all orders finds, below */

/* Activation i is written by task i of the front, and read by task i + MICRO.  If it is swapped, it leaves right after
 * task i + from, and comes back right before task i + to.  These are all pairs within that time. */
static const struct {
    int from, to;
} swaps[FATES - SWAPPED] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};

static void append_front(char **text, int task)
{
    int micro = task % MICRO;
    if (task < MICRO)
        append_text(text, "task forward front.compute 2ms micro=%d role=forward reads=w writes=a%d,out%d\n", micro,
                    micro, micro);
    else
        append_text(text, "task backward front.compute 4ms micro=%d role=backward reads=w,a%d,back%d%s writes=g\n",
                    micro, micro, micro, micro ? ",g" : "");
}

static void append_answer(char **text, int i)
{
    append_text(text, "task forward next.compute 1ms layer=1 micro=%d role=forward reads=in%d writes=b%d\n", i, i, i);
    append_text(text, "task backward next.compute 4ms layer=1 micro=%d role=backward reads=b%d writes=d%d\n", i, i, i);
    append_text(text, "copy send back%d d%d layer=1 micro=%d role=send\n", i, i, i);
}

/* The list in which micro-batch i is sent right after the front's task out[i], numbered as they run, and its answer
 * stands after task back[i].  The caller frees it. */
static char *two_stages(size_t memory, const int *out, const int *back)
{
    char *text = format_string("device front memory=%zu share\ndevice next memory=1G\n", memory);
    append_text(&text, "link front up 1e11\nlink front down 1e11\nlink next up 1e11\nlink next down 1e11\n");
    append_text(&text, "tensor w front 16M parameters\ntensor g front 16M gradients\n");
    for (int i = 0; i < MICRO; i++) {
        append_text(&text, "tensor a%d front 32M activations\n", i);
        append_text(&text, "tensor out%d front 8M activations\ntensor back%d front 8M activations\n", i, i);
        append_text(&text, "tensor in%d next 8M activations\ntensor b%d next 8M activations\n", i, i);
        append_text(&text, "tensor d%d next 8M activations\n", i);
    }
    for (int task = 0; task < 2 * MICRO; task++) {
        append_front(&text, task);
        for (int i = 0; i < MICRO; i++)
            if (out[i] == task)
                append_text(&text, "copy send in%d out%d micro=%d role=send\n", i, i, i);
        for (int i = 0; i < MICRO; i++)
            if (back[i] == task)
                append_answer(&text, i);
    }
    append_text(&text, "task update front.compute 0 role=update reads=g,w writes=w\n");
    return text;
}

/* Order k of all that data allow: a send after its forward, an answer after the send and before its backward. */
static void order_of_sends(int k, int *out, int *back)
{
    static const struct {
        int sent, answered; /* how many tasks later than at the earliest */
    } ways[] = {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}};
    int n_ways = (int)COUNT(ways);
    for (int i = 0; i < MICRO; i++) { /* digit i of k, in base 6, is the way of micro-batch i */
        int way = k % n_ways;
        out[i] = i + ways[way].sent;
        back[i] = i + ways[way].answered;
        k /= n_ways;
    }
}

/* Activation i, which the front's task i writes: that reads w first. */
static struct tensor *activation_of(struct task *const *front, int i) { return front[i]->accesses[1].tensor; }

/* Swaps activation i by swaps[way]. */
static void swap_in_choice(struct edit *edit, struct list *list, const struct uses *uses, struct task *const *front,
                           int i, int way)
{
    struct tensor *tensor = activation_of(front, i);
    struct tensor *there = tensor_like(list->pool, list->pool->machine->host, tensor);
    struct tensor *back = tensor_like(list->pool, tensor->device, tensor);
    switch_readers(edit, uses, tensor, (int)front[i]->index + 1, tensor, back);
    insert_before(edit, front[i + swaps[way].to]);
    add_copy_for(list, "swap.in", back, there, FOR_SWAP);
    insert_behind(edit, front[i + swaps[way].from]);
    add_copy_for(list, "swap.out", there, tensor, FOR_SWAP);
}

/* Carries out one half of a choice: what is made again, or else what is swapped. */
static void apply_plan(struct edit *edit, struct list *list, const struct uses *uses, struct task *const *front,
                       int choice, bool again)
{
    int first_reader[MOST_TENSORS];
    fill_none(first_reader, MOST_TENSORS);
    for (int i = MICRO - 1; i >= 0; i--) { /* the last digit of the choice is of the last micro-batch */
        int fate = choice % FATES;
        choice /= FATES;
        if (fate == MADE_AGAIN)
            first_reader[activation_of(front, i)->id] = (int)front[i + MICRO]->index;
        else if (fate >= SWAPPED && !again)
            swap_in_choice(edit, list, uses, front, i, fate - SWAPPED);
    }
    if (again)
        free(remake_tensors(edit, list->pool, uses, first_reader, REMAKE_AT_READER));
}

/* The front's bytes, if fewer than `least` are enough for a step of that period; else `least`.  repeats_last: what is
 * made again is put in last, so it comes after what is fetched before the same task. */
static size_t bytes_if_free(struct list *list, const struct uses *uses, struct task *const *front, int choice,
                            bool repeats_last, double period, size_t least)
{
    struct edit *edit = open_edit(list);
    apply_plan(edit, list, uses, front, choice, !repeats_last);
    apply_plan(edit, list, uses, front, choice, repeats_last);
    list->pool->machine->devices[0].budget = least - 1;
    struct forecast forecast = forecast_list_within(list, NULL, 0, NULL, NULL);
    if (forecast.excess_bytes == 0 && forecast.period < period * (1 + 1e-9))
        least = forecast.needed_bytes[0];
    free_forecast(&forecast);
    undo_edit(edit);
    return least;
}

/* The same for all choices in one order of the list. */
static size_t least_of_choices(struct list *list, double period, size_t least)
{
    struct uses *uses = new_uses(list->tasks, list->n, list->pool);
    struct task *front[2 * MICRO + 1]; /* the last one is the update */
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->tasks[i]->lane == list->pool->machine->devices[0].lanes[LANE_COMPUTE]) {
            front[n] = list->tasks[i];
            n++;
        }
    for (int choice = 0; choice < CHOICES; choice++)
        for (int last = 0; last < 2; last++)
            least = bytes_if_free(list, uses, front, choice, last, period, least);
    free_uses(uses);
    return least;
}

/* Here all that is sent and received stays on the device.  No such plan is free in fewer than 88 MiB, though copies
 * take a ninth of the time: not the link decides, but the bytes that must be there at once.  The planner's plan is as
 * good, although in its list all sends stand as early as data allow. */
TEST(a_pipeline_is_planned_for_its_least_budget)
{
    static const int early[MICRO] = {0, 1, 2};
    char *text = two_stages((size_t)1 << 30, early, early);
    struct list *list = read_list_text("%s", text);
    struct forecast forecast = forecast_by_data(list, NULL);
    size_t least = LEAST_FREE + 1;
    for (int order = 0; order < ORDERS; order++) {
        int out[MICRO], back[MICRO];
        order_of_sends(order, out, back);
        char *other = two_stages((size_t)1 << 30, out, back);
        struct list *in_order = read_list_text("%s", other);
        least = least_of_choices(in_order, forecast.period, least);
        free_list_and_machine(in_order);
        free(other);
    }
    if (least != LEAST_FREE)
        test_failed("the least budget without a stall is %zu bytes, expected %zu\n", least, LEAST_FREE);
    free(text);
    text = two_stages(LEAST_FREE, early, early);
    expect_number("period", number_at(plan_file(text, AUTO), "period_ms"), forecast.period * 1e3);
    free(text);
    text = two_stages(LEAST_FREE - 1, early, early);
    assert_above(number_at(plan_file(text, AUTO), "period_ms"), forecast.period * 1e3 * (1 + 1e-9));
    free(text);
    free_forecast(&forecast);
    free_list_and_machine(list);
}
