/* child.h - runs code that is meant to end the program in a child process, and looks at how it ended. */
#ifndef CHILD_H
#define CHILD_H

#include "asserts.h"

#include <fcntl.h>
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
    assert_at_least(child, 0);
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
    struct outcome outcome = run_child(body, argument);
    const char *newline = strchr(outcome.text, '\n');
    bool is_one_line = strncmp(outcome.text, "yard: ", 6) == 0 && newline && !newline[1];
    if (outcome.code != code || !is_one_line || !strstr(outcome.text, part))
        test_failed("expected exit code %d and one sentence with \"%s\"; got code %d, signal %d and:\n%s\n", code, part,
                    outcome.code, outcome.signal, outcome.text);
}

/* A text that lives as long as the program. */
char *lasting(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A path in this test's own folder, and a file there; the paths last. */
char *temp_path(const char *name);
char *write_file(const char *name, const void *bytes, size_t n);
char *write_text(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
