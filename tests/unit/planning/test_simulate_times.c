/* test_simulate_times.c - the times that follow from a step file, compared with times that were worked out by hand.
 *
 * It tests src/planning/predict.  It checks lanes, links, latencies, disks, the host that issues tasks, and the period
 * of the steady pattern.  It catches bandwidth that is shared wrongly, a wait that is left out, and a pattern that is
 * taken to repeat too early.
 *
 * To see it fail: in simulate.c, let copies begin without their latency: 0 for lane->latency where they do.
 *
 * The lists are texts in this program.  They are so small that a pencil is enough to find their times, which are the
 * numbers below.  The lists of data/steps say in their comments how long their periods are, and why.
 */
#include "planning/lists/lists.h"
#include "planning/predict/predict.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"

#include <math.h>

/* ---- copies and links -------------------------------------------------------------------------------------------- */

/* Task i in the first step of the steady pattern, its times counted from the end of the step before. */
static void expect_span(const struct simulation *simulation, size_t i, double start, double end)
{
    size_t n = simulation->list->n;
    double from = 0;
    for (size_t k = 0; k < n; k++)
        from = fmax(from, simulation->moments[(size_t)(simulation->first - 1) * n + k].end);
    const struct moment *moment = &simulation->moments[(size_t)simulation->first * n + i];
    if (fabs(moment->start - from - start) > 1e-9 || fabs(moment->end - from - end) > 1e-9)
        test_failed("task %s: simulated [%g, %g], by hand [%g, %g]\n", simulation->list->tasks[i]->name,
                    moment->start - from, moment->end - from, start, end);
}

/* A copy waits for the latency, and then its bytes go: 2 + 100 / 50. */
TEST(a_copy_waits_for_the_latency_then_its_bytes_go)
{
    struct simulation *simulation = simulate_text(GPU "link gpu down 50 2\n"
                                                      "tensor x gpu 100 work\ntensor h host 100 work\n"
                                                      "task make gpu.compute 1 writes=x\n"
                                                      "copy out h x\n"
                                                      "task use host.cpu 3 reads=h writes=h\n");
    expect_span(simulation, 0, -3, -2); /* as soon as x has been copied */
    expect_span(simulation, 1, 0, 4);   /* h is free when it has been used */
    expect_span(simulation, 2, 4, 7);
    end_simulation(simulation);
}

/* Beside its source the copy reads a word that says whether it is needed, and which is there after 5 s. */
TEST(a_copy_waits_for_all_it_reads)
{
    struct simulation *simulation = simulate_text(GPU "tensor x gpu 100 work keep\ntensor h host 100 work\n"
                                                      "tensor k host 8 work\n"
                                                      "task decide host.feed 5 writes=k\n"
                                                      "copy out h x reads=k[4:8]\n");
    expect_number("start of task 1", simulation->moments[1].start, 5);
    end_simulation(simulation);
}

static void expect_copies(const char *machine, const char *copies, size_t n, const double (*span)[2])
{
    char *text = lasting("%stensor go host 1 work keep\ntask start host.cpu 0 writes=go,h0,h1\n%s"
                         "task end host.cpu 1 reads=go,%s\n",
                         machine, copies, n >= 2 ? "p,q writes=p,q" : "p writes=p");
    struct simulation *simulation = simulate_text(text);
    for (size_t i = 0; i < n; i++)
        expect_span(simulation, 1 + i, span[i][0], span[i][1]);
    end_simulation(simulation);
}

#define HELD "tensor h0 host 100 work keep\ntensor h1 host 100 work keep\n"

TEST(links_are_shared)
{
    const char *tensors = HELD "tensor p a 100 work keep\ntensor q b 100 work keep\n";
    const char *copies = "copy c p h0\ncopy d q h1\n";
    char *shared = lasting(A_AND_B "link a,b up 100\n%s", tensors);
    char *own = lasting(A_AND_B "link a up 100\nlink b up 50\n%s", tensors);
    char *late = lasting(A_AND_B "link a,b up 100 0.5\n%s", tensors);
    char *queues = lasting(A_AND_B "link a,b up 100 queue=40\n%s", tensors);
    char *free_link = lasting(A_AND_B "link a up 100\n%s", tensors);
    expect_copies(shared, copies, 2, (double[][2]){{0, 2}, {0, 2}});
    expect_copies(own, copies, 2, (double[][2]){{0, 1}, {0, 2}});
    expect_copies(late, copies, 2, (double[][2]){{0, 2.5}, {0, 2.5}});   /* latencies run side by side */
    expect_copies(queues, copies, 2, (double[][2]){{0, 2.5}, {0, 2.5}}); /* neither takes more than 40 */
    expect_copies(free_link, copies, 2, (double[][2]){{0, 1}, {0, 0}});
}

/* c is on the link from 1 to 2.5 and d, whose latency begins at 0.5, from 1.5 to 3: half of both goes at half speed. */
TEST(a_latency_is_outside_the_shared_part)
{
    expect_copies(A_AND_B "link a,b up 100 1\n" HELD "tensor p a 100 work keep\ntensor q b 100 work keep\n",
                  "copy c p h0\ntask wait b.compute 0.5 writes=q\ncopy d q h1\n", 3,
                  (double[][2]){{0, 2.5}, {0, 0.5}, {0.5, 3}});
}

/* A copy that was measured to take less than its link's latency takes what was measured. */
TEST(a_measured_time_may_be_below_the_latency)
{
    expect_copies(A_AND_B "link a up 100 1\n" HELD "tensor p a 100 work keep\n", "copy c p h0 time=0.25\n", 1,
                  (double[][2]){{0, 0.25}});
}

/* Nothing runs in the other steps, so twelve of them may be open at once. */
TEST(what_runs_seldom_lets_many_steps_be_open)
{
    struct simulation *simulation = simulate_text(GPU "tensor x gpu 100 work\ntask f gpu.upload 5 every=3 writes=x\n");
    expect_number("period", simulation->period, 5. / 3);
    end_simulation(simulation);
}

/* Two lanes of a device on its one link: n copy queues gain no bandwidth, unless one queue cannot fill the link. */
TEST(further_lanes_gain_only_where_one_cannot_fill_the_link)
{
    const char *tensors = HELD "lane gpu.upload1\ntensor p gpu 100 work keep\ntensor q gpu 100 work keep\n";
    const char *one = "copy c p h0\ncopy d q h1\n", *two = "copy c p h0\ncopy d q h1 lane=gpu.upload1\n";
    char *wide = lasting(GPU "link gpu up 100\n%s", tensors);
    char *narrow = lasting(GPU "link gpu up 100 queue=50\n%s", tensors);
    expect_copies(wide, one, 2, (double[][2]){{0, 1}, {1, 2}});
    expect_copies(wide, two, 2, (double[][2]){{0, 2}, {0, 2}});
    expect_copies(narrow, one, 2, (double[][2]){{0, 2}, {2, 4}});
    expect_copies(narrow, two, 2, (double[][2]){{0, 2}, {0, 2}});
}

/* Where memory has room for all tensors no task waits for bytes: f and slow take 1 + 5, and g runs beside them.  Where
 * it has not, or with `share`, g, which writes b, waits for `slow`, which reads a: 1 + 5 + 1. */
TEST(bytes_are_shared_where_memory_is_scarce)
{
    static const char tasks[] = "tensor a gpu 40 work\ntensor b gpu 40 work\ntask f gpu.compute 1 writes=a\n"
                                "task slow gpu.upload 5 reads=a\ntask g gpu.compute 1 writes=b\n";
    static const struct {
        const char *device;
        double period;
    } cases[] = {{"device gpu memory=80", 6}, {"device gpu memory=79", 7}, {"device gpu memory=80 share", 7}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = lasting("%s\n%s", cases[i].device, tasks);
        struct simulation *simulation = simulate_text(text);
        expect_number("period", simulation->period, cases[i].period);
        assert_int_equal(simulation->list->extra.peak_total[0], 40);
        end_simulation(simulation);
    }
}

/* Such a copy is on the sender's down link and the receiver's up link.  It takes both latencies, and moves its bytes at
 * the smaller of its two shares: the first one takes 0.5 + 0.25 + 100/50 s. */
TEST(a_copy_between_devices_takes_both_links)
{
    const char *tensors = HELD "tensor x a 100 work keep\ntensor p b 100 work keep\ntensor q b 100 work keep\n";
    char *text = lasting(A_AND_B "link a down 100 0.5\nlink b up 50 0.25\n%s", tensors);
    expect_copies(text, "copy c p x\n", 1, (double[][2]){{0, 2.75}});
    text = lasting(A_AND_B "link a down 100\nlink b up 100\n%s", tensors); /* b's up link is shared with an upload */
    expect_copies(text, "copy c p x\ncopy d q h0\n", 2, (double[][2]){{0, 2}, {0, 2}});
    text = lasting(A_AND_B "link a up 1\n%s", tensors); /* other directions than the copy's */
    expect_copies(text, "copy c p x\n", 1, (double[][2]){{0, 0}});
}

TEST(copies_to_the_disk_take_its_time)
{
    expect_copies("disk 200 1\n" HELD "tensor p host 100 work keep\ntensor q host 100 work keep\n",
                  "copy c p h0 lane=host.disk\ncopy d q h1 lane=host.cpu\n", 2, (double[][2]){{0, 1.5}, {0, 0}});
}

/* ---- the host and the steps -------------------------------------------------------------------------------------- */

/* The host takes a second for each of three short tasks. */
TEST(the_host_issues_in_list_order)
{
    struct simulation *simulation =
        simulate_text("device host memory=1G issue=1\ndevice gpu memory=1G\n"
                      "task a gpu.compute 0.1\ntask b gpu.compute 0.1\ntask c gpu.compute 0.1\n");
    expect_number("period", simulation->period, 3);
    end_simulation(simulation);
}

/* All compute lanes of a device count: the fast one is at most two steps ahead of the slow one. */
TEST(a_step_waits_for_all_compute_lanes)
{
    struct simulation *simulation = simulate_text("device gpu memory=1G\nlane gpu.compute1\n"
                                                  "task fast gpu.compute 1\ntask slow gpu.compute1 10\n");
    expect_number("third start", simulation->moments[2 * 2].start,
                  10); /* when the slow lane has ended the first step */
    end_simulation(simulation);
}

/* ---- the period -------------------------------------------------------------------------------------------------- */

static int least_common_multiple(int a, int b)
{
    int multiple = a;
    while (multiple % b != 0)
        multiple += a;
    return multiple;
}

TEST(tasks_of_some_steps_count_by_their_share)
{
    const char *text = GPU "tensor x gpu 4 work keep\n"
                           "task work gpu.compute 2 reads=x writes=x\n"
                           "task save gpu.compute 3 every=%d reads=x\n"
                           "task show gpu.compute 5 every=%d reads=x\n";
    for (int a = 1; a <= 4; a++)
        for (int b = 1; b <= 3; b++) {
            char *list = lasting(text, a, b);
            expect_period(list, 2 + 3.0 / a + 5.0 / b, least_common_multiple(a, b));
        }
    struct simulation *simulation =
        simulate_text("task a host.cpu 1\ntask b host.cpu 1 every=2\n"); /* b: in steps 2, 4, ... */
    assert_true(simulation->moments[1].skipped);
    expect_number("seconds of task 3", simulation->moments[3].end - simulation->moments[3].start, 1);
    end_simulation(simulation);
}

/* A write in every second step costs no time, as long as it ends before the next write. */
TEST(the_period_is_a_mean_where_steps_take_turns)
{
    static const double write[] = {2, 4, 5}, period[] = {2, 2, 2.5};
    for (size_t i = 0; i < COUNT(write); i++) {
        char *text = lasting(GPU "tensor x gpu 4 work\ntensor h host 4 work\n"
                                 "task work gpu.compute 2 writes=x\n"
                                 "copy out h x every=2\n"
                                 "task write host.disk %g every=2 reads=h\n",
                             write[i]);
        expect_period(text, period[i], 2);
    }
}

/* Step 3 is step 2 five seconds later, and yet step 4 is not: it waits for the end of step 2, whose tail `late`,
 * `early`, `next`, `last` did not come after step 1.  Steps begin three at a time, 18 s apart.  (`idle` and `more`
 * keep `make` and `last` from waiting for readers of what they write.) */
TEST(one_step_alike_is_not_enough)
{
    expect_period("device gpu memory=1K\ntensor s host 4 work keep\ntensor a host 4 work keep\n"
                  "tensor q host 4 work keep\ntensor b host 4 work keep\n"
                  "task idle host.cpu 4.5\n"
                  "task make host.cpu 0.5 writes=s\n"
                  "task early host.feed 1 reads=q writes=a\n"
                  "task late host.disk 4 reads=s writes=q\n"
                  "task next host.report 4 reads=a writes=b\n"
                  "task last gpu.compute 0.5 reads=b\n"
                  "task more gpu.compute 3.5\n",
                  6, 3);
}

TEST(steps_are_run_until_they_repeat)
{
    struct simulation *simulation = simulate_text("task a host.cpu 1\n");
    assert_at_most(simulation->steps, MOST_IN_FLIGHT + 1);
    assert_int_equal(simulation->first + simulation->pattern, simulation->steps);
    end_simulation(simulation);
    simulation = simulate_text("task a host.cpu 1\ntask b host.cpu 2 every=7\ntask c host.cpu 4 every=11\n");
    expect_number("period", simulation->period, 1 + 2.0 / 7 + 4.0 / 11);
    assert_int_equal(simulation->pattern, 77); /* 7 x 11 */
    assert_above(simulation->steps, 77);
    assert_true(simulation->settled);
    end_simulation(simulation);
    simulation = simulate_text("task a host.cpu 1\ntask b host.cpu 1 every=997\ntask c host.cpu 1 every=991\n");
    assert_false(simulation->settled);
    assert_at_least(simulation->period, 1);
    assert_below(simulation->period, 1.01); /* 988,027 steps are not run */
    end_simulation(simulation);
}

/* ---- the examples ------------------------------------------------------------------------------------------------ */

TEST(shipped_lists_have_their_periods)
{
    static const struct {
        const char *name;
        bool clip;
        double period;
    } shipped[] = {{"chain", true, 0.022},
                   {"1f1b", true, 0.054},
                   {"recompute", true, 0.014},
                   {"pipelines", true, 0.066},
                   {"swap", true, 0.038},
                   {"overlap-pays", false, 0.0145},
                   {"overlap-pays", true, 0.0185},
                   {"overlap-does-not-pay", false, 0.023},
                   {"clip", false, 0.014},
                   {"clip", true, 0.014},
                   {"broadcast", true, 0.009},
                   {"broadcast-queues", true, 0.011},
                   {"broadcast-one-link", true, 0.00708},
                   {"snapshot", false, 0.008},
                   {"overlap", true, 0.018},
                   {"overlap", false, 0.018}};
    for (size_t i = 0; i < COUNT(shipped); i++) {
        char *path = lasting("data/steps/%s.txt", shipped[i].name);
        struct list *list = read_list(path);
        if (shipped[i].clip)
            gate_updates(list);
        struct values *values = hash_values(list);
        finish_list(list);
        struct problem *problem = verify_devices(list);
        if (!problem)
            problem = verify_list(list, values);
        if (problem)
            test_failed("%s: %s\n", path, problem->sentence);
        struct simulation *simulation = must_simulate(list, NULL);
        if (fabs(simulation->period - shipped[i].period) > 1e-9)
            test_failed("%s: %g s, its comment says %g\n", path, simulation->period, shipped[i].period);
        free_values(values);
        end_simulation(simulation);
    }
}
