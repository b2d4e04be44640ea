/* test_error.c - how the program ends: its sentence, its exit code, and the cleanup of what was begun.
 *
 * It tests error.c and process.c of src/trainer/base.  It checks that fail() runs the cleanups in reverse order, that
 * attempt() makes a problem of a failure and runs only the cleanups that were registered since it began, and that CHECK
 * prints both values.  It catches a cleanup that runs twice or in another thread's place, and a sentence with a
 * character that a terminal obeys.
 *
 * To see it fail: in error.c, let run_cleanups() return at once.
 *
 * Each failure happens in a child process, whose exit code and stderr are compared.
 */
#include "tests/support/child.h"
#include "trainer/base/base.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

/* ---- fail -------------------------------------------------------------------------------------------------------- */

static void say_cleanup(void *text) { inform("cleanup %s", (char *)text); }

static void fail_again(void *unused)
{
    (void)unused;
    fail(EXIT_IO, "a second failure");
}

static void fail_with_cleanups(void *unused)
{
    (void)unused;
    struct cleanup first = {.run = say_cleanup, .argument = "first"};
    struct cleanup cancelled = {.run = say_cleanup, .argument = "cancelled"};
    struct cleanup last = {.run = say_cleanup, .argument = "last"};
    on_fail(&first);
    on_fail(&cancelled);
    on_fail(&last);
    cancel_on_fail(&cancelled);
    fail(EXIT_NO_DEVICE, "no device %d", 7);
}

static void fail_in_cleanup(void *unused)
{
    struct cleanup again = {.run = fail_again};
    on_fail(&again);
    fail_with_cleanups(unused);
}

TEST(fail_cleans_up_in_reverse)
{
    static const char *const said = "yard: no device 7\ncleanup last\ncleanup first\n";
    struct outcome outcome = run_child(fail_with_cleanups, NULL);
    assert_int_equal(outcome.code, EXIT_NO_DEVICE);
    assert_string_equal(outcome.text, said);
    outcome = run_child(fail_in_cleanup, NULL); /* whose second sentence is not printed */
    assert_string_equal(outcome.text, said);
}

/* ---- attempt ----------------------------------------------------------------------------------------------------- */

static void count_cleanup(void *count) { ++*(int *)count; }

static void fail_in_depth(void *count)
{
    struct cleanup cleanup = {.run = count_cleanup, .argument = count};
    on_fail(&cleanup);
    fail(EXIT_IO, "no %s", "luck");
}

static void attempt_in_depth(void *count)
{
    struct cleanup cleanup = {.run = count_cleanup, .argument = count};
    on_fail(&cleanup);
    struct problem *problem = attempt(fail_in_depth, count);
    assert_string_equal(problem->sentence, "no luck");
    free(problem);
    assert_int_equal(*(int *)count, 1); /* what was registered before is kept */
    fail(EXIT_USAGE, "again");
}

static struct cleanup of_another, of_an_inner;

static void *register_cleanup(void *cleanup)
{
    on_fail(cleanup);
    return NULL;
}

static void do_register(void *cleanup) { register_cleanup(cleanup); }

static void fail_beside_another(void *unused)
{
    (void)unused;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, register_cleanup, &of_another), 0);
    pthread_join(other, NULL);
    assert_null(attempt(do_register, &of_an_inner));
    fail(EXIT_IO, "no luck");
}

/* A cleanup that another thread registers meanwhile is its own; one that is left of an attempt within ours is ours. */
TEST(an_attempt_cleans_up_its_own)
{
    int count = 0, theirs = 0;
    of_an_inner = (struct cleanup){.run = count_cleanup, .argument = &count};
    of_another = (struct cleanup){.run = count_cleanup, .argument = &theirs};
    free(attempt(fail_beside_another, NULL));
    assert_int_equal(count, 1);
    assert_int_equal(theirs, 0);
    cancel_on_fail(&of_another);
}

static void must_not(void *unused)
{
    (void)unused;
    must(new_problem(EXIT_NO_DEVICE, "no device"));
}

static void do_nothing(void *unused) { (void)unused; }

/* An attempt turns fail() into a problem, runs the cleanups of its own time, and may be made within another. */
TEST(an_attempt_makes_a_problem_of_a_failure)
{
    int count = 0;
    struct problem *problem = attempt(attempt_in_depth, &count);
    assert_int_equal(problem->code, EXIT_USAGE);
    assert_string_equal(problem->sentence, "again");
    assert_int_equal(count, 2);
    free(problem);
    assert_null(attempt(do_nothing, NULL));
    must(NULL);
    struct outcome outcome = run_child(must_not, NULL);
    assert_int_equal(outcome.code, EXIT_NO_DEVICE);
    assert_string_equal(outcome.text, "yard: no device\n");
}

/* ---- CHECK ------------------------------------------------------------------------------------------------------- */

static void break_invariant(void *unused)
{
    (void)unused;
    int a = 3, b = 4;
    CHECK(a == b, "a %d, b %d", a, b);
}

TEST(check_prints_both_values_and_aborts)
{
    struct outcome outcome = run_child(break_invariant, NULL);
    assert_int_equal(outcome.signal, SIGABRT);
    assert_contains(outcome.text, "a == b: a 3, b 4");
}

/* ---- what is printed --------------------------------------------------------------------------------------------- */

static void say_foreign(void *text) { fail(EXIT_FAILED, "it says %s", (char *)text); }

TEST(sentences_are_printable)
{
    expect_refusal(say_foreign, "\033]0;x\007\nyard: all is well", EXIT_FAILED, "it says ?]0;x??yard: all is well\n");
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static void interrupt_without_stderr(void *unused)
{
    (void)unused;
    prepare_process("yard");
    defer_interrupts("the step");
    close(STDERR_FILENO); /* then what the handler says sets errno */
    errno = ERANGE;
    raise(SIGINT);
    _exit(interrupted() && errno == ERANGE ? 0 : 1);
}

TEST(a_signal_leaves_errno_as_it_was) { assert_int_equal(run_child(interrupt_without_stderr, NULL).code, 0); }

/* As timeout(1) does. */
static void send_twice(void *unused)
{
    (void)unused;
    prepare_process("yard");
    defer_interrupts("the step");
    raise(SIGTERM);
    raise(SIGTERM);
    _exit(interrupted() ? 0 : 1);
}

static void send_again_later(void *unused)
{
    (void)unused;
    prepare_process("yard");
    defer_interrupts("the step");
    raise(SIGTERM);
    nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
    raise(SIGTERM);
    _exit(0);
}

TEST(only_a_later_signal_ends_the_program_at_once)
{
    const char *first = "yard: interrupted: finishing the step; a second signal ends the run at once\n";
    struct outcome outcome = run_child(send_twice, NULL);
    assert_int_equal(outcome.code, 0);
    assert_string_equal(outcome.text, first);

    outcome = run_child(send_again_later, NULL);
    assert_int_equal(outcome.code, EXIT_INTERRUPTED);
    assert_contains(outcome.text, "yard: interrupted again: ended at once");
}
