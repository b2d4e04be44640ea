/* test_steps.c - step files: what they may and may not say, the times that follow from them, and writing them.  No
 * OpenCL device is opened here: mistakes are made in forked children.
 */
#include "tests/support/support_paper.h"
#include "tools/lists/lists.h"

#include <math.h>

/* ---- reading and simulating ------------------------------------------------------------------------------------- */

static struct step *read_text_list(const char *text)
{
    struct step *s = list_of("%s", text);
    finish_list(s);
    char *wrong = verify(s, NULL);
    if (wrong)
        test_failed("the list is wrong: %s\n", wrong);
    return s;
}

static struct simulation *simulate_text(const char *text) { return must_simulate(read_text_list(text), NULL); }

static void end_simulation(struct simulation *sim)
{
    struct step *s = (struct step *)sim->step;
    free_simulation(sim);
    free_list(s);
}

/* Task i in the first step of the steady pattern, its times counted from the end of the step before. */
static void expect_span(const struct simulation *sim, size_t i, double start, double end)
{
    size_t n = sim->step->n;
    double from = 0;
    for (size_t k = 0; k < n; k++)
        from = fmax(from, sim->moments[(size_t)(sim->first - 1) * n + k].end);
    const struct moment *m = &sim->moments[(size_t)sim->first * n + i];
    if (fabs(m->start - from - start) > 1e-9 || fabs(m->end - from - end) > 1e-9)
        test_failed("task %s: simulated [%g, %g], by hand [%g, %g]\n", sim->step->task[i]->name, m->start - from,
                    m->end - from, start, end);
}

static void expect_period(const char *text, double period, int pattern)
{
    struct simulation *sim = simulate_text(text);
    expect_number("period", sim->period, period);
    assert_int_equal(sim->pattern, pattern);
    assert_true(sim->settled);
    end_simulation(sim);
}

#define GPU "device gpu memory=1000\n"
#define TWO "device a memory=1000\ndevice b memory=1000\n"

static void expect_machine_as_written(const struct machine *m)
{
    const struct device *d = &m->device[0], *host = m->host;
    const struct link *up = d->described.link[LINK_UP];
    assert_string_equal(d->id, "server.0");
    assert_int_equal(d->budget, 2048);
    assert_int_equal(d->alignment, 512);
    assert_int_equal(host->budget, 1 << 30);
    assert_int_equal(host->alignment, 64);
    expect_number("rate of the link", up->rate, 1e3);
    expect_number("latency of the link", up->latency, 2e-3);
    assert_int_equal(up->max_lanes, 4);
    expect_number("rate of a queue", up->queue_rate, 250);
    assert_false(d->described.link[LINK_DOWN]);
    expect_number("rate of the disk", host->described.disk->rate, 5e8);
}

TEST(every_word_is_kept)
{
    struct step *s = read_text_list("# a comment\n"
                                    "device server.0 memory=2K align=512   # another\n"
                                    "device host memory=1G align=64\n"
                                    "lane server.0.download2\n"
                                    "link server.0 up 1e3 2ms queues=4 queue=250\n"
                                    "disk 5e8 1us\n"
                                    "tensor w server.0 64 parameters\n"
                                    "tensor x server.0 64 work keep\n"
                                    "tensor h host 64 optimizer\n"
                                    "task t server.0.compute 1500us layer=2 micro=1 role=backward cpu=3ms every=4 "
                                    "reads=w[0:16],x writes=x[32:64],w\n"
                                    "copy c h[1:3] x[5:7] lane=server.0.download2 role=send\n"
                                    "task f host.feed 0 role=feed\n"
                                    "copy b h[1:3] x[5:7] msg=7 role=broadcast\n");
    const struct machine *m = s->pool->machine;
    const struct task *t = s->task[0], *c = s->task[1];
    expect_machine_as_written(m);
    expect_number("seconds", t->seconds, 1.5e-3);
    expect_number("seconds on the host", t->on_host.seconds, 3e-3);
    assert_int_equal(t->when.every, 4);
    assert_int_equal(t->layer, 2);
    assert_int_equal(t->micro, 1);
    assert_int_equal(t->role, ROLE_BACKWARD);
    assert_int_equal(t->n_access, 4);
    assert_int_equal(t->access[0].tensor->bytes, 16);
    assert_int_equal(t->access[2].tensor->offset, 32);
    assert_true(t->access[0].tensor->storage == s->pool->tensors[0]);
    assert_true(is_copy(c));
    assert_true(c->lane == lane_of(&m->device[0], LANE_DOWNLOAD, 2));
    assert_int_equal(c->role, ROLE_SEND);
    assert_int_equal(c->access[0].tensor->offset, 1);
    assert_int_equal(c->access[1].tensor->offset, 5);
    assert_true(s->task[2]->lane == m->host->lane[LANE_FEED]);
    assert_int_equal(s->task[2]->role, ROLE_FEED);
    assert_true(s->pool->tensors[1]->persistent);
    assert_true(s->pool->tensors[2]->persistent);
    assert_int_equal(c->message, 0);
    assert_int_equal(s->task[3]->message, 7);
    assert_int_equal(s->last_message, 7);
    free_list(s);
}

/* A copy waits for the latency, and then its bytes go: 2 + 100 / 50. */
TEST(a_copy_by_hand)
{
    struct simulation *sim = simulate_text(GPU "link gpu down 50 2\n"
                                               "tensor x gpu 100 work\ntensor h host 100 work\n"
                                               "task make gpu.compute 1 writes=x\n"
                                               "copy out h x\n"
                                               "task use host.cpu 3 reads=h writes=h\n");
    expect_span(sim, 0, -3, -2); /* as soon as x has been copied */
    expect_span(sim, 1, 0, 4);   /* h is free when it has been used */
    expect_span(sim, 2, 4, 7);
    end_simulation(sim);
}

/* It may also read a word that says whether the copy is needed. */
TEST(a_copy_waits_for_all_it_reads)
{
    struct simulation *sim = simulate_text(GPU "tensor x gpu 100 work keep\ntensor h host 100 work\n"
                                               "tensor k host 8 work\n"
                                               "task decide host.feed 5 writes=k\n"
                                               "copy out h x reads=k[4:8]\n");
    expect_number("start of task 1", sim->moments[1].start, 5);
    end_simulation(sim);
}

static void expect_copies(const char *machine, const char *copies, size_t n, const double (*span)[2])
{
    char *text = lasting("%stensor go host 1 work keep\ntask start host.cpu 0 writes=go,h0,h1\n%s"
                         "task end host.cpu 1 reads=go,%s\n",
                         machine, copies, n >= 2 ? "p,q writes=p,q" : "p writes=p");
    struct simulation *sim = simulate_text(text);
    for (size_t i = 0; i < n; i++)
        expect_span(sim, 1 + i, span[i][0], span[i][1]);
    end_simulation(sim);
}

#define HELD "tensor h0 host 100 work keep\ntensor h1 host 100 work keep\n"

TEST(links_are_shared)
{
    const char *tensors = HELD "tensor p a 100 work keep\ntensor q b 100 work keep\n";
    const char *copies = "copy c p h0\ncopy d q h1\n";
    char *shared = lasting(TWO "link a,b up 100\n%s", tensors);
    char *own = lasting(TWO "link a up 100\nlink b up 50\n%s", tensors);
    char *late = lasting(TWO "link a,b up 100 0.5\n%s", tensors);
    char *queues = lasting(TWO "link a,b up 100 queue=40\n%s", tensors);
    char *free_link = lasting(TWO "link a up 100\n%s", tensors);
    expect_copies(shared, copies, 2, (double[][2]){{0, 2}, {0, 2}});
    expect_copies(own, copies, 2, (double[][2]){{0, 1}, {0, 2}});
    expect_copies(late, copies, 2, (double[][2]){{0, 2.5}, {0, 2.5}});   /* latencies run side by side */
    expect_copies(queues, copies, 2, (double[][2]){{0, 2.5}, {0, 2.5}}); /* neither takes more than 40 */
    expect_copies(free_link, copies, 2, (double[][2]){{0, 1}, {0, 0}});
}

/* c is on the link from 1 to 2.5 and d, whose latency begins at 0.5, from 1.5 to 3: half of both goes at half speed. */
TEST(a_latency_is_outside_the_shared_part)
{
    expect_copies(TWO "link a,b up 100 1\n" HELD "tensor p a 100 work keep\ntensor q b 100 work keep\n",
                  "copy c p h0\ntask wait b.compute 0.5 writes=q\ncopy d q h1\n", 3,
                  (double[][2]){{0, 2.5}, {0, 0.5}, {0.5, 3}});
}

/* A copy that was measured to take less than its link's latency takes what was measured. */
TEST(a_time_below_the_latency)
{
    expect_copies(TWO "link a up 100 1\n" HELD "tensor p a 100 work keep\n", "copy c p h0 time=0.25\n", 1,
                  (double[][2]){{0, 0.25}});
}

/* Nothing runs in the other steps, so twelve of them may be open at once. */
TEST(what_runs_seldom)
{
    struct simulation *sim = simulate_text(GPU "tensor x gpu 100 work\ntask f gpu.upload 5 every=3 writes=x\n");
    expect_number("period", sim->period, 5. / 3);
    end_simulation(sim);
}

/* Two lanes of a device on its one link: n copy queues gain no bandwidth, unless one queue cannot fill the link. */
TEST(further_lanes)
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
        struct simulation *sim = simulate_text(text);
        expect_number("period", sim->period, cases[i].period);
        assert_int_equal(sim->step->peak_total[0], 40);
        end_simulation(sim);
    }
}

/* On the sender's down and the receiver's up link, at the smaller share; both latencies. */
TEST(between_devices)
{
    const char *tensors = HELD "tensor x a 100 work keep\ntensor p b 100 work keep\ntensor q b 100 work keep\n";
    char *text = lasting(TWO "link a down 100 0.5\nlink b up 50 0.25\n%s", tensors);
    expect_copies(text, "copy c p x\n", 1, (double[][2]){{0, 2.75}});
    text = lasting(TWO "link a down 100\nlink b up 100\n%s", tensors); /* b's up link is shared with an upload */
    expect_copies(text, "copy c p x\ncopy d q h0\n", 2, (double[][2]){{0, 2}, {0, 2}});
    text = lasting(TWO "link a up 1\n%s", tensors); /* other directions than the copy's */
    expect_copies(text, "copy c p x\n", 1, (double[][2]){{0, 0}});
}

TEST(the_disk)
{
    expect_copies("disk 200 1\n" HELD "tensor p host 100 work keep\ntensor q host 100 work keep\n",
                  "copy c p h0 lane=host.disk\ncopy d q h1 lane=host.cpu\n", 2, (double[][2]){{0, 1.5}, {0, 0}});
}

/* ---- the period -------------------------------------------------------------------------------------------------- */

static int least_common_multiple(int a, int b)
{
    int multiple = a;
    while (multiple % b != 0)
        multiple += a;
    return multiple;
}

TEST(conditional_tasks)
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
    struct simulation *sim = simulate_text("task a host.cpu 1\ntask b host.cpu 1 every=2\n"); /* in 2, 4, ... */
    assert_true(sim->moments[1].skipped);
    expect_number("seconds of task 3", sim->moments[3].end - sim->moments[3].start, 1);
    end_simulation(sim);
}

/* A write in every second step costs no time, as long as it ends before the next write. */
TEST(a_pattern_longer_than_a_step)
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
    struct simulation *sim = simulate_text("task a host.cpu 1\n");
    assert_true(sim->steps <= MOST_RUNS + 1);
    assert_int_equal(sim->first + sim->pattern, sim->steps);
    end_simulation(sim);
    sim = simulate_text("task a host.cpu 1\ntask b host.cpu 2 every=7\ntask c host.cpu 4 every=11\n");
    expect_number("period", sim->period, 1 + 2.0 / 7 + 4.0 / 11);
    assert_int_equal(sim->pattern, 77); /* 7 x 11 */
    assert_true(sim->steps > 77);
    assert_true(sim->settled);
    end_simulation(sim);
    sim = simulate_text("task a host.cpu 1\ntask b host.cpu 1 every=997\ntask c host.cpu 1 every=991\n");
    assert_true(!sim->settled);
    assert_true(sim->period >= 1);
    assert_true(sim->period < 1.01); /* 988,027 steps are not run */
    end_simulation(sim);
}

/* ---- the examples ------------------------------------------------------------------------------------------------ */

TEST(the_shipped_lists)
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
        struct step *s = read_list(path);
        if (shipped[i].clip)
            gate_updates(s);
        struct values *values = number_values(s);
        finish_list(s);
        char *devices = verify_devices(s), *wrong = devices ? devices : verify(s, values);
        if (wrong)
            test_failed("%s: %s\n", path, wrong);
        struct simulation *sim = must_simulate(s, NULL);
        if (fabs(sim->period - shipped[i].period) > 1e-9)
            test_failed("%s: %g s, its comment says %g\n", path, sim->period, shipped[i].period);
        free_values(values);
        end_simulation(sim);
    }
}

/* What is placed is within the budget to the byte, or refused. */
static void expect_within(struct step *s, size_t budget, size_t enough)
{
    struct device *d = &s->pool->machine->device[0];
    d->budget = budget;
    struct problem *wrong = place(s->pool, &s, 1, PLACE_TO_CHECK);
    if (wrong ? budget >= enough : d->placed_bytes > budget)
        test_failed("%zu bytes are enough; of %zu, %zu are taken: %s\n", enough, budget, d->placed_bytes,
                    wrong ? wrong->sentence : "accepted");
    free(wrong);
}

TEST(no_byte_above_the_budget)
{
    static const char *const lists[] = {"1f1b", "chain", "overlap", "pipelines", "recompute", "swap"};
    for (size_t i = 0; i < COUNT(lists); i++) {
        char *path = lasting("data/steps/%s.txt", lists[i]);
        struct step *s = read_list(path);
        must(place(s->pool, &s, 1, PLACE_TO_CHECK));
        size_t enough = s->pool->machine->device[0].placed_bytes;
        for (size_t less = 0; less < 3; less++)
            expect_within(s, enough - less, enough);
        expect_within(s, enough / 2, enough);
        free_list(s);
    }
}

/* However small a budget is, the sentence says what the whole list holds, and not only what lay there when the first
 * tensor found no room. */
TEST(what_is_needed_is_that_of_the_whole_list)
{
    char bytes[32];
    struct step *s = read_list("data/steps/swap.txt");
    must(place(s->pool, &s, 1, PLACE_TO_CHECK));
    struct device *d = &s->pool->machine->device[0];
    const size_t held = s->peak_total[0];
    const char *need = lasting("at least %s are needed", format_bytes(bytes, (double)held));
    for (size_t part = 2; part <= 16; part *= 2) {
        d->budget = held / part;
        struct problem *wrong = place(s->pool, &s, 1, PLACE_TO_CHECK);
        assert_non_null(wrong);
        if (!strstr(wrong->sentence, need))
            test_failed("a budget of a part in %zu: %s; expected %s\n", part, wrong->sentence, need);
        free(wrong);
    }
    free_list(s);
}

/* What is to be raised is what the budget comes from: a limit of the process only where nobody has set a smaller
 * budget. */
TEST(the_option_that_would_make_room_is_named)
{
    struct step *s = read_list("data/steps/swap.txt");
    must(place(s->pool, &s, 1, PLACE_TO_CHECK));
    struct device *d = &s->pool->machine->device[0];
    const size_t half = d->placed_bytes / 2;
    for (int limited = 0; limited < 2; limited++)
        for (int set = 0; set < 2; set++) {
            const char *option = limited && !set ? "or limit" : "or --device-mem";
            d->limited = limited;
            d->budget = half;
            d->memory = set ? 4 * half : half;
            struct problem *wrong = place(s->pool, &s, 1, PLACE_TO_CHECK);
            assert_non_null(wrong);
            expect_text(wrong->sentence, option);
            free(wrong);
        }
    free_list(s);
}

/* n forwards that each leave a tensor, of this many sizes in turn, and n backwards that read them in reverse. */
static char *nested_lives(int n, int sizes)
{
    char *text = NULL;
    FILE *f = fopen(temp_path("nested.txt"), "w");
    assert_non_null(f);
    fprintf(f, "device gpu memory=1G share\n");
    for (int i = 0; i < n; i++)
        fprintf(f, "tensor a%d gpu %d activations\n", i, 1000 + i * 7919 % sizes);
    for (int i = 0; i < n; i++)
        fprintf(f, "task f gpu.compute 1us role=forward writes=a%d\n", i);
    for (int i = n; i-- > 0;)
        fprintf(f, "task b gpu.compute 1us role=backward reads=a%d\n", i);
    assert_int_equal(fclose(f), 0);
    text = read_text(temp_path("nested.txt"));
    return text;
}

/* Giving addresses takes little more than four times the work for four times the tensors, whatever their sizes.  (It is
 * counted: the time says what else the machine does.)  Looking at all lives that are there took 100 times the work. */
TEST(long_lists_of_nested_lives)
{
    static const int sizes[] = {1, 9000};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        double looks[2];
        for (int round = 0; round < 2; round++) {
            int n = 4000 << 2 * round;
            char *text = nested_lives(n, sizes[k]);
            struct step *s = list_of("%s", text);
            must(place(s->pool, &s, 1, PLACE_TO_CHECK));
            looks[round] = (double)s->pool->looks;
            size_t bytes = 0;
            for (size_t i = 0; i < s->pool->n; i++)
                bytes += s->pool->tensors[i]->bytes;
            assert_int_equal(s->pool->machine->device[0].placed_bytes, bytes); /* all live at once, without a hole */
            free_list(s);
            free(text);
        }
        if (looks[1] > 6 * looks[0] || looks[1] > 4000.0 * 16000)
            test_failed("%d sizes: %g looks for 4000 tensors, %g for 16000\n", sizes[k], looks[0], looks[1]);
    }
}

/* ---- clipping ---------------------------------------------------------------------------------------------------- */

#define TWO_LAYERS                                                                                                     \
    GPU "tensor w gpu 4 parameters\ntensor v gpu 4 parameters\ntensor g gpu 4 gradients\ntensor f gpu 4 gradients\n"   \
        "task back gpu.compute 2 role=backward reads=w writes=g\n"                                                     \
        "task adam host.cpu 1 role=update reads=g,w writes=w\n"                                                        \
        "task tell host.report 1 reads=w\n"                                                                            \
        "task back gpu.compute 3 role=backward reads=v writes=f\n"                                                     \
        "task adam host.cpu 1 role=update reads=f,v writes=v\n"

static struct step *gated_list(const char *text)
{
    struct step *s = list_of("%s", text);
    gate_updates(s);
    struct values *values = number_values(s);
    finish_list(s);
    char *wrong = verify(s, values);
    if (wrong)
        test_failed("the list is wrong: %s\n", wrong);
    free_values(values);
    return s;
}

static void expect_order(const struct step *s, const char *names)
{
    char *found = copy_string("");
    for (size_t i = 0; i < s->n; i++) {
        char *longer = format_string("%s%s%s", found, i ? " " : "", s->task[i]->name);
        free(found);
        found = longer;
    }
    assert_string_equal(found, names);
    free(found);
}

/* By hand: backwards 0-5, then both updates; the second runs beside the next step's first backward. */
TEST(updates_wait_for_the_last_backward)
{
    struct step *s = gated_list(TWO_LAYERS);
    struct simulation *sim = must_simulate(s, NULL);
    expect_order(s, "back back adam tell adam");
    expect_number("period", sim->period, 6);
    expect_number("first update", sim->moments[2].start, 5);
    end_simulation(sim);
    s = gated_list(TWO_LAYERS "task norm host.disk 0.5 role=norm\ntask late host.cpu 1 role=update\n");
    sim = must_simulate(s, NULL);
    expect_order(s, "back back norm adam tell adam late");   /* the norm takes the backwards' place */
    expect_number("first update", sim->moments[3].start, 2); /* when g is there; the norm reads nothing, starts at 0 */
    end_simulation(sim);
}

/* The second norm runs in every other step only; in the others the first one holds the update. */
TEST(a_gate_that_is_skipped_hides_no_other)
{
    struct step *s = gated_list(GPU "task norm gpu.compute 3 role=norm\ntask norm gpu.compute 1 every=2 role=norm\n"
                                    "task adam host.cpu 1 role=update\ntask adam host.cpu 1 role=update\n");
    struct simulation *sim = must_simulate(s, NULL);
    expect_number("update without the second norm", sim->moments[2].start, 3);
    expect_number("update after the second norm", sim->moments[4 + 2].start, 3 + 3 + 1);
    end_simulation(sim);
}

static void gate_list(void *text) { gated_list(text); }

TEST(gradients_may_not_follow_from_updates)
{
    expect_refusal(gate_list,
                   GPU "tensor w gpu 4 parameters\n"
                       "task adam gpu.compute 1 role=update reads=w writes=w\n"
                       "task back gpu.compute 1 role=backward reads=w\n",
                   EXIT_USAGE, "task 1 back is of role backward and follows from an update, which --clip holds");
}

TEST(who_reads_the_norm_is_not_gated)
{
    struct step *s = gated_list(GPU "tensor w gpu 4 parameters\ntensor n gpu 4 work\ntensor m gpu 4 work\n"
                                    "task norm gpu.compute 2 role=norm writes=n\n"
                                    "task pass host.cpu 1 reads=n writes=m\n"
                                    "task adam host.cpu 1 role=update reads=m,w writes=w\n"
                                    "task norm gpu.download 9 role=norm reads=n\n");
    expect_order(s, "norm pass adam norm");
    assert_int_equal(s->task[2]->gate, GATE_NONE);
    free_list(s);
}

TEST(verify_sees_an_update_that_is_not_gated)
{
    struct step *s = gated_list(TWO_LAYERS);
    struct task *adam = s->task[2];
    size_t dropped = 0;
    for (size_t e = 0; e < adam->n_edges; e++)
        if (adam->edges[e].producer == 1 && !adam->edges[e].previous) {
            assert_true(adam->edges[e].wait);
            adam->edges[e].wait = false;
            dropped++;
        }
    assert_int_equal(dropped, 1);
    expect_wrong("the list", verify(s, NULL), "task 2 adam, an update, may start before task 0 back has ended");
    free_list(s);
}

/* The host takes a second for each of three short tasks. */
TEST(the_host_issues_in_list_order)
{
    struct simulation *sim = simulate_text("device host memory=1G issue=1\ndevice gpu memory=1G\n"
                                           "task a gpu.compute 0.1\ntask b gpu.compute 0.1\ntask c gpu.compute 0.1\n");
    expect_number("period", sim->period, 3);
    end_simulation(sim);
}

/* All compute lanes of a device count: the fast one is at most two steps ahead of the slow one. */
TEST(a_step_waits_for_all_compute_lanes)
{
    struct simulation *sim = simulate_text("device gpu memory=1G\nlane gpu.compute1\n"
                                           "task fast gpu.compute 1\ntask slow gpu.compute1 10\n");
    expect_number("third start", sim->moments[2 * 2].start, 10); /* when the slow lane has ended the first step */
    end_simulation(sim);
}

/* b may be skipped, decided late: c waits for a by itself. */
TEST(verify_sees_who_wrote_before_a_task_that_may_be_skipped)
{
    const char *text = GPU "tensor x gpu 4 work keep\ntask a gpu.upload 1 writes=x\ntask b gpu.download 1 writes=x\n"
                           "task c gpu.compute 1 reads=x\n";
    struct step *s = list_of("%s", text);
    struct task *c = s->task[2];
    s->task[1]->member.needed = true;
    finish_list(s);
    expect_sound("the list", s, NULL);
    for (size_t e = 0; e < c->n_edges; e++)
        c->edges[e].wait &= c->edges[e].producer != 0;
    expect_wrong("the list", verify(s, NULL), "task 0 a and task 2 c touch the same bytes and nothing orders them");
    free_list(s);
}

/* Iterations have members of a ring of their own, so nothing leads from one to the next.  In exchange an iteration may
 * touch its member only while it has it. */
TEST(verify_sees_what_touches_a_ring_too_late)
{
    static const char *const lists[] = {
        "task copy gpu.download 1 reads=x writes=b\ntask persist host.disk 1 reads=b\ntask commit host.disk 1\n",
        "task copy gpu.download 1 reads=x writes=b\ntask persist host.cpu 1 reads=b\ntask commit host.disk 1\n",
        "task copy gpu.download 1 reads=x writes=b\ntask look host.cpu 1 reads=b\n"
        "task persist host.disk 1 reads=b\ntask commit host.disk 1\n",
        "task copy gpu.download 1 reads=x writes=b\ntask commit host.disk 1\ntask persist host.disk 1 reads=b\n"};
    static const char *const wrong[] = {
        NULL, "task 0 copy touches ring b, and may run when its iteration has returned its member of it",
        "task 1 look touches ring b, and may run when its iteration has no member of it",
        "task 0 copy touches ring b, and may run when its iteration has returned its member of it"};
    for (int k = 0; k < 4; k++) {
        struct step *s = list_of(GPU "tensor x gpu 4 work keep\ntensor b host 4 work keep\n%s", lists[k]);
        for (size_t i = 0; i < s->n; i++) {
            struct task *t = s->task[i];
            t->member.needed = strcmp(t->name, "look") != 0;
            t->member.returned = strcmp(t->name, "commit") == 0;
            for (int a = 0; a < t->n_access; a++)
                if (t->access[a].tensor->device->is_host)
                    t->access[a].tensor->storage->ring = &s->pool->ring;
        }
        finish_list(s);
        for (size_t e = 0; e < s->n_edges; e++)
            assert_false(s->edges[e].previous);
        if (wrong[k])
            expect_wrong("the list", verify(s, NULL), wrong[k]);
        else
            expect_sound("the list", s, NULL);
        free_list(s);
    }
}

/* Nothing but an edge leads from the persist to the task that ends the ring.  It counts if it is a wait within the
 * iteration, and if the persist always runs. */
TEST(verify_trusts_only_what_always_runs_to_end_a_ring)
{
    static const char *const text = GPU "tensor x gpu 4 work keep\ntensor b host 4 work keep\n"
                                        "task copy gpu.download 1 reads=x writes=b\n"
                                        "task persist host.cpu 1 reads=b\ntask commit host.disk 1\n";
    for (int k = 0; k < 4; k++) {
        struct step *s = list_of("%s", text);
        struct edge edge = {.producer = 1, .wait = k != 1, .previous = k == 2};
        for (size_t i = 0; i < s->n; i++)
            s->task[i]->member.needed = true;
        s->task[1]->condition.needs = k == 3;
        s->task[2]->member.returned = true;
        s->pool->tensors[1]->ring = &s->pool->ring;
        finish_list(s);
        s->task[2]->edges = &edge;
        s->task[2]->n_edges = 1;
        if (k == 0)
            expect_sound("the list", s, NULL);
        else
            expect_wrong("the list", verify(s, NULL),
                         "touches ring b, and may run when its iteration has returned its member of it");
        free_list(s);
    }
}

/* What an iteration reads of a ring it has written itself: another iteration's value is in another member. */
TEST(verify_sees_a_read_of_a_ring_before_its_write)
{
    struct step *s = list_of(GPU "tensor x gpu 4 work keep\ntensor b host 4 work keep\n"
                                 "task persist host.disk 1 reads=b\ntask copy gpu.download 1 reads=x writes=b\n"
                                 "task commit host.disk 1\n");
    for (size_t i = 0; i < s->n; i++)
        s->task[i]->member.needed = true;
    s->task[2]->member.returned = true;
    s->pool->tensors[1]->ring = &s->pool->ring;
    finish_list(s);
    expect_wrong("the list", verify(s, NULL), "task 0 persist reads tensor b before anything is written to it");
    free_list(s);
}

/* Members that stand in no task lie where the first one does: pinned for the device that copies it. */
TEST(members_of_a_ring_are_placed_alike)
{
    struct step *s = list_of(GPU "tensor x gpu 4 work keep\ntensor b host 4 work keep\ntensor other host 4 work keep\n"
                                 "task copy gpu.download 1 reads=x writes=b\ntask commit host.disk 1\n");
    struct tensor *b = s->pool->tensors[1], *other = s->pool->tensors[2];
    b->ring = &s->pool->ring;
    b->next_member = other;
    finish_list(s);
    assert_ptr_equal(b->copier, &s->pool->machine->device[0]);
    assert_ptr_equal(other->copier, b->copier);
    assert_ptr_equal(nth_member(b, 1), b);
    assert_ptr_equal(nth_member(b, 2), other);
    free_list(s);
}

/* Two devices with a context each, and a way from a to b in two copies, which the list has in the other order: up to b
 * goes what the step before has brought down.  The bytes, all members of the ring, are pinned for the one that copies
 * down. */
TEST(a_move_is_pinned_for_the_device_that_copies_down)
{
    struct paper p = new_paper(2, &slow_speeds);
    struct device *from = &p.machine->device[0], *to = &p.machine->device[1];
    struct tensor *a = new_bytes(&p, from, "a", 1024, true), *b = new_bytes(&p, to, "b", 1024, true);
    struct tensor *h = new_bytes(&p, p.host, "h", 1024, true), *member = new_bytes(&p, p.host, "h2", 1024, true);
    h->ring = &p.pool->ring;
    h->next_member = member;
    add_copy(p.step, to->lane[LANE_UPLOAD], "up", b, h);
    add_copy(p.step, from->lane[LANE_DOWNLOAD], "down", h, a);
    must(place(p.pool, &p.step, 1, PLACE_TO_CHECK));
    assert_ptr_equal(h->copier, from);
    assert_ptr_equal(member->copier, from);
    end_paper(&p);
}

/* The host has an arena for each context, and a byte of one is counted once: its memory is enough to the byte. */
TEST(memory_of_all_contexts_is_counted_once)
{
    struct paper p = new_paper(2, &slow_speeds);
    struct device *host = p.host;
    for (int i = 0; i < 2; i++) {
        struct device *d = &p.machine->device[i];
        add_copy(p.step, d->lane[LANE_DOWNLOAD], "down", new_bytes(&p, host, "h", 1024, true),
                 new_bytes(&p, d, "x", 1024, true));
    }
    p.machine->n_contexts = 2;
    host->uses_ram = true;
    must(place(p.pool, &p.step, 1, PLACE_TO_CHECK));
    assert_true(host->placed_bytes >= 2 * 4096);
    host->memory = host->placed_bytes;
    must(place(p.pool, &p.step, 1, PLACE_TO_CHECK));
    host->memory--;
    struct problem *wrong = place(p.pool, &p.step, 1, PLACE_TO_CHECK);
    assert_non_null(wrong);
    expect_text(wrong->sentence, "share one memory");
    free(wrong);
    end_paper(&p);
}

/* p, which no task touches, and y are in two slabs of 8 bytes each, then on the same bytes, then too much. */
TEST(verify_looks_at_memory)
{
    struct step *s = read_text_list("device gpu memory=1000 slab=8\ntensor p gpu 8 work keep\ntensor y gpu 8 work\n"
                                    "task f gpu.compute 1 writes=y\n");
    struct tensor *p = s->pool->tensors[0], *y = s->pool->tensors[1];
    assert_int_equal(p->slab, 0);
    assert_int_equal(y->slab, 1);
    assert_int_equal(p->address, y->address);
    s->pool->machine->device[0].budget = 15;
    expect_wrong("the list", verify(s, NULL), "device gpu holds 16 bytes, its budget is 15");
    y->slab = 0;
    y->address = 7;
    expect_wrong("the list", verify(s, NULL), "tensor y shares bytes with p, which is kept from step to step");
    y->address = 8;
    s->pool->machine->device[0].budget = 16;
    expect_sound("the list", s, NULL);
    free_list(s);
}

/* What lies on another device is copied; a word by which the host chooses is not. */
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
            format_string(TWO "tensor x a 8 work\ntensor y b 8 work\ntensor h host 8 work\n%s", lists[i].tasks);
        struct step *s = read_text_list(text); /* order and bytes are right */
        char *wrong = verify_devices(s);
        if (!wrong != !lists[i].wrong || (wrong && strcmp(wrong, lists[i].wrong) != 0))
            test_failed("%s: verify says %s\n", lists[i].tasks, wrong ? wrong : "nothing");
        free(wrong);
        free(text);
        free_list(s);
    }
}

/* In step 5 the reader runs and the writer does not, though both run in step 1. */
TEST(verify_looks_at_all_sets_that_run_together)
{
    const char *text = GPU "tensor x gpu 4 work\ntask w gpu.compute 1 every=3 rest=1 writes=x\n"
                           "task r gpu.compute 1 every=4 rest=1 reads=x\n";
    struct step *s = list_of("%s", text);
    finish_list(s);
    expect_wrong("the list", verify(s, NULL), "task 1 r reads tensor x before anything is written to it");
    free_list(s);
    text = GPU "tensor x gpu 4 work\ntask w gpu.compute 1 every=2 writes=x\ntask w gpu.compute 1 every=2 rest=1 "
               "writes=x\ntask r gpu.compute 1 reads=x\n";
    free_list(read_text_list(text)); /* one of the two always runs */
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static char *written(const struct step *s, const double *seconds)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    write_list(f, s, seconds);
    fclose(f);
    return text;
}

/* The file that is written of a list is simulated to the same times, and written again to the same bytes. */
static void expect_round_trip(const struct step *s, const struct simulation *sim)
{
    char *text = written(s, sim->seconds);
    struct step *again = read_text_list(text);
    struct simulation *second = must_simulate(again, NULL);
    char *twice = written(again, second->seconds);
    assert_string_equal(text, twice);
    gate_updates(again); /* a model's updates wait for its norm already: none is gated, or moves */
    for (size_t i = 0; i < again->n; i++) {
        assert_true(again->task[i]->gate != GATE_HELD);
        assert_string_equal(again->task[i]->name, s->task[i]->name);
    }
    for (size_t i = 0; i < again->n; i++)
        assert_int_equal(again->task[i]->message, s->task[i]->role == ROLE_BROADCAST ? s->task[i]->message : 0);
    depend(again, ALL_EDGES);
    assert_int_equal(again->n, s->n);
    assert_int_equal(second->steps, sim->steps);
    for (size_t i = 0; i < (size_t)sim->steps * s->n; i++)
        if (second->moments[i].start != sim->moments[i].start || second->moments[i].end != sim->moments[i].end)
            test_failed("task %zu %s: [%.17g, %.17g] from the file, [%.17g, %.17g] from the list\n", i % s->n,
                        s->task[i % s->n]->name, second->moments[i].start, second->moments[i].end,
                        sim->moments[i].start, sim->moments[i].end);
    assert_true(second->period == sim->period);
    end_simulation(second);
    free(text);
    free(twice);
}

TEST(a_models_list_and_back)
{
    for (int ranks = 1; ranks <= 4; ranks += 3) {
        struct trainer *t = plan_tiny(write_hardware("paper.txt", &plausible_speeds), ranks);
        struct simulation *sim = must_simulate(t->train, costs_of(t));
        expect_round_trip(t->train, sim);
        free_simulation(sim);
        free_trainer(t);
    }
}

/* The profile has gaps between tasks, a host that takes its time, and copies whose times were measured. */
TEST(a_profiles_list_and_back)
{
    struct trainer *t = plan_tiny(write_hardware("paper.txt", &plausible_speeds), 2);
    const char *profile = "device = d\ndriver = 1\nengine = own\nunits = 2\nvector = 8\nshape = s\n"
                          "link upload = 1e9 1e-6\nlink download = 2e9 2e-6\n"
                          "gap compute = 3e-6\ngap cpu = 1.1e-5\nissue = 2.3e-6\n"
                          "task batch.upload upload = 3000 0 800\ntask attn.qkv compute = 5000 900 4000\n";
    struct costs *c = read_costs(write_file("profile.txt", profile, strlen(profile)));
    struct simulation *sim = must_simulate(t->train, c);
    expect_round_trip(t->train, sim);
    free_simulation(sim);
    free_costs(c);
    free_trainer(t);
}

/* Memory that is kept counts, though no task touches it. */
TEST(what_nobody_touches_is_written)
{
    struct step *s = read_text_list(GPU "tensor w gpu 100 parameters\ntensor x gpu 10 work\ntensor k gpu 1 work keep\n"
                                        "task t gpu.compute 1\n");
    char *text = written(s, (double[]){1});
    assert_non_null(strstr(text, "tensor w gpu 100 parameters\ntensor k gpu 1 work keep\ntask t"));
    free(text);
    free_list(s);
}

TEST(names_are_made_their_own)
{
    struct paper p = new_paper(1, &slow_speeds);
    for (int i = 0; i < 3; i++)
        add_paper(&p, p.host->lane[LANE_CPU], "a task", new_bytes(&p, p.host, "x", 1, false), NULL, NULL);
    add_paper(&p, p.host->lane[LANE_CPU], "#2", new_bytes(&p, p.host, "x~2", 1, false), NULL, NULL);
    finish_paper(&p);
    char *text = written(p.step, (double[]){1, 2, 3, 4});
    assert_non_null(strstr(text, "tensor x host 4"));
    assert_non_null(strstr(text, "tensor x~2 host 4"));
    assert_non_null(strstr(text, "tensor x~3 host 4"));
    assert_non_null(strstr(text, "tensor x~2~2 host 4"));
    assert_non_null(strstr(text, "task a_task host.cpu 3 writes=x~3\ntask _2 host.cpu 4 writes=x~2~2\n"));
    free_list(read_text_list(text));
    free(text);
    end_paper(&p);
}

/* ---- waits that no tensor says ----------------------------------------------------------------------------------- */

/* The second launch waits for the last work of the step before. */
#define RELAY                                                                                                          \
    GPU "task launch host.cpu 1\ntask work gpu.compute 4 after=launch\ntask launch host.cpu 1 after=work'\n"           \
        "task work gpu.compute 2 after=launch\ntask sum gpu.download 3 after=work\n"                                   \
        "task end gpu.upload 1 after=sum,work,launch\n"

TEST(tasks_wait_for_those_that_are_named)
{
    struct simulation *sim = simulate_text(RELAY);
    const struct task *again = sim->step->task[2], *end = sim->step->task[5];
    assert_int_equal(again->n_edges, 1);
    assert_true(again->edges[0].producer == 3 && again->edges[0].previous && again->edges[0].wait);
    assert_int_equal(end->n_edges, 3);
    expect_number("work", sim->moments[1].start, 1);
    expect_number("sum", sim->moments[4].start, 1 + 4 + 2);
    expect_number("end", sim->moments[5].start, 1 + 4 + 2 + 3);
    expect_number("period", sim->period, 4 + 2); /* launches are hidden */
    expect_round_trip(sim->step, sim);
    end_simulation(sim);
    expect_period(GPU "task a gpu.compute 2 after=c'\ntask b gpu.upload 3 after=a\ntask c host.cpu 1 after=b\n", 6, 1);
    expect_period(GPU "task a gpu.compute 2\ntask b gpu.upload 3 after=a\ntask c host.cpu 1 after=b\n", 3, 1);
    expect_period(GPU "task a host.cpu 2 every=2\ntask b gpu.compute 1 after=a\n", 1.5, 2);
}

/* What is meant is written, though the name alone would mean another task. */
TEST(who_is_awaited_has_a_name_of_its_own)
{
    struct paper p = new_paper(1, &slow_speeds);
    struct lane *lane = p.device->lane[LANE_COMPUTE];
    struct task *first = add_paper(&p, p.host->lane[LANE_CPU], "k", NULL, NULL, NULL);
    struct task *second = add_paper(&p, lane, "k", NULL, NULL, NULL);
    struct task *third = add_paper(&p, p.host->lane[LANE_DISK], "k", NULL, NULL, NULL);
    struct task *other = add_paper(&p, lane, "k~2", NULL, NULL, NULL);
    add_after(p.step, third, second, SAME_STEP);
    add_after(p.step, third, other, STEP_BEFORE);
    add_after(p.step, other, third, STEP_BEFORE);
    add_after(p.step, other, third, SAME_STEP);
    add_after(p.step, other, first, SAME_STEP);
    add_after(p.step, first, second, STEP_BEFORE);
    finish_paper(&p);
    char *text = written(p.step, (double[]){1, 2, 3, 4});
    assert_non_null(strstr(text, "task k~3 host.cpu 1 after=k~4'\ntask k~4 "));
    assert_non_null(strstr(text, ".compute 2\ntask k host.disk 3 after=k~4,k~2'\n"));
    assert_non_null(strstr(text, "task k~2 ") && strstr(text, ".compute 4 after=k~3,k,k'\n"));
    struct step *again = read_text_list(text);
    char *twice = written(again, (double[]){1, 2, 3, 4});
    assert_string_equal(text, twice);
    free(text);
    free(twice);
    free_list(again);
    end_paper(&p);
}

/* What follows from a held update goes along with it. */
TEST(what_waits_for_an_update_is_held_with_it)
{
    struct step *s = gated_list(GPU "tensor w gpu 4 parameters\ntask back gpu.compute 1 role=backward\n"
                                    "task adam gpu.upload 1 role=update writes=w\ntask tell host.cpu 1 after=adam\n"
                                    "task free host.cpu 1 after=back\ntask back gpu.compute 1 role=backward\n");
    expect_order(s, "back free back adam tell");
    free_list(s);
}

/* Without its wait each is unordered, and one that stands before all that it waits for is seen too. */
TEST(verify_sees_a_task_that_does_not_wait)
{
    static const struct {
        size_t task;
        const char *says;
    } dropped[] = {
        {1, "task 1 work may start before task 0 launch has ended, which after= tells it to wait for"},
        {2,
         "task 2 launch may start before task 3 work of the step before has ended, which after= tells it to wait for"},
        {4, "task 4 sum may start before task 3 work has ended, which after= tells it to wait for"},
    };
    for (size_t i = 0; i < COUNT(dropped); i++) {
        struct step *s = read_text_list(RELAY);
        assert_true(s->task[dropped[i].task]->edges[0].wait);
        s->task[dropped[i].task]->edges[0].wait = false;
        expect_wrong("the list", verify(s, NULL), dropped[i].says);
        free_list(s);
    }
    struct step *s = list_of(GPU "task a host.cpu 1\ntask b gpu.compute 1 after=a\n");
    struct task *a = s->task[0];
    s->task[0] = s->task[1];
    s->task[1] = a;
    finish_list(s);
    expect_wrong("the list", verify(s, NULL), "task 0 b comes before all that after= tells it to wait for");
    free_list(s);
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

static void read_mistake(void *text) { free_list(read_list(write_file("wrong.txt", text, strlen(text)))); }

#define START GPU "lane gpu.upload1\nlink gpu up 1e9\ntensor x gpu 64 work\ntensor h host 64 work\n" /* five lines */

TEST(mistakes_name_line_and_word)
{
    static const struct {
        const char *line, *says;
    } mistakes[] = {
        {"tsak a gpu.compute 1", "line 6: 'tsak': expected device, lane, link, disk, tensor, task or copy"},
        {"device", "line 6: 'device' ends too early: expected device NAME"},
        {"device b", "line 6: 'b': expected memory=BYTES"},
        {"device b memory=1x", "line 6: '1x': expected a number of bytes"},
        {"device gpu memory=1", "line 6: 'gpu': expected a name that has not been used above"},
        {"device b memory=1 memory=2", "line 6: 'memory=2': expected each option once"},
        {"device b memory=1 speed=2", "line 6: 'speed=2': expected device NAME memory=BYTES"},
        {"device b,c memory=1", "line 6: 'b,c': expected a name of at most 23 characters"},
        {"device b memory=1 \001", "line 6: '?': expected characters that can be shown"},
        {"lane gpu", "line 6: 'gpu': expected DEVICE.KIND[N]"},
        {"lane b.upload1", "line 6: 'b.upload1': expected DEVICE.KIND[N], the device declared above"},
        {"lane gpu.upload0", "line 6: '0': expected a whole number from 1"},
        {"lane gpu.upload1", "line 6: 'gpu.upload1': expected a lane that is not declared above"},
        {"lane gpu.upload2 gap=x", "line 6: 'x': expected a time"},
        {"link gpu sideways 1", "line 6: 'sideways': expected up or down"},
        {"link gpu down", "line 6: 'down' ends too early: expected link DEVICE"},
        {"link gpu down 1G", "line 6: '1G': expected a rate in bytes per second"},
        {"link gpu down 0", "line 6: '0': expected a rate"},
        {"link gpu down 1 queues=1\nlane gpu.download1",
         "line 7: 'gpu.download1': expected at most 1 download lane of gpu, as queues= of its link says, not 2"},
        {"lane gpu.download1\nlane gpu.download2\nlink gpu down 1 queues=2",
         "line 8: 'gpu': expected at most 2 download lanes of gpu"},
        {"link gpu up 1", "line 6: 'gpu': expected a device that has no link in this direction yet"},
        {"link host up 1", "line 6: 'host': expected a device: a link joins it to the host"},
        {"link b up 1", "line 6: 'b': expected a device that is declared above"},
        {"disk", "line 6: 'disk' ends too early: expected disk RATE"},
        {"disk 1\ndisk 2", "line 7: 'disk': expected one disk"},
        {"tensor", "line 6: 'tensor' ends too early: expected tensor NAME"},
        {"tensor y gpu 4", "line 6: '4' ends too early: expected tensor NAME DEVICE BYTES CLASS"},
        {"tensor y gpu 4 junk", "line 6: 'junk': expected parameters, gradients, optimizer, activations or work"},
        {"task", "line 6: 'task' ends too early: expected task NAME"},
        {"task t", "line 6: 't' ends too early: expected task NAME LANE"},
        {"task t gpu.compute", "line 6: 'gpu.compute' ends too early: expected task NAME LANE TIME"},
        {"task t gpu.compute 1 reads=y", "line 6: 'y': expected a tensor that is declared above"},
        {"task t gpu.compute 1 reads=x[", "line 6: 'x[': expected NAME or NAME[begin:end]"},
        {"task t gpu.compute 1 writes=x[2:2]", "line 6: 'x[2:2]': expected bytes begin:end of x, which has 64"},
        {"task t gpu.compute 1 role=actor", "line 6: 'actor': expected a role: forward"},
        {"task t gpu.compute 1 reads=x,,x", "line 6: ',': expected a name before and after each comma"},
        {"task t gpu.compute 1 reads=x,", "line 6: ',': expected a name before and after each comma"},
        {"task t gpu.compute 1 every=3 rest=3", "line 6: 'task': expected rest= below every=, which is 3"},
        {"task t gpu.compute 1 after=u",
         "line 6: 'u': expected NAME of a task, or NAME' for its run in the step before"},
        {"task t gpu.compute 1 after=u'", "line 6: 'u'': expected NAME of a task"},
        {"task t gpu.compute 1 after=t''", "line 6: 't''': expected NAME of a task"},
        {"task t gpu.compute 1 after=t", "line 6: 't': expected a task above: t stands below, or is this task"},
        {"task t gpu.compute 1\ntask u gpu.compute 1 after=t,v\ntask v gpu.compute 1",
         "line 7: 'v': expected a task above: v stands below, or is this task (v' is that of the step before)"},
        {"task t gpu.compute 1\ntask u gpu.compute 1 after=,t", "line 7: ',': expected a name before and after"},
        {"copy c x h[0:64] after=x", "line 6: 'x': expected NAME of a task"},
        {"task t' gpu.compute 1", "line 6: 't'': expected a task's name without '"},
        {"copy c x", "line 6: 'x' ends too early: expected copy NAME TO[b:e] FROM[b:e]"},
        {"copy c x h[0:8]", "line 6: 'x': expected as many bytes on both sides"},
        {"copy c x[0:8] x[4:12]", "line 6: 'x[0:8]': expected other bytes than those it copies"},
        {"copy c h[0:8] h[8:16]", "line 6: 'c': expected lane= where both tensors are on the host"},
        {"copy c x h role=broadcast msg=0", "line 6: '0': expected a whole number from 1"},
        {"copy c x h role=send msg=1", "line 6: 'c': expected role=broadcast beside msg="},
        {"", "there is no task in it"},
        {"disk 1 2 a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G",
         "expected fewer words in a line"},
    };
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        char *text = lasting(START "%s\n", mistakes[i].line);
        expect_refusal(read_mistake, text, EXIT_USAGE, mistakes[i].says);
        expect_refusal(read_mistake, text, EXIT_USAGE, "wrong.txt");
    }
}

static void place_list(void *text)
{
    struct step *s = list_of("%s", (char *)text);
    must(place(s->pool, &s, 1, PLACE_TO_CHECK));
}

/* To the byte: a list on paper has no guards. */
/* What is refused is not offered, and what is offered is taken. */
TEST(roles_that_are_offered_are_taken)
{
    char offer[256] = "expected a role: forward";
    for (int k = ROLE_FORWARD; k < ROLES; k++) {
        char *text = lasting(START "task t gpu.compute 1 role=%s\n", role_name[k]);
        if (k < ROLES_BY_HAND) {
            struct step *s = read_text_list(text);
            assert_int_equal(s->task[0]->role, k);
            free_list(s);
            if (k > ROLE_FORWARD)
                snprintf(offer + strlen(offer), sizeof offer - strlen(offer), "%s%s",
                         k + 1 < ROLES_BY_HAND ? ", " : " or ", role_name[k]);
        } else {
            char *says = lasting("line 6: '%s': %s", role_name[k], offer);
            expect_refusal(read_mistake, text, EXIT_USAGE, says);
        }
    }
}

/* A chain of stages with copies between, which are updated on the host or on the device; speeds are times these. */
static char *random_chain(uint64_t seed, double link, double device, double cpu, int memory)
{
    uint64_t n = 0;
    char *text = lasting("device host memory=1G\ndisk 1e9 1e-3\n");
    for (int i = 0; i < 3; i++) {
        double draw[6];
        for (size_t k = 0; k < COUNT(draw); k++) {
            draw[k] = 0.01 + random_uniform(seed, STREAM_TEST, 0, n);
            n++;
        }
        text = lasting("%sdevice d%d memory=%d\nlink d%d up %.17g 1e-3 queue=%.17g\nlink d%d down %.17g\n"
                       "tensor x%d d%d 4000 activations\ntensor h%d host 4000 work keep\n"
                       "tensor w%d d%d 4000 parameters\ntensor g%d d%d 4000 gradients\n"
                       "task back d%d.compute %.17g role=backward reads=w%d writes=x%d,g%d\ncopy down h%d x%d\n"
                       "task move d%d.upload %.17g reads=g%d\n"
                       "task adam d%d.compute %.17g role=update cpu=%.17g reads=g%d,w%d writes=w%d\n"
                       "task note host.cpu %.17g reads=h%d\ntask keep host.disk 0.5 reads=h%d\n",
                       text, i, memory, i, 9000 * draw[0] * link, 5000 * draw[0] * link, i, 8000 * draw[1] * link, i, i,
                       i, i, i, i, i, i, draw[2] / device, i, i, i, i, i, i, draw[3] / link, i, i, draw[4] / device,
                       draw[5] / cpu, i, i, i, draw[5] / cpu, i, i);
    }
    return text;
}

/* --what-if gives what the list gives whose numbers are edited by hand, to the digit. */
LONG_TEST(what_if_edits_the_list)
{
    static const double factor[][3] = {{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {1.5, 0.7, 3}};
    char *list = lasting("%s", write_file("chain.txt", "", 0)),
         *edited = lasting("%s", write_file("edited.txt", "", 0));
    for (uint64_t seed = 1; seed <= 8; seed++) {
        const double *by = factor[seed % COUNT(factor)];
        const char *text = random_chain(seed, 1, 1, 1, 90000);
        write_file("chain.txt", text, strlen(text));
        text = random_chain(seed, by[0], by[1], by[2], 20000);
        write_file("edited.txt", text, strlen(text));
        const char *with = seed % 2 ? "--overlap all-cpu" : "--clip 0";
        char *words =
            lasting("plan --list %s %s --what-if link=%gx,device=%gx,cpu=%gx", list, with, by[0], by[1], by[2]);
        struct ran ours = run_yard("%s,mem=20000 --print-list", words);
        struct ran theirs = run_yard("plan --list %s %s --print-list", edited, with);
        assert_int_equal(ours.code, 0);
        assert_string_equal(ours.out, theirs.out);
        double period = number_at(yard_json("%s --device-mem 20000 --simulate --json", words), "simulation.step_ms");
        json_t *by_hand = yard_json("plan --list %s %s --simulate --json", edited, with);
        assert_true(period == number_at(by_hand, "simulation.step_ms"));
    }
    expect_yard(EXIT_USAGE, "memory= or --device-mem", "plan --list %s --device-mem 11000", list);
    expect_yard(EXIT_USAGE, "memory= or --host-mem", "plan --list %s --host-mem 11000", list);
    expect_yard(EXIT_USAGE, "for the host (--host-mem) work: use a larger --host-mem, or --recompute",
                "plan --model nano --hardware data/hardware/server.txt --swap auto --host-mem 1K");
    expect_yard(EXIT_USAGE, "expected words such as", "plan --list %s --simulate --what-if gpu=2x", list);
    expect_yard(EXIT_USAGE, "add --simulate", "plan --list %s --what-if link=2x", list);
}

TEST(memory_is_what_is_written)
{
    free_list(read_text_list("device gpu memory=100\ntensor x gpu 60 work\ntensor y gpu 40 parameters\n"
                             "task t gpu.compute 1 reads=y writes=x\n"));
    expect_refusal(place_list,
                   "device gpu memory=99\ntensor x gpu 60 work\ntensor y gpu 40 parameters\n"
                   "task t gpu.compute 1 reads=y writes=x\n",
                   EXIT_USAGE, "budget of 99 B; use smaller tensors, or a larger memory= or --device-mem");
}
