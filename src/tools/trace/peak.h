/* peak.h - what a device reaches at most: the yardstick of what it did. */
#ifndef PEAK_H
#define PEAK_H

#include "trainer/device/device.h"

/* How long the device has worked: a CPU's cores for this process, divided by their number, so that neither what other
 * programs take counts nor what cores wait; else the clock. */
double work_seconds(const struct device *d);
/* Mean FLOP/s of independent FMAs over so many of them (one run of some milliseconds at least), to be taken right
 * beside what it is compared with. */
struct probe *open_probe(struct device *d);
double run_probe(struct probe *p, double seconds);
void close_probe(struct probe *p);
double measure_copy(struct device *d, double seconds); /* bytes/s, read + written, of the fastest of some copies */

#endif
