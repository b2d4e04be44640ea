/* broadcast.h - what the options ask of the pass; yard bench --broadcast sets it. */
#ifndef BROADCAST_H
#define BROADCAST_H

enum deal { DEAL_EVEN, DEAL_RANDOM };
enum main_queue { MAIN_BOTH, MAIN_COMPUTE };
struct broadcast_options {
    int queues, slices;   /* of a device, 0: the pass is off; of a shard */
    enum deal deal;       /* how slices are dealt to the queues: at random by the seed of the run */
    enum main_queue main; /* does the main queue send too, or only compute? */
};
extern struct broadcast_options broadcast_options;

#endif
