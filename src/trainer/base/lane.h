/* lane.h - the kinds of lanes: known to devices, lists and traces alike.  The numbers are in trace files. */
#ifndef LANE_H
#define LANE_H

enum lane_kind {
    LANE_COMPUTE,
    LANE_UPLOAD,   /* host to device */
    LANE_DOWNLOAD, /* device to host, and to other devices */
    LANE_CPU,      /* of the host: its share of the step's work */
    LANE_DISK,     /* files */
    LANE_REPORT,   /* takes results out, at the end of a step: nothing else may stand behind it */
    LANE_FEED,     /* prepares batches, ahead of the step: it may stand behind nothing else */
    LANE_KINDS
};

#endif
