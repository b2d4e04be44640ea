/* numbers.c - the median of numbers; times as text. */
#include "numbers.h"

#include <math.h>

static int by_value(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;
    return COMPARE(*a, *b);
}

double median(double *values, size_t n)
{
    if (n == 0)
        return 0;
    SORT(values, n, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

int decimals_of(double size, int most)
{
    if (size >= 99.95)
        return most - 2;
    return size >= 9.995 ? most - 1 : most;
}

char *format_ns(char out[NUMBER_TEXT], double ns)
{
    static const char *const units[] = {"ns", "µs", "ms", "s"};
    size_t i = 0;
    for (; i + 1 < COUNT(units) && fabs(ns) >= 999.95; i++)
        ns /= 1000;
    int decimals = 0;
    if (i > 0 && fabs(ns) < 999.5)
        decimals = decimals_of(fabs(ns), 3);
    snprintf(out, NUMBER_TEXT, "%.*f %s", decimals, ns, units[i]);
    return out;
}
