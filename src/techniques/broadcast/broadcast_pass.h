/* broadcast_pass.h - what the options of broadcast ask for: broadcast_pass.c. */
#ifndef BROADCAST_PASS_H
#define BROADCAST_PASS_H

enum deal { DEAL_EVEN, DEAL_RANDOM };
enum main_queue { MAIN_BOTH, MAIN_COMPUTE };
struct broadcast_options { /* yard bench --broadcast tries values of them */
    int queues;            /* how many a device has; 0: the pass is off */
    int slices;            /* how many a shard is cut into */
    enum deal deal;        /* how slices are dealt to the queues: at random by the seed of the run */
    enum main_queue main;  /* does the main queue send too, or only compute? */
};
extern struct broadcast_options broadcast_options;

#endif
