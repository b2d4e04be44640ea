/* late.c - tasks whose running is decided late: those of snapshots.
 *
 * They are in the list once for every slot of the file.  Which slot an iteration gets, if any, is decided when its
 * first unit has been updated.  When tasks are issued, up to two iterations ahead, it would be too soon: slots are
 * held then that will be free.  So what waits for them is given a user event, and
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

struct choice { /* of an iteration */
    uint32_t number;
    bool decided;
    int slot;
    struct job **parked; /* in list order */
    size_t n, cap;
};
struct ended {
    size_t task;
    struct slot *slot;
};
struct late {
    slot_chooser *choose;
    void *context;
    pthread_mutex_t lock; /* guards what follows, and is held while one chooses, which waits for nothing */
    struct choice choice[MOST_RUNS];
    struct ended *ended;
    size_t n_ended, taken, cap_ended;
};

void start_late(struct step *s, slot_chooser *choose, void *context)
{
    struct late *l = s->running->late = allocate(1, sizeof *l);
    l->choose = choose;
    l->context = context;
    pthread_mutex_init(&l->lock, NULL);
}

void stop_late(struct step *s)
{
    struct late *l = s->running->late;
    s->running->late = NULL;
    pthread_mutex_destroy(&l->lock);
    for (int i = 0; i < MOST_RUNS; i++)
        free(l->choice[i].parked);
    free(l->ended);
    free(l);
}

/* ---- choosing -------------------------------------------------------------------------------------------------- */

static struct choice *choice_of(struct late *l, uint32_t number)
{
    struct choice *c = &l->choice[number % MOST_RUNS];
    if (c->number != number)
        c->decided = false;
    c->number = number;
    return c;
}

static void settle_job(const struct choice *c, struct job *job)
{
    struct task *t = job->step->task[job->task];
    if (t->slot == c->slot) {
        give_job(&t->lane->thread, t->lane->name, job);
    } else {
        free(job->slot);
        drop_job(job);
    }
}

static bool is_chosen(struct step *s, const struct task *t, uint32_t number)
{
    struct late *l = s->running->late;
    if (!l)
        return false;
    pthread_mutex_lock(&l->lock);
    struct choice *c = choice_of(l, number);
    if (!c->decided)
        c->slot = l->choose(l->context, number);
    for (size_t i = 0; i < c->n; i++)
        settle_job(c, c->parked[i]);
    c->n = 0;
    c->decided = true;
    bool yes = c->slot == t->slot;
    pthread_mutex_unlock(&l->lock);
    return yes;
}

bool is_decided_late(const struct task *t) { return t->slot || t->needs; }

bool goes_ahead(struct step *s, const struct task *t, uint32_t number)
{
    return t->slot ? is_chosen(s, t, number) : has_needed(t);
}

/* ---- host tasks ------------------------------------------------------------------------------------------------ */

static void note_ended(const struct job *job)
{
    struct late *l = job->step->running->late;
    pthread_mutex_lock(&l->lock);
    *APPEND(l->ended, l->n_ended, l->cap_ended) = (struct ended){job->task, job->slot};
    pthread_mutex_unlock(&l->lock);
}

void park_job(struct step *s, const struct job *job)
{
    struct late *l = s->running->late;
    struct job *kept = keep_job(job);
    kept->goes = NULL;
    kept->ended = note_ended;
    kept->slot = allocate(1, sizeof *kept->slot);
    *kept->slot = (struct slot){.number = job->number, .queued = now_ns()};
    pthread_mutex_lock(&l->lock);
    struct choice *c = choice_of(l, job->number);
    if (c->decided)
        settle_job(c, kept);
    else
        *APPEND(c->parked, c->n, c->cap) = kept;
    pthread_mutex_unlock(&l->lock);
}

bool take_ended(struct step *s, struct task **t, struct slot **slot)
{
    struct late *l = s->running->late;
    if (!l)
        return false;
    pthread_mutex_lock(&l->lock);
    bool some = l->taken < l->n_ended;
    if (some) {
        *t = s->task[l->ended[l->taken].task];
        *slot = l->ended[l->taken++].slot;
    } else
        l->taken = l->n_ended = 0;
    pthread_mutex_unlock(&l->lock);
    return some;
}
