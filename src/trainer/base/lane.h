/* lane.h - the kinds of lanes: known to devices, lists and traces alike.  The numbers are in trace files. */
#ifndef LANE_H
#define LANE_H

enum lane_kind {
    LANE_COMPUTE,
    LANE_UPLOAD,   /* host to device */
    LANE_DOWNLOAD, /* device to host, and to other devices */
    LANE_CPU,      /* the host's own part of the step's work */
    LANE_DISK,     /* the host reads and writes files */
    LANE_REPORT,   /* the host takes results out at the end of a step; no task of another lane may wait for this */
    LANE_FEED,     /* the host prepares batches ahead of the step; so no tasks of other kinds are here */
    LANE_KINDS
};

#endif
