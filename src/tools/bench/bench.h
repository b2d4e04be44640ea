/* bench.h - yard bench. */
#ifndef BENCH_H
#define BENCH_H

#include "trainer/train/train.h"

int bench_broadcast(struct settings *settings); /* runs yard bench --broadcast; returns the exit code */

#endif
