/* main.c - of every test program: runs the tests that TEST() made known, or the one case that its word names. */
#include "child.h"

enum { MOST = 128 };

static struct CMUnitTest tests[MOST], cases[MOST];
static size_t n_tests, n_cases;
static int lines[MOST];

void add_test(const char *name, CMUnitTestFunction body, int line)
{
    size_t i = n_tests++;
    assert_true(n_tests <= MOST);
    for (; i > 0 && lines[i - 1] > line; i--)
        tests[i] = tests[i - 1], lines[i] = lines[i - 1];
    tests[i] = (struct CMUnitTest){.name = name, .test_func = body};
    lines[i] = line;
}

void add_case(const char *name, CMUnitTestFunction body, int line)
{
    (void)line;
    assert_true(n_cases < MOST);
    cases[n_cases++] = (struct CMUnitTest){.name = name, .test_func = body};
}

int main(int argc, char **argv)
{
    this_test = argv[0];
    for (size_t i = 0; argc > 1 && i < n_cases; i++)
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].test_func(NULL);
            return 0;
        }
    if (argc > 1) {
        fprintf(stderr, "there is no case %s\n", argv[1]);
        return 99;
    }
    return _cmocka_run_group_tests(strrchr(this_test, '/') ? strrchr(this_test, '/') + 1 : this_test, tests, n_tests,
                                   NULL, NULL);
}
