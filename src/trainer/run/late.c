/* late.c - issues tasks that may be skipped at the last moment.
 *
 * Whether such a task is skipped is decided *late*, when all that it waits for has ended (decide_late()):
 *
 *     it needs bits of a side word        it runs if the word, which is written by then, has them
 *     it needs a slot (step/slots.c)      it runs if its iteration has been given a slot
 *
 * An iteration asks for its slot when the first of its tasks that need one could run.  When its tasks are issued, up to
 * two iterations ahead, it would be too soon: a slot that is taken then may be free by the time the copy runs.
 *
 * A task in its lane is a job of the lane's thread (issue_late()), which waits, decides, and does the task or nothing.
 * Its event ends in either case, so tasks that wait for it need not know whether it ran.
 *
 * A task that stands aside is a job outside of its lane, in one state after another:
 *
 *     state    meaning                                                               function
 *     parked   its iteration has not asked                                           park_task()
 *     asked    has a slot: a thread beside the lane's own runs it; none: it is freed run_or_free(), run_aside()
 *     ended    it waits until it is reported, and then it is freed                   retire_parked()
 *
 * Iterations ask in their order, since the updates of an iteration wait for the copies of the iteration before.
 *
 * A job that stands aside is not among the instances of any lane, and is not counted as in flight (wait_to_issue()).
 * So training never waits for the disk and its link, however slow they are.
 *
 * Only tasks of the same iteration wait for a task that stands aside, by an event (`parked`), and stand aside too.
 * Those of later ones that use the same bytes need not wait, and no edge says so (connects() in depend.c): a slot is
 * free only when all that was written to it has ended.
 */
#include "run_parts.h"

void start_late(struct list *list, slot_asker *ask, void *context)
{
    const struct late_tasks late_tasks = {.ask = ask, .context = context};
    list->running->late_tasks = copy_bytes(&late_tasks, sizeof late_tasks);
    pthread_mutex_init(&list->running->late_tasks->lock, NULL);
}

void stop_late(struct list *list)
{
    pthread_mutex_destroy(&list->running->late_tasks->lock);
    free(list->running->late_tasks);
    list->running->late_tasks = NULL;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static bool has_slot(const struct list *list, uint32_t iteration) { return slot_of(&list->pool->slots, iteration) > 0; }

/* Its iteration has asked: a parked job runs if the iteration was given a slot. */
static void run_or_free(struct job *job)
{
    const struct task *task = job->task;
    if (has_slot(job->list, job->iteration)) {
        give_job(task->lane, ASIDE_THREAD, job);
    } else {
        free(job->flight);
        free_job(job);
    }
}

/* The iteration asks for its slot.  Its parked jobs, which come first in the chain, are then given to a thread, or
 * freed. */
static void request_slot(struct late_tasks *late_tasks, uint32_t iteration)
{
    late_tasks->ask(late_tasks->context, iteration);
    late_tasks->last_request = iteration;
    while (late_tasks->parked.first && late_tasks->parked.first->iteration == iteration)
        run_or_free(take_job(&late_tasks->parked));
}

bool decide_late(struct list *list, const struct task *task, uint32_t iteration)
{
    struct late_tasks *late_tasks = list->running->late_tasks;
    if (!word_allows(task))
        return false; /* such a task stores nothing, so the iteration does not ask for a slot because of it */
    if (!task->extra.slot.needed)
        return true;
    if (!late_tasks)
        return false;
    pthread_mutex_lock(&late_tasks->lock);
    if (late_tasks->last_request < iteration)
        request_slot(late_tasks, iteration);
    bool has_one = has_slot(list, iteration);
    pthread_mutex_unlock(&late_tasks->lock);
    return has_one;
}

/* ---- tasks in their lanes ---------------------------------------------------------------------------------------- */

/* Decides whether the job's task runs, whose events have ended with that status: sets its flight's `skipped`. */
static void decide_job(struct job *job, cl_int status)
{
    const struct task *task = job->task;
    job->flight->skipped = status < 0 || !decide_late(job->list, task, job->iteration);
}

static void end_late(struct job *job, cl_int status)
{
    if (!job->flight->skipped)
        hold_back(job);
    end_job(job, status);
}

/* Runs a task of the host, unless it is skipped. */
static void run_late(struct job *job, cl_int status)
{
    decide_job(job, status);
    if (!job->flight->skipped)
        do_host_task(job);
    end_late(job, status);
}

/* Issues the copy, unless it is skipped.  The forwarder gets the job even then, since the tasks of a lane must end in
 * order; it waits again for the same events, which have ended. */
static void issue_late_copy(struct job *job, cl_int status)
{
    const struct issue issue = {.list = job->list, .task = job->task, .iteration = job->iteration};
    struct lane *lane = job->task->lane;
    cl_event *work = &job->flight->work;
    decide_job(job, status);
    if (!job->flight->skipped) {
        enqueue(&issue, work);
        CL(clFlush(lane->queue));
        set_waits(job, work, 1);
    }
    job->when_ready = end_late;
    give_job(lane, FORWARDER, job);
}

void issue_late(const struct issue *issue)
{
    const struct task *task = issue->task;
    struct task_flight *flight = begin_flight(issue->list, task, issue->iteration);
    give_to_lane(new_job(issue, flight, task->lane->device->is_host ? run_late : issue_late_copy));
}

/* ---- tasks that stand aside -------------------------------------------------------------------------------------- */

/* No task of the training waits for jobs that stand aside, which would otherwise take host cores from tasks that are
 * waited for.  A low priority would not do: it is a share, which comes in slices that the others wait for.  From a
 * thread of priority idle, any other thread that wakes up takes the core at once.
 *
 * Such jobs have a thread of their own.  The lane's thread cannot run them: once its priority is idle, it cannot get
 * the old one back without privileges, and jobs that training waits for would then wait for every other program. */
void make_idle(void)
{
#ifdef __linux__
    const struct sched_param none = {0};
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
#endif
}

/* Runs the task and waits for its end.  The job then waits for retire_parked(). */
static void run_aside(struct job *job, cl_int status)
{
    struct late_tasks *late_tasks = job->list->running->late_tasks;
    make_idle();
    if (status == CL_COMPLETE)
        run_alone(job->list, job->task, job->iteration, job->flight);
    hold_back(job);
    pthread_mutex_lock(&late_tasks->lock);
    complete_events(job, status);
    append_job(&late_tasks->ended, job);
    pthread_mutex_unlock(&late_tasks->lock);
}

/* The instance also waits for those of its iteration that are parked before it: they have no flights, whose events
 * gather_waits() would find. */
static void wait_for_parked(struct issue *issue)
{
    const struct task *task = issue->task;
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
        const struct task *producer = issue->list->tasks[edge->producer];
        if (!producer->extra.slot.aside || edge->previous)
            continue;
        issue->wait_list[issue->n_wait++] = issue->list->running->task_instances[producer->index].parked;
    }
}

/* Parks the job, or runs or frees it, if its iteration has asked. */
static void park_job(struct job *job)
{
    struct late_tasks *late_tasks = job->list->running->late_tasks;
    pthread_mutex_lock(&late_tasks->lock);
    if (late_tasks->last_request < job->iteration)
        append_job(&late_tasks->parked, job);
    else
        run_or_free(job);
    pthread_mutex_unlock(&late_tasks->lock);
}

void park_task(struct issue *issue)
{
    cl_event *parked = &issue->list->running->task_instances[issue->task->index].parked;
    const struct task_flight flight = {.iteration = issue->iteration, .queued = now_ns()};
    wait_for_parked(issue);
    /* The instance takes none of its task's flights, but has its own. */
    struct job *job = new_job(issue, copy_bytes(&flight, sizeof flight), run_aside);
    if (*parked)
        CL(clReleaseEvent(*parked));
    *parked = add_user_event(job, event_context(issue->task));
    park_job(job);
}
