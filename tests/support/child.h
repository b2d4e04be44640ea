/* child.h - run code that is meant to end the program in a child process, and look at how it ended. */
#ifndef CHILD_H
#define CHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#pragma push_macro("fail") /* error.h has one too */
#undef fail
#include <cmocka.h>
#include <fcntl.h>
#undef fail_msg /* it is made with cmocka's fail() */
#pragma pop_macro("fail")
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* TEST(name) { ... } is a test of this program, whose main() runs them in the order of the file.
 *
 *     TEST(name)         `make test` runs it: it guards what one needs to trust a build and a change
 *     LONG_TEST(name)    `make check` runs it, which has the time
 *     LAW(name)          both run it, on other cases: it takes those from cases_of()
 *     ALWAYS(name)       it runs whichever test is chosen, since the others need it
 *     CASE(name)         no test: it runs in a process of its own when a test says expect_case("name", ...)
 */
#define TEST(name) KNOWN_TO_MAIN(test_##name, #name, IN_TEST)
#define LONG_TEST(name) KNOWN_TO_MAIN(test_##name, #name, IN_CHECK)
#define LAW(name) KNOWN_TO_MAIN(test_##name, #name, IN_TEST | IN_CHECK)
#define ALWAYS(name) KNOWN_TO_MAIN(test_##name, #name, IN_TEST | IN_CHECK | IN_ALL)
#define CASE(name) KNOWN_TO_MAIN(case_##name, #name, NO_TEST)
#define KNOWN_TO_MAIN(function, name, when)                                                                            \
    static void function(void **);                                                                                     \
    __attribute__((constructor)) static void make_known_##function(void) { add_test(name, function, __LINE__, when); } \
    static void function(void **unused_state __attribute__((unused)))
enum { NO_TEST = 0, IN_TEST = 1, IN_CHECK = 2, IN_ALL = 4 };
void add_test(const char *name, CMUnitTestFunction body, int line, int when);
extern const char *this_test; /* argv[0] */

/* Cases of a law, from `begin` up to `end`: `make test` takes the first `few` of `all`, `make check` the others, and
 * a program that is run by hand takes all. */
struct cases {
    int begin, end;
};
struct cases cases_of(int few, int all);
/* The number in this environment variable, such as how many cases are tried; without the variable, `usual`. */
int number_from(const char *variable, int usual);

/* The test fails with a message by printf rules. */
#define test_failed(...) (print_error(__VA_ARGS__), _fail(__FILE__, __LINE__))

/* Fails, and prints both numbers, unless the one that was found is the expected one, give or take this distance. */
#define assert_close(found, expected, distance) check_close(#found, found, expected, distance, __FILE__, __LINE__)
static inline void check_close(const char *what, double found, double expected, double distance, const char *file,
                               int line)
{
    if (found >= expected - distance && found <= expected + distance)
        return;
    print_error("%s is %.17g, but expected is %.17g, give or take %g\n", what, found, expected, distance);
    _fail(file, line);
}

/* Each fails, and prints both numbers, unless the one that was found is on that side of the limit, and not at it. */
#define assert_above(found, low) check_above(#found, found, low, __FILE__, __LINE__)
#define assert_below(found, high) check_below(#found, found, high, __FILE__, __LINE__)
static inline void check_above(const char *what, double found, double low, const char *file, int line)
{
    if (found > low)
        return;
    print_error("%s is %.17g, but expected is more than %.17g\n", what, found, low);
    _fail(file, line);
}

static inline void check_below(const char *what, double found, double high, const char *file, int line)
{
    if (found < high)
        return;
    print_error("%s is %.17g, but expected is less than %.17g\n", what, found, high);
    _fail(file, line);
}

struct outcome {
    int code;        /* exit code, -1 when a signal ended it */
    int signal;      /* 0 when it exited */
    char text[8192]; /* what it wrote on stderr */
};

/* Runs body(argument) in a child; exit code 0 when it returns. */
static inline struct outcome run_child(void (*body)(void *), void *argument)
{
    struct outcome result = {.code = -1};
    int status = 0;
    FILE *log = tmpfile();
    assert_non_null(log);
    fflush(NULL); /* else the child would print our buffers again */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(fileno(log), 2);
        body(argument);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status))
        result.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status))
        result.signal = WTERMSIG(status);
    rewind(log);
    size_t n = fread(result.text, 1, sizeof result.text - 1, log);
    result.text[n] = '\0';
    fclose(log);
    return result;
}

/* The child must exit with `code` and say one sentence that contains `part`. */
static inline void expect_refusal(void (*body)(void *), void *argument, int code, const char *part)
{
    struct outcome o = run_child(body, argument);
    const char *newline = strchr(o.text, '\n');
    if (o.code != code || !strstr(o.text, part) || strncmp(o.text, "yard: ", 6) != 0 || !newline || newline[1])
        test_failed("expected exit code %d and one sentence with \"%s\"; got code %d, signal %d and:\n%s\n", code, part,
                    o.code, o.signal, o.text);
}

/* A text that lives as long as the program. */
char *lasting(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A path in this test's own folder, and a file there; the paths last. */
char *temp_path(const char *name);
char *write_file(const char *name, const void *bytes, size_t n);
char *write_text(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
