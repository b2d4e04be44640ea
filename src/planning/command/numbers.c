/* numbers.c - the median of numbers, and a ratio as text. */
#include "numbers.h"

#include <math.h>

COMPARISON(by_value, double, COMPARE(*a, *b))

double median(double *values, size_t n)
{
    if (n == 0)
        return 0;
    SORT(values, n, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

char *format_ratio(char out[32], double ratio, int decimals)
{
    const bool is_less = 100 * (1 - ratio) >= 0.5 * pow(10, -decimals); /* else it is rounded to 0 */
    if (is_less)
        snprintf(out, 32, "- %.*f %%", decimals, 100 * fabs(ratio - 1));
    else if (ratio < 2)
        snprintf(out, 32, "+ %.*f %%", decimals, 100 * fabs(ratio - 1));
    else
        snprintf(out, 32, "%.1f times", ratio);
    return out;
}
