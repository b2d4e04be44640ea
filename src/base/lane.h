/* lane.h - the kinds of lanes: known to devices, lists and traces alike.  The numbers are in trace files. */
#ifndef LANE_H
#define LANE_H

enum lane_kind {
    LANE_COMPUTE,
    LANE_UPLOAD,   /* host to device */
    LANE_DOWNLOAD, /* device to host, and to other devices */
    LANE_CPU,      /* host work */
    LANE_DISK,     /* files */
    LANE_REPORT,   /* waits for the end of a step: nothing else may queue behind it */
    LANE_FEED,     /* prepares batches: of described machines, whose host has it apart from its other work */
    LANE_KINDS
};

#endif
