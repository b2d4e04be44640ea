/* bench.h - yard bench. */
#ifndef BENCH_H
#define BENCH_H

#include "trainer/train/train.h"

enum exit_code bench_broadcast(struct settings *settings); /* runs yard bench --broadcast */

#endif
