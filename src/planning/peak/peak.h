/* peak.h - what a device reaches at most, as a measure for what it did. */
#ifndef PEAK_H
#define PEAK_H

#include "trainer/device/device.h"

/* How long the device has worked, in seconds from any start.  A CPU: the time that this process has used its cores,
 * divided by their number, so that neither what other programs take counts nor the time in which cores wait.  Any other
 * device: the clock. */
double work_seconds(const struct device *device);

/* run_probe(): the mean FLOP/s of independent fused multiply-adds over `seconds`, or over one run, if that takes longer
 * (some milliseconds).  Run it right beside the work that it is compared with. */
struct probe *open_probe(struct device *device); /* the caller closes it with close_probe() */
double run_probe(struct probe *probe, double seconds);
void close_probe(struct probe *probe);

/* Bytes per second, read and written, of the fastest of the copies made in `seconds`. */
double measure_copy_speed(struct device *device, double seconds);

#endif
