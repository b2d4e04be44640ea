/* broadcast.h - what a list sends: messages, the shards that they belong to, and slices.  broadcast.c has the words.
 *
 *     broadcast.c        the technique: finds messages, cuts shards into slices, deals and sends these    begin here
 *     broadcast_pass.c   the pass: which of two orders takes less time, the report and the options
 *
 *     a shard's messages    | message 0      | message 1  | message 2      |
 *     and its slices        | slice 0   | slice 1   | slice 2   | slice 3  |        each goes to one queue
 */
#ifndef BROADCAST_H
#define BROADCAST_H

#include "planning/pass/edit.h"

enum deal { DEAL_EVEN, DEAL_RANDOM };
enum main_queue { MAIN_BOTH, MAIN_COMPUTE };

struct broadcast_options { /* yard bench --broadcast tries values of them */
    int queues;            /* how many a device has; 0: the pass is off */
    int slices;            /* how many a shard is cut into */
    enum deal deal;        /* how slices are dealt to the queues: at random by the seed of the run */
    enum main_queue main;  /* does the main queue send too, or only compute? */
};

/* One copy task of the list, between two devices or a device and the host. */
struct hop {
    struct task *copy;
    int parent;          /* the hop whose bytes this hop sends on, by index in `hops`; SOURCE: it sends the source */
    struct task *reader; /* the first task that reads the received bytes, in this step or else in the next; or NULL */
};

enum { SOURCE = -1, NO_HOP = -2 }; /* in the place of a hop's index; NONE would not say which of the two */

/* The same bytes on their way to one device or several. */
struct message {
    int number; /* the number that its copies have as task->extra.message; 0: it is a single copy without one */
    struct tensor *source; /* the bytes that are sent */
    struct hop *hops;      /* neighbours in the list, a parent before what it brought */
    size_t n, cap;
    size_t shard;     /* index of the shard that has the bytes */
    size_t begin;     /* their first byte in that shard */
    bool repeated;    /* another message has brought the same bytes, elsewhere or for another use */
    size_t position;  /* position in the list of its first copy */
    size_t first_use; /* position of the first task that reads the bytes where they arrive; SIZE_MAX: no task does */
};

/* The bytes that one device sends of one layer. */
struct layer_shard {
    struct device *owner;
    int layer; /* NONE: the bytes are of no layer */
    size_t bytes;
    int slices; /* the number of slices that it is cut into */
    int *queue; /* [slices] the queue that sends each slice */
};

/* The part of a message that lies in one slice of its shard. */
struct message_part {
    const struct message *message;
    int nth;           /* its index among the shard's slices, from 0 */
    int number;        /* the message number of its copies */
    int queue;         /* the queue that sends it; on the other devices the queue of this number receives it */
    size_t begin, end; /* bytes of the shard; begin >= end: no byte of the slice is in the message */
};

struct broadcast {
    struct list *list;
    uint64_t seed;                    /* slices are dealt by it */
    struct broadcast_options options; /* a copy; its queues count the main one of a device too */
    bool by_use;                      /* shards go in the order of their first use, not in list order */
    size_t align; /* slices begin at multiples of so many bytes: the largest alignment of a device */
    struct message *messages;
    struct layer_shard *shards;
    size_t n_messages, cap_messages, n_shards, cap_shards;
};

/* ---- broadcast.c ------------------------------------------------------------------------------------------------- */

/* Is the task a copy that the pass cuts?  The others stay whole, where they are. */
bool is_broadcast(const struct task *task);

/* The first of a device's queues that sends: 0, the main queue, or 1. */
int first_sending_queue(const struct broadcast *broadcast);

/* How many of a device's queues send. */
int count_sending_queues(const struct broadcast *broadcast);

/* Finds the messages of the list, cuts their shards into slices, deals these to queues and sends them, in an edit that
 * stays open: the caller commits or undoes it.  Fills in messages and shards, for free_messages(). */
struct edit *slice_list(struct broadcast *broadcast);

/* The part of the message that lies in slice `nth` of the message's shard. */
struct message_part part_in_slice(const struct broadcast *broadcast, const struct message *message, int nth);
void free_messages(struct broadcast *broadcast); /* what slice_list() has allocated, but not `broadcast` itself */

/* ---- broadcast_pass.c -------------------------------------------------------------------------------------------- */

/* What the command line asks for.  Only the table of options writes it. */
extern struct broadcast_options asked_broadcast;

#endif
