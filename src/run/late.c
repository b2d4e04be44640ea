/* late.c - tasks whose running is decided late: those of snapshots, and those that need a choice.
 *
 * What needs a choice finds it in a word of memory, when all that it waits for has ended (struct task: needs).  A copy
 * of a snapshot may need one too: of an update that may run on either side, both sides have copies into the buffer.
 *
 * Tasks of snapshots are in the list once for every slot of the file.  Which slot an iteration gets, if any, is decided
 * when its first unit has been updated.  When tasks are issued, up to two iterations ahead, it would be too soon: slots
 * are held then that will be free.  So what waits for them is given a user event, and
 *
 *     a copy        is a job of its lane's thread: it waits for the update, asks, and then issues the copy to the
 *                   lane's queue, or completes the event; the next update waits for it either way
 *     a host task   is parked here, and given to its lane, the disk's, when its slot is chosen
 *
 * Nothing in the list waits for those host tasks, since a slot is free only when all that was written to it has ended.
 * So the disk's lane has only tasks that run, and no queue and no count of runs in flight (retire.c) knows of them:
 * however slow the disk is, training never waits for it.
 *
 * At most MOST_RUNS iterations are undecided: an iteration's updates wait for the copies of the one before.
 */
#include "run.h"

struct iteration { /* and what was chosen for it */
    uint32_t number;
    bool decided;
    int slot;
    struct job *parked, **end; /* in list order */
};
struct late {
    slot_chooser *next_slot;
    void *context;
    pthread_mutex_t lock; /* guards what follows, and is held while one chooses, which waits for nothing */
    struct iteration iteration[MOST_RUNS];
    struct job *ended, **end; /* in the order of their ends */
};

void start_late(struct step *s, slot_chooser *next_slot, void *context)
{
    struct late *l = s->running->late = allocate(1, sizeof *l);
    l->next_slot = next_slot;
    l->context = context;
    l->end = &l->ended;
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
    if (t->slot == c->slot)
        give_job(&t->lane->thread, t->lane->name, job);
    else
        drop_job(job);
}

bool is_decided_late(const struct task *t) { return t->slot || t->needs; }

bool goes_ahead(struct step *s, const struct task *t, uint32_t number)
{
    struct late *l = s->running->late;
    if (!t->slot || !has_needed(t)) /* (who has nothing to store chooses no slot) */
        return has_needed(t);
    if (!l)
        return false;
    pthread_mutex_lock(&l->lock);
    struct iteration *c = iteration_of(l, number);
    if (!c->decided) {
        c->slot = l->next_slot(l->context, number);
        c->decided = true;
        for (struct job *job = c->parked, *next; job; job = next) {
            next = job->next;
            settle_job(c, job);
        }
    }
    bool yes = c->slot == t->slot;
    pthread_mutex_unlock(&l->lock);
    return yes;
}

/* ---- host tasks ------------------------------------------------------------------------------------------------ */

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
    kept->slot = &kept->own;
    kept->own = (struct slot){.number = job->number, .queued = now_ns()};
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
