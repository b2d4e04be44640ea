/* numbers.h - numbers for people. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include "trainer/base/base.h"

double median(double *values, size_t n); /* sorts them; 0 of none */
/* How much longer: "+ 7.4 %" of 1.074, "74.2 times" of 74.2, into `out`, which is returned. */
char *format_ratio(char out[32], double ratio, int decimals);

#endif
