/* task_kinds.c - what a task is: its role, or one of three kinds that no role tells. */
#include "track.h"

/* A task that is just called `backward` is a whole one: where weights are sent to the device for each task, their class
 * does not tell that it reads them. */
size_t kind_of_task(const struct trace *trace, const struct trace_task *task)
{
    uint32_t lane = trace->lanes[task->lane].kind;
    if (task->of_weights && strcmp(task->name, trace->header.role[task->role]) != 0)
        return KIND_WEIGHTS;
    if (lane == LANE_UPLOAD && has_role(trace, task, "other"))
        return KIND_UPLOAD;
    if (lane == LANE_DOWNLOAD && has_role(trace, task, "other"))
        return KIND_DOWNLOAD;
    return task->role;
}

const char *kind_name(const struct trace *trace, size_t kind)
{
    static const char *const names[] = {"backward of weights", "upload", "download"};
    return kind < TRACE_ROLES ? trace->header.role[kind] : names[kind - TRACE_ROLES];
}
