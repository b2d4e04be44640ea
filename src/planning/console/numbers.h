/* numbers.h - numbers for people. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include "trainer/base/base.h"

double median(double *values, size_t n); /* sorts them; 0 of none */

/* How many decimals a number is shown with: `most` below 10, one less from there on, two less from 100 on. */
int decimals_of(double size, int most);

char *format_ns(char out[NUMBER_TEXT], double ns); /* "812 ns", "12.3 µs", "1.016 ms", "4.52 s" */

#endif
