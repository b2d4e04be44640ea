/* asserts.h - assertions that print, when they fail, the words that were compared and the values that they have.
 *
 * cmocka has more of them: assert_int_equal(), assert_string_equal() and others, which print values too.
 * assert_true() is left for what has no values to print, such as the answer of a function.
 */
#ifndef ASSERTS_H
#define ASSERTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#pragma push_macro("fail") /* error.h has one too */
#undef fail
#include <cmocka.h>
#undef fail_msg /* it is made with cmocka's fail() */
#pragma pop_macro("fail")
#include <string.h>

/* The test fails with a message by printf rules. */
#define test_failed(...) (print_error(__VA_ARGS__), _fail(__FILE__, __LINE__))

/* Fails, and prints both numbers, unless the one that was found is the expected one, give or take this distance. */
#define assert_close(found, expected, distance) check_close(#found, found, expected, distance, __FILE__, __LINE__)
static inline void check_close(const char *what, double found, double expected, double distance, const char *file,
                               int line)
{
    if (found >= expected - distance && found <= expected + distance)
        return;
    print_error("%s: expected %.17g, give or take %g, got %.17g\n", what, expected, distance, found);
    _fail(file, line);
}

/* Each compares two numbers and fails unless the first one is on that side of the second one, its limit.  The first two
 * fail where the numbers are equal, and all fail where one is not a number.  Integers are compared as double, which is
 * exact up to 2^53. */
#define assert_above(found, limit)                                                                                     \
    check_above(#found " > " #limit, (double)(found), (double)(limit), __FILE__, __LINE__)
#define assert_below(found, limit)                                                                                     \
    check_below(#found " < " #limit, (double)(found), (double)(limit), __FILE__, __LINE__)
#define assert_at_least(found, limit)                                                                                  \
    check_at_least(#found " >= " #limit, (double)(found), (double)(limit), __FILE__, __LINE__)
#define assert_at_most(found, limit)                                                                                   \
    check_at_most(#found " <= " #limit, (double)(found), (double)(limit), __FILE__, __LINE__)
static inline void report_order(const char *words, double found, double limit, const char *file, int line)
{
    print_error("expected %s, got %.17g and %.17g\n", words, found, limit);
    _fail(file, line);
}

static inline void check_above(const char *words, double found, double limit, const char *file, int line)
{
    if (!(found > limit))
        report_order(words, found, limit, file, line);
}

static inline void check_below(const char *words, double found, double limit, const char *file, int line)
{
    if (!(found < limit))
        report_order(words, found, limit, file, line);
}

static inline void check_at_least(const char *words, double found, double limit, const char *file, int line)
{
    if (!(found >= limit))
        report_order(words, found, limit, file, line);
}

static inline void check_at_most(const char *words, double found, double limit, const char *file, int line)
{
    if (!(found <= limit))
        report_order(words, found, limit, file, line);
}

/* Fails, and prints the text, unless this part is in it. */
#define assert_contains(text, part) check_contains(text, part, __FILE__, __LINE__)
static inline void check_contains(const char *text, const char *part, const char *file, int line)
{
    if (strstr(text, part))
        return;
    print_error("expected a text with \"%s\", got:\n%s\n", part, text);
    _fail(file, line);
}

/* Fails, and prints the text, unless it begins with this. */
#define assert_begins_with(text, start) check_begins_with(text, start, __FILE__, __LINE__)
static inline void check_begins_with(const char *text, const char *start, const char *file, int line)
{
    if (strncmp(text, start, strlen(start)) == 0)
        return;
    print_error("expected a text that begins with \"%s\", got:\n%s\n", start, text);
    _fail(file, line);
}

#endif
