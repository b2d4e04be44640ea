/* test_place.c - where bytes lie: budgets, tensors that share bytes or are pinned, and the guards of slabs.
 *
 * It tests place() of src/trainer/step and damaged_guards() of src/trainer/device.  It checks that what is placed is
 * within the budget to the byte, or is refused with the number that would be enough and the option that gives it; that
 * a byte is counted once; and that giving addresses in a long list takes at most a few times as long as reading the
 * list.
 *
 * To see it fail: in place_order.c, let an arena exceed its budget by a byte.
 *
 * The lists are those of data/steps, texts in this program, and one whose length a test chooses.  A budget follows from
 * what the list needs: it is a byte less, or half of that.
 */
#include "planning/lists/lists.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_schedule.h"

#include <time.h>

/* ---- budgets ----------------------------------------------------------------------------------------------------- */

/* The list is placed within the budget to the byte, or refused. */
static void expect_within(struct list *list, size_t budget, size_t enough)
{
    struct device *device = &list->pool->machine->devices[0];
    device->budget = budget;
    struct problem *problem = place(list->pool, &list, 1, PLACE_TO_CHECK);
    bool is_refused = problem != NULL;
    if (is_refused && budget >= enough)
        test_failed("%zu bytes are enough, but %zu are refused: %s\n", enough, budget, problem->sentence);
    if (!is_refused && device->placed_bytes > budget)
        test_failed("the budget is %zu bytes, but %zu are taken\n", budget, device->placed_bytes);
    free(problem);
}

TEST(no_list_takes_a_byte_above_the_budget)
{
    static const char *const lists[] = {"1f1b", "chain", "overlap", "pipelines", "recompute", "swap"};
    for (size_t i = 0; i < COUNT(lists); i++) {
        char *path = lasting("data/steps/%s.txt", lists[i]);
        struct list *list = read_list(path);
        must(place(list->pool, &list, 1, PLACE_TO_CHECK));
        size_t enough = list->pool->machine->devices[0].placed_bytes;
        for (size_t less = 0; less < 3; less++)
            expect_within(list, enough - less, enough);
        expect_within(list, enough / 2, enough);
        free_list_and_machine(list);
    }
}

/* On a machine by hand tensors lie apart where all have room at once, and else share bytes: here each has 60 bytes, and
 * no task uses both. */
TEST(tensors_lie_apart_where_all_have_room)
{
    static const struct {
        const char *device;
        size_t bytes; /* that the two tensors take */
    } cases[] = {
        {"memory=100 slab=1000", .bytes = 60},  /* no room for both in the memory */
        {"memory=1000 slab=100", .bytes = 60},  /* nor in one slab */
        {"memory=120 slab=1000", .bytes = 120}, /* room for both */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct list *list = read_list_text("device g %s\ntensor a g 60 activations\ntensor b g 60 activations\n"
                                           "task t g.compute 1ms writes=a\ntask u g.compute 1ms reads=a\n"
                                           "task v g.compute 1ms writes=b\ntask w g.compute 1ms reads=b\n",
                                           cases[i].device);
        must(place(list->pool, &list, 1, PLACE_TO_CHECK));
        bool share = list->pool->tensors[0]->address == list->pool->tensors[1]->address;
        size_t taken = share ? 60 : 120;
        if (taken != cases[i].bytes)
            test_failed("%s: the two tensors take %zu bytes\n", cases[i].device, taken);
        free_list_and_machine(list);
    }
}

/* However small a budget is, the sentence says what the whole list holds, and not only what lay there when the first
 * tensor found no room. */
TEST(what_is_needed_is_that_of_the_whole_list)
{
    char bytes[NUMBER_TEXT];
    struct list *list = read_list("data/steps/swap.txt");
    must(place(list->pool, &list, 1, PLACE_TO_CHECK));
    struct device *device = &list->pool->machine->devices[0];
    size_t held = list->extra.peak_total[0];
    const char *need = lasting("need at least %s, ", format_bytes(bytes, (double)held));
    for (size_t part = 2; part <= 16; part *= 2) {
        device->budget = held / part;
        struct problem *problem = place(list->pool, &list, 1, PLACE_TO_CHECK);
        assert_non_null(problem);
        if (!strstr(problem->sentence, need))
            test_failed("a budget of a part in %zu: %s; expected %s\n", part, problem->sentence, need);
        free(problem);
    }
    free_list_and_machine(list);
}

/* A refusal names the option that sets the budget.  A limit of the process is named only where nobody has set a smaller
 * budget. */
TEST(the_option_that_would_make_room_is_named)
{
    struct list *list = read_list("data/steps/swap.txt");
    must(place(list->pool, &list, 1, PLACE_TO_CHECK));
    struct device *device = &list->pool->machine->devices[0];
    size_t half = device->placed_bytes / 2;
    for (int limited = 0; limited < 2; limited++)
        for (int set = 0; set < 2; set++) {
            const char *option = limited && !set ? "or limit" : "or --device-mem";
            device->extra.limited = limited;
            device->budget = half;
            device->memory = set ? 4 * half : half;
            struct problem *problem = place(list->pool, &list, 1, PLACE_TO_CHECK);
            assert_non_null(problem);
            assert_contains(problem->sentence, option);
            free(problem);
        }
    free_list_and_machine(list);
}

/* A list of n forwards that each leave a tensor, of this many sizes in turn, and n backwards that read them in reverse.
 * The caller frees the text. */
static char *nested_lives(int n, int sizes)
{
    struct begun_text begun;
    FILE *out = begin_text(&begun); /* append_text() would look for the end of so long a text each time */
    fprintf(out, "device gpu memory=1G share\n");
    for (int i = 0; i < n; i++)
        fprintf(out, "tensor a%d gpu %d activations\n", i, 1000 + i * 7919 % sizes);
    for (int i = 0; i < n; i++)
        fprintf(out, "task f gpu.compute 1us role=forward writes=a%d\n", i);
    for (int i = n; i-- > 0;)
        fprintf(out, "task b gpu.compute 1us role=backward reads=a%d\n", i);
    return end_text(&begun);
}

/* Giving addresses to many tensors takes at most a few times as long as reading their list, whatever their sizes.  If
 * each tensor were compared with all that are there, it would take more than 20 times as long.  place() counts
 * no comparisons, since nobody else would read the count: so the test compares times.  Both are the CPU's for this
 * process, so that it does not matter what else the machine does. */
LONG_TEST(many_tensors_are_placed_about_as_fast_as_their_list_is_read)
{
    static const int sizes[] = {1, 9000};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        char *text = nested_lives(32000, sizes[k]);
        clock_t begin = clock();
        struct list *list = read_list_text("%s", text);
        clock_t read = clock();
        must(place(list->pool, &list, 1, PLACE_TO_CHECK));
        clock_t placed = clock();
        if (placed - read > 10 * (read - begin))
            test_failed("%d sizes: %g s to read the list, %g s to place its tensors\n", sizes[k],
                        (double)(read - begin) / CLOCKS_PER_SEC, (double)(placed - read) / CLOCKS_PER_SEC);
        size_t bytes = 0;
        for (size_t i = 0; i < list->pool->n; i++)
            bytes += list->pool->tensors[i]->bytes;
        /* All are live at once, and lie without a hole. */
        assert_int_equal(list->pool->machine->devices[0].placed_bytes, bytes);
        free_list_and_machine(list);
        free(text);
    }
}

/* The host has an arena for each context, and a byte of one is counted once: its memory is enough to the byte. */
TEST(memory_of_all_contexts_is_counted_once)
{
    struct paper paper = new_paper(2, &slow_speeds);
    struct device *host = paper.host;
    for (int i = 0; i < 2; i++) {
        struct device *device = &paper.machine->devices[i];
        add_copy(paper.list, device->lanes[LANE_DOWNLOAD], "down", new_words(&paper, host, "h", 1024, PERSISTENT),
                 new_words(&paper, device, "x", 1024, PERSISTENT));
    }
    paper.machine->n_contexts = 2;
    host->uses_ram = true;
    must(place(paper.pool, &paper.list, 1, PLACE_TO_CHECK));
    assert_at_least(host->placed_bytes, 2 * 4096);
    host->memory = host->placed_bytes;
    must(place(paper.pool, &paper.list, 1, PLACE_TO_CHECK));
    host->memory--;
    struct problem *problem = place(paper.pool, &paper.list, 1, PLACE_TO_CHECK);
    assert_non_null(problem);
    assert_contains(problem->sentence, "share one memory");
    free(problem);
    end_paper(&paper);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

/* A chain a -> b -> c ... in which tensor i lives in tasks i and i + 1: neighbours apart, all others may share. */
static struct list *new_chain(struct pool *pool, int n, int64_t elements)
{
    struct list *list = new_list(pool, "chain");
    struct tensor *last = new_array(pool, &pool->machine->devices[0], "t0", elements, TRANSIENT);
    add_fill(list, "start", last, 1);
    for (int i = 1; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        struct tensor *next = new_array(pool, &pool->machine->devices[0], name, elements, TRANSIENT);
        add_two(list, name, next, last, last);
        last = next;
    }
    return list;
}

CASE(over_budget)
{
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0", .device_memory = 20000});
    struct pool *pool = new_pool(machine);
    struct list *list = new_chain(pool, 3, 1000);
    add_accumulate(list, "last", list->tasks[2]->accesses[0].tensor,
                   new_array(pool, &machine->devices[0], "too_much", 1000, TRANSIENT));
    list->tasks[3]->layer = 4;
    for (int k = 0; k < 3; k++) /* all live to the end */
        add_access(list->tasks[3], list->tasks[k]->accesses[0].tensor, ACCESS_READ);
    must(finish_lists(pool, &list, 1));
}

CASE(over_host_budget)
{
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0", .host_memory = 9000});
    struct list *list = new_list_on(machine);
    struct pool *pool = list->pool;
    struct tensor *thought = new_array(pool, machine->host, "thought", 2000, PERSISTENT);
    struct task *think = add_host(list, machine->host->lanes[LANE_CPU], "think", no_work, NULL);
    add_access(think, thought, ACCESS_WRITE);
    must(finish_lists(pool, &list, 1));
}

/* Two that share a memory of 24,000 bytes need a little over half of it each: 12,288 bytes. */
CASE(shared_memory)
{
    struct machine *machine = open_one();
    struct pool *pool = new_pool(machine);
    struct list *list = new_chain(pool, 1, 2000);
    machine->host->memory = 24000;
    struct tensor *thought = new_array(pool, machine->host, "thought", 2000, PERSISTENT);
    struct task *think = add_host(list, machine->host->lanes[LANE_CPU], "think", no_work, NULL);
    add_access(think, thought, ACCESS_WRITE);
    must(finish_lists(pool, &list, 1));
}

CASE(larger_than_a_slab)
{
    struct machine *machine = open_one();
    machine->devices[0].max_allocation = 20000;
    struct pool *pool = new_pool(machine);
    struct list *list = new_chain(pool, 2, 5000);
    must(finish_lists(pool, &list, 1));
}

TEST(place_refuses_what_does_not_fit)
{
    expect_case("over_budget", EXIT_USAGE, "tensor too_much", "3.91 KiB", "task last (layer 4", "19.5 KiB",
                "--device-mem", NULL);
    expect_case("over_host_budget", EXIT_USAGE, "device host", "tensor thought", "7.81 KiB", "8.79 KiB", "--host-mem",
                NULL);
    expect_case("shared_memory", EXIT_USAGE, "share one memory of 23.4 KiB", "together need 24.0 KiB", NULL);
    expect_case("larger_than_a_slab", EXIT_USAGE, "device 0:0", "tensor t0 (activations, 19.5 KiB)", "in one piece",
                NULL);
}

/* ---- where bytes lie --------------------------------------------------------------------------------------------- */

/* Two lists on one arena: one runs at a time, so theirs may share; what persists keeps its bytes and its value. */
TEST(lists_share_an_arena)
{
    struct machine *machine = open_one();
    struct pool *pool = new_pool(machine);
    struct list *one = new_list(pool, "one");
    struct list *lists[] = {one, new_list(pool, "two")};
    struct tensor *kept = new_array(pool, &machine->devices[0], "kept", 500, PERSISTENT);
    struct tensor *scratch[2];
    for (int i = 0; i < 2; i++) {
        scratch[i] = new_array(pool, &machine->devices[0], "scratch", 500, TRANSIENT);
        add_fill(lists[i], "fill", scratch[i], 1 + 9 * (float)i);
        add_accumulate(lists[i], "sum", kept, scratch[i]);
    }
    must(finish_lists(pool, lists, 2));
    assert_int_equal(scratch[0]->address, scratch[1]->address);
    /* 500 floats have 2000 bytes: those that are kept, and those of both lists' scratch, which share bytes */
    assert_int_equal(machine->devices[0].slabs[0].bytes, 2 * round_up(2000, machine->devices[0].alignment));
    for (uint32_t number = 1; number <= 3; number++)
        for (int i = 0; i < 2; i++) {
            execute(lists[i], number);
            drain(lists[i]);
        }
    float values[500];
    read_tensor(kept, values);
    assert_close(values[0], 33, 0); /* three steps have added 1, by the first list, and 10, by the second */
    assert_close(values[499], 33, 0);
    free_list(lists[0]);
    free_list(lists[1]);
    free_pool(pool);
    close_used(machine);
}

/* Tensors in slots that no task names lie where the one in slot 1 does: pinned for the device that copies it. */
TEST(tensors_in_slots_are_placed_alike)
{
    struct list *list =
        read_list_text(GPU "tensor x gpu 4 work keep\ntensor b host 4 work keep\ntensor other host 4 work keep\n"
                           "task copy gpu.download 1 reads=x writes=b\ntask commit host.disk 1\n");
    struct tensor *tensor = list->pool->tensors[1], *other = list->pool->tensors[2];
    tensor->extra.slots = &list->pool->slots;
    tensor->extra.next_slot = other;
    finish_list(list);
    assert_ptr_equal(tensor->copier, &list->pool->machine->devices[0]);
    assert_ptr_equal(other->copier, tensor->copier);
    assert_ptr_equal(tensor_in_slot(tensor, 1), tensor);
    assert_ptr_equal(tensor_in_slot(tensor, 2), other);
    free_list_and_machine(list);
}

/* Two devices with a context each, and a way from a to b in two copies, which the list has in the other order: up to b
 * goes what the step before has brought down.  The bytes, in all slots, are pinned for the one that copies down. */
TEST(a_move_is_pinned_for_the_device_that_copies_down)
{
    struct paper paper = new_paper(2, &slow_speeds);
    struct device *from = &paper.machine->devices[0], *to = &paper.machine->devices[1];
    struct tensor *a = new_words(&paper, from, "a", 1024, PERSISTENT),
                  *b = new_words(&paper, to, "b", 1024, PERSISTENT);
    struct tensor *tensor = new_words(&paper, paper.host, "h", 1024, PERSISTENT),
                  *in_slot_2 = new_words(&paper, paper.host, "h2", 1024, PERSISTENT);
    tensor->extra.slots = &paper.pool->slots;
    tensor->extra.next_slot = in_slot_2;
    add_copy(paper.list, to->lanes[LANE_UPLOAD], "up", b, tensor);
    add_copy(paper.list, from->lanes[LANE_DOWNLOAD], "down", tensor, a);
    must(place(paper.pool, &paper.list, 1, PLACE_TO_CHECK));
    assert_ptr_equal(tensor->copier, from);
    assert_ptr_equal(in_slot_2->copier, from);
    end_paper(&paper);
}

/* ---- guards behind slabs ----------------------------------------------------------------------------------------- */

TEST(guards_see_writes_past_a_slab)
{
    struct machine *machine = open_one();
    struct device *device = &machine->devices[0];
    struct list *list = new_list_on(machine);
    struct pool *pool = list->pool;
    struct tensor *tensor = new_array(pool, device, "x", (int64_t)device->alignment / 4, PERSISTENT),
                  *h = new_array(pool, machine->host, "h", 1024, PERSISTENT);
    struct task *fill = add_fill(list, "fill", tensor, 1);
    fill->args[FILL_ELEMENTS].number += 1; /* one more than there is */
    struct task *writer = add_host(list, machine->host->lanes[LANE_CPU], "host", no_work, NULL);
    add_access(writer, h, ACCESS_WRITE);
    must(finish_lists(pool, &list, 1));
    assert_int_equal(damaged_guards(device), 0);
    assert_non_null(machine->host->slabs[0].pinned);
    execute(list, 1);
    drain(list);
    assert_int_equal(damaged_guards(device), 1);
    assert_int_equal(damaged_guards(machine->host), 0);
    ((char *)tensor_memory(h))[4096 + GUARD_BYTES - 1] = 0; /* also at the guard's far end */
    assert_int_equal(damaged_guards(machine->host), 1);
    end_list(list);
}
