/* role.h - what a task is for: passes and printers ask for a task's role, never for its name.
 *
 * The roles of techniques are here too: a pass asks for those of other folders (a snapshot looks for the copies of
 * updates on the CPU), and a trace numbers them all.  Names of roles are in task.c.
 */
#ifndef ROLE_H
#define ROLE_H

enum role {
    ROLE_OTHER,
    ROLE_FORWARD,
    ROLE_BACKWARD,
    ROLE_REDUCE, /* sums gradients over ranks */
    ROLE_NORM,
    ROLE_UPDATE,
    ROLE_BROADCAST,               /* brings to all ranks what an update made, or, without ZeRO, a summed gradient */
    ROLE_SEND,                    /* copies activations or gradients between pipeline stages */
    ROLE_FEED,                    /* brings batches and settings in */
    ROLE_REPORT,                  /* takes results out */
    ROLES_BY_HAND,                /* roles before this one are words of step files; only passes use the others */
    ROLE_OFFLOAD = ROLES_BY_HAND, /* copies between an update on the CPU and its device */
    ROLE_SWAP,                    /* takes bytes from a device for a while, and brings them back */
    ROLE_SNAPSHOT,                /* stores what an update made */
    ROLES
};
extern const char *const role_name[ROLES];

struct tags {  /* labels: passes and tools group tasks by them, and no edge follows from them */
    int layer; /* its layer, or NONE where it has no single one */
    int micro; /* its micro-batch, or NONE where it has no single one */
    enum role role;
};

#endif
