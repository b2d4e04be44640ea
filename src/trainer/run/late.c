/* late.c - tasks of which it is decided late whether they run: those that need a choice, which is a word in memory by
 * then, and those of a slot.
 *
 * What stores state is in the list once for every slot (step/condition.c).  Which slot an iteration gets, if any, is
 * decided when its first state has been updated.  When tasks are issued, up to two iterations ahead, it would be too
 * soon: slots are held then that will be free.  So what waits for them is given a user event, and
 *
 *     a copy of state            is a job of its lane's thread: it waits for the update, asks, and then issues the copy
 *                                to the lane's queue (or runs it, on a lane of the host), or completes the event; the
 *                                next update waits for it either way
 *     what stands aside          is parked here, and given to its lane when its slot is chosen: persist and commit,
 *                                and what comes down from a copy on the device
 *
 * Only tasks of the same iteration and slot wait for those, by an event: a slot is free only when all that was written
 * to it has ended.  So their lanes have only tasks that run, and no queue and no count of runs in flight (retire.c)
 * knows of them: however slow disk and link are, training never waits for them.
 *
 * iteration[] is used again after MOST_RUNS iterations.  All copies of an iteration have asked by then, since the
 * updates of the next one wait for them.
 */
#include "run.h"

struct iteration { /* and what was chosen for it */
    uint32_t number;
    bool decided;
    int slot;
    struct job *parked, **end; /* in list order */
};
struct late {
    slot_chooser *pick_slot;
    void *context;
    pthread_mutex_t lock; /* guards what follows, and is held while one chooses, which waits for nothing */
    struct iteration iteration[MOST_RUNS];
    struct job *ended, **end; /* in the order of their ends */
};

void start_late(struct step *s, slot_chooser *pick_slot, void *context)
{
    struct late *l = s->running->late = allocate(1, sizeof *l);
    *l = (struct late){.pick_slot = pick_slot, .context = context, .end = &l->ended};
    pthread_mutex_init(&l->lock, NULL);
}

void stop_late(struct step *s)
{
    pthread_mutex_destroy(&s->running->late->lock);
    free(s->running->late);
    s->running->late = NULL;
}

/* ---- choosing -------------------------------------------------------------------------------------------------- */

static struct iteration *iteration_of(struct late *l, uint32_t number)
{
    struct iteration *c = &l->iteration[number % MOST_RUNS];
    if (c->number != number)
        *c = (struct iteration){.number = number, .end = &c->parked};
    return c;
}

static void settle_job(const struct iteration *c, struct job *job)
{
    struct task *t = job->step->task[job->task];
    if (t->condition.slot == c->slot)
        give_job_aside(&t->lane->aside, t->lane->name, job);
    else
        drop_job(job);
}

bool is_decided_late(const struct task *t) { return t->condition.slot || t->condition.needs; }

bool decide_late(struct step *s, const struct task *t, uint32_t number)
{
    struct late *l = s->running->late;
    if (!t->condition.slot || !has_needed(t)) /* (who has nothing to store chooses no slot) */
        return has_needed(t);
    if (!l)
        return false;
    pthread_mutex_lock(&l->lock);
    struct iteration *c = iteration_of(l, number);
    if (!c->decided) {
        c->slot = l->pick_slot(l->context, number);
        c->decided = true;
        for (struct job *job = c->parked, *next; job; job = next) {
            next = job->next;
            settle_job(c, job);
        }
    }
    bool yes = c->slot == t->condition.slot;
    pthread_mutex_unlock(&l->lock);
    return yes;
}

/* ---- what stands aside ----------------------------------------------------------------------------------------- */

static void note_ended(struct job *job)
{
    struct late *l = job->step->running->late;
    pthread_mutex_lock(&l->lock);
    job->next = NULL;
    *l->end = job;
    l->end = &job->next;
    pthread_mutex_unlock(&l->lock);
}

void park_job(struct step *s, const struct job *job)
{
    struct late *l = s->running->late;
    struct job *kept = keep_job(job);
    kept->goes = NULL;
    kept->ended = note_ended;
    kept->flight = &kept->own;
    kept->own = (struct task_flight){.number = job->number, .queued = now_ns()};
    pthread_mutex_lock(&l->lock);
    struct iteration *c = iteration_of(l, job->number);
    if (c->decided)
        settle_job(c, kept);
    else {
        *c->end = kept;
        c->end = &kept->next;
    }
    pthread_mutex_unlock(&l->lock);
}

struct job *take_ended(struct step *s)
{
    struct late *l = s->running->late;
    if (!l)
        return NULL;
    pthread_mutex_lock(&l->lock);
    struct job *all = l->ended;
    l->ended = NULL;
    l->end = &l->ended;
    pthread_mutex_unlock(&l->lock);
    return all;
}
