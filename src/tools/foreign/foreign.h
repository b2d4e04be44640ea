/* foreign.h - looking for words of other programs. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "trainer/base/base.h"
#include "trainer/base/module.h"

extern const struct foreign_lookup foreign_lookup; /* known.c */

#endif
