/* elsewhere.h - words of other programs. */
#ifndef ELSEWHERE_H
#define ELSEWHERE_H

#include "trainer/base/base.h"
#include "trainer/base/module.h"

extern const struct other_words other_words; /* known.c */

#endif
