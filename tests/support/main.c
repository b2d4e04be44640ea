/* main.c - of every test program: which of its tests run, and what each takes.
 *
 *     build/tests/test_mesh            all of them
 *     build/tests/test_mesh NAME       the test of that name alone, to see it in gdb, or that case of a test
 *
 * YARD_TESTS=test leaves those that `make test` runs, YARD_TESTS=check the others.
 */
#include "child.h"
#include "trainer/base/array.h" /* brings: COMPARE */
#include "trainer/base/text.h"

#include <limits.h>
#include <sys/resource.h>
#include <time.h>

enum { MOST = 256 };

struct known {
    const char *name;
    CMUnitTestFunction body;
    int line; /* where it stands in its file */
    int when; /* IN_TEST, IN_CHECK and IN_ALL, together, or NO_TEST */
};
static struct known known[MOST];
static size_t n_known;
static int wanted = IN_TEST | IN_CHECK;

void add_test(const char *name, CMUnitTestFunction body, int line, int when)
{
    assert_below(n_known, MOST);
    known[n_known] = (struct known){.name = name, .body = body, .line = line, .when = when};
    n_known++;
}

struct cases cases_of(int few, int all)
{
    struct cases cases = {0, all};
    if (wanted == IN_TEST)
        cases.end = few;
    if (wanted == IN_CHECK)
        cases.begin = few;
    return cases;
}

int number_from(const char *variable, int usual)
{
    const char *text = getenv(variable);
    int64_t number;
    if (!text)
        return usual;
    if (!parse_int(text, &number) || number < 0 || number > INT_MAX) {
        fprintf(stderr, "%s=%s: expected a whole number\n", variable, text);
        exit(99);
    }
    return (int)number;
}

/* ---- what a test takes ------------------------------------------------------------------------------------------- */

static double wall_at_start, cpu_at_start;

static double cpu_seconds(int whose)
{
    struct rusage used;
    getrusage(whose, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int begin_timing(void **unused)
{
    (void)unused;
    wall_at_start = wall_seconds();
    cpu_at_start = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN);
    return 0;
}

/* Prints a line that tests/lib/run.sh looks for: how long the test took whose result follows. */
static int print_timing(void **unused)
{
    (void)unused;
    double cpu = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN) - cpu_at_start;
    printf("# seconds: %.2f, of the CPU %.2f\n", wall_seconds() - wall_at_start, cpu);
    fflush(stdout);
    return 0;
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static int in_order_of_file(const void *one, const void *other)
{
    const struct known *test = one, *other_test = other;
    return COMPARE(test->line, other_test->line);
}

static const struct known *find(const char *name, bool test)
{
    for (size_t i = 0; i < n_known; i++)
        if (strcmp(known[i].name, name) == 0 && (known[i].when != NO_TEST) == test)
            return &known[i];
    return NULL;
}

static void read_wish(void)
{
    const char *wish = getenv("YARD_TESTS");
    if (!wish || strcmp(wish, "all") == 0)
        return;
    if (strcmp(wish, "test") != 0 && strcmp(wish, "check") != 0) {
        fprintf(stderr, "YARD_TESTS=%s: expected test, check or all\n", wish);
        exit(99);
    }
    wanted = strcmp(wish, "test") == 0 ? IN_TEST : IN_CHECK;
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[MOST];
    size_t n = 0;
    const char *slash = strrchr(argv[0], '/');
    this_test = argv[0];
    read_wish();
    if (argc > 1 && find(argv[1], false)) {
        find(argv[1], false)->body(NULL);
        return 0;
    }
    if (argc > 1 && !find(argv[1], true)) {
        fprintf(stderr, "there is no test and no case %s\n", argv[1]);
        return 99;
    }
    qsort(known, n_known, sizeof known[0], in_order_of_file);
    for (size_t i = 0; i < n_known; i++) {
        bool named = argc > 1 && strcmp(known[i].name, argv[1]) == 0;
        bool chosen = argc == 1 && (known[i].when & wanted) != 0;
        bool needed = (known[i].when & IN_ALL) != 0;
        bool runs = named || chosen || needed;
        if (known[i].when != NO_TEST && runs) {
            tests[n] = (struct CMUnitTest){.name = known[i].name,
                                           .test_func = known[i].body,
                                           .setup_func = begin_timing,
                                           .teardown_func = print_timing};
            n++;
        }
    }
    return _cmocka_run_group_tests(slash ? slash + 1 : this_test, tests, n, NULL, NULL);
}
