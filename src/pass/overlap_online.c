/* overlap_online.c - the rules `local` and `slack` where they belong: in the running step, at the end of each layer's
 * backward.
 *
 * An update that may run on either side is in the list twice, and so is what it changes: parameters and Adam's state
 * are on the device and on the host.  A *choice task* of the host says in a word of memory which of the two works this
 * time, and whether it was the other one before; what else is in the list for this update looks at the word first:
 *
 *     task                              works when the word says
 *     choose     backward has ended     always: writes the word, which is then copied to the device
 *     fetch      state to the host      CPU, and it was the device before
 *     return     state to the device    device, and it was the CPU before
 *     adamw      on the device          device: the kernel is launched in any case, and ends at once
 *     down       gradients              CPU
 *     adamw      on the host            CPU
 *     up         parameters             CPU
 *
 * Run as a whole the list computes the same update twice: what is fetched, returned or brought up is what is there
 * already.  That is what is placed, ordered and proved, and that every task looks at the word of its own step.  Whoever
 * leaves one side out leaves values there that nobody reads before fetch or return has made them new: for that there is
 * no proof, but trainings with choices at random (tests/test_overlap.c).  The device's parameters are valid at the end
 * of every update; its state is when the list has been drained (run/execute.c).  Before the first step both sides are.
 *
 * What the host has still to do is known from when its updates begin and end, and from how long each took the last
 * time; one that has not been there for a while goes back, bit by bit, to what was predicted.
 */
#include "../../cl/shared.h" /* defines: choice_bit */
#include "overlap.h"
#include "pass.h"

#include <math.h>
#include <pthread.h>

struct choice { /* of an update */
    struct choices *all;
    host_function *work;
    const struct lane *lane;            /* the device's */
    double device, predicted, down, up; /* seconds; on the CPU as predicted */
    double gate, due;                   /* from the end of its backward: to its gate, and to when it is needed */
    bool moves_due;                     /* the device's updates before it come between the two */
    uint32_t pieces;                    /* on the host */

    /* guarded by `lock` */
    uint32_t number; /* of the iteration that it was last made in */
    bool on_cpu;
    double host;    /* seconds on the CPU: the last time's */
    uint64_t begun; /* when the first piece did, 0: not yet */
    uint32_t left;  /* pieces that have not ended */
    uint32_t taken[2], moved;
};
struct choices { /* of a list */
    struct online rule;
    size_t n;
    struct choice choice[];
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the rules --------------------------------------------------------------------------------------------------- */

static double seconds_left(const struct choice *c, uint64_t now)
{
    if (!c->left)
        return 0;
    return c->begun ? fmax(c->host - 1e-9 * (double)(now - c->begun), 0) : c->host;
}

static bool prefers_cpu(const struct choice *c, uint32_t number, uint64_t now)
{
    const struct choices *all = c->all;
    double backlog = 0, due = c->due;
    for (const struct choice *k = all->choice; k < all->choice + all->n; k++) {
        backlog += seconds_left(k, now);
        if (c->moves_due && k->lane == c->lane && k->number == number && !k->on_cpu)
            due += k->device;
    }
    double late = fmax(fmax(backlog, c->down), c->gate) + c->host + c->up - due;
    return (all->rule.by_slack ? late : backlog) <= c->device;
}

static void choose(struct choice *c, uint32_t number)
{
    const struct choices *all = c->all;
    c->number = number;
    c->on_cpu = all->rule.at_random
                    ? random_uniform(all->rule.seed, STREAM_CHOICE, number, (uint64_t)(c - all->choice)) < 0.5
                    : prefers_cpu(c, number, now_ns());
    c->left = c->on_cpu ? c->pieces : 0;
    c->begun = 0;
    if (!c->on_cpu)
        c->host += (c->predicted - c->host) / 8;
    c->taken[c->on_cpu]++;
}

/* Writes access 0.  Asked again in the same iteration, as by an audit, it says the same. */
static void make_choice(void *context, const struct task *t, uint32_t number)
{
    struct choice *c = context;
    int32_t *word = tensor_memory(t->access[0].tensor), before = *word;
    pthread_mutex_lock(&lock);
    bool again = c->number == number;
    if (!again)
        choose(c, number);
    *word = c->on_cpu ? CHOICE_CPU : CHOICE_DEVICE;
    bool moves = before && !(before & *word);
    *word |= moves ? CHOICE_MOVED : 0;
    c->moved += moves && !again;
    pthread_mutex_unlock(&lock);
}

static void update_timed(void *context, const struct task *t, uint32_t number)
{
    struct choice *c = context;
    pthread_mutex_lock(&lock);
    if (!c->begun)
        c->begun = now_ns();
    pthread_mutex_unlock(&lock);
    c->work(NULL, t, number);
    pthread_mutex_lock(&lock);
    if (c->left && --c->left == 0)
        c->host = 1e-9 * (double)(now_ns() - c->begun);
    pthread_mutex_unlock(&lock);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static struct tensor *new_word(struct mover *m, struct device *d)
{
    struct tensor *word = new_tensor(m->step->pool, d, MEM_WORK, "choice", INT32, 1, (int64_t[]){1});
    word->persistent = word->choice = true;
    return word;
}

/* The task works when it reads all those bits. */
static void set_needs(struct task *t, struct tensor *word, int bits, bool idle)
{
    size_t bytes = t->bytes;
    add_access(t, word, ACCESS_READ);
    t->bytes = bytes;
    t->needs = word->device->is_host ? bits : 0; /* a kernel looks for itself */
    t->idle = idle;
}

/* The choice task, behind what makes the gradient of the update there, and the word's way to the device. */
static void add_choice(struct mover *m, struct choice *c, size_t position, struct tensor *word, struct tensor *there)
{
    struct step *s = m->step;
    struct task *t = s->task[position];
    int maker = NOWHERE;
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].tensor->class == MEM_GRADIENTS)
            maker = MAX(maker, find_maker(s, position, t->access[i].tensor));
    CHECK(maker != NOWHERE, "nobody makes the gradient that task %s reads", t->name);
    insert_behind(m->edit, m->copied[maker] ? m->copied[maker] : s->task[maker]);
    s->stamp = (struct stamp){t->layer, -1, ROLE_OFFLOAD};
    struct task *chooses = add_host(s, open_lane(s->pool->machine, m->host, LANE_FEED, 1), "choose", make_choice, c);
    add_access(chooses, word, ACCESS_BOTH);
    for (int i = 0; i < t->n_access; i++) /* that it comes behind, and does not look at */
        if (t->access[i].tensor->class == MEM_GRADIENTS)
            add_access(chooses, t->access[i].tensor, ACCESS_READ);
    chooses->bytes = 0;
    m->copied[maker] = m->chosen =
        add_copy(s, copy_lane(m, there->device, LANE_UPLOAD, CHOICE_LANE), "choice", there, word);
}

/* The update once more, before t: its kernel's last argument is the word. */
static struct task *keep_on_device(struct mover *m, struct task *t, struct tensor *word, bool idle)
{
    insert_before(m->edit, t);
    struct task *mine = repeat(m->edit, t);
    struct arg *last = &mine->args[mine->n_args - 1];
    CHECK(last->kind == ARG_TENSOR && last->i < 0, "kernel %s has no argument for a choice", t->function);
    last->i = mine->n_access;
    set_needs(mine, word, CHOICE_DEVICE, idle);
    return mine;
}

/* What the host's update keeps for itself comes and goes, before the device's. */
static void move_state(struct mover *m, const struct task *update, struct task *device, struct tensor *word)
{
    struct step *s = m->step;
    insert_before(m->edit, device);
    s->stamp.role = ROLE_OFFLOAD;
    for (int i = 0; i < update->n_access; i++) {
        struct tensor *here = update->access[i].tensor->root;
        const struct tensor *of = here->mirrors;
        if (!of)
            continue;
        struct tensor *there = new_range(s->pool, of->root, of->name, of->offset, of->offset + of->bytes);
        set_needs(add_copy(s, copy_lane(m, of->device, LANE_DOWNLOAD, STATE_LANE), "overlap.fetch", here, there), word,
                  CHOICE_CPU | CHOICE_MOVED, true);
        if (here->class == MEM_OPTIMIZER)
            set_needs(add_copy(s, copy_lane(m, of->device, LANE_UPLOAD, STATE_LANE), "overlap.return", there, here),
                      word, CHOICE_DEVICE | CHOICE_MOVED, true);
    }
}

/* A task that moving the update has added: its pieces on the host and their copies depend on the choice; what all
 * updates read comes in any case, on a lane where no copy is decided late. */
static void depend_on(struct mover *m, struct task *t, struct choice *c, struct tensor *word, bool idle)
{
    bool update = t->role == ROLE_UPDATE && t->lane->device->is_host;
    enum memory_class class = t->access[0].tensor->class;
    if (t->copy && class != MEM_GRADIENTS && class != MEM_PARAMETERS)
        set_lane(m->edit, t, copy_lane(m, t->lane->device, LANE_DOWNLOAD, CHOICE_LANE));
    else if (update || t->copy)
        set_needs(t, word, CHOICE_CPU, idle);
    if (!update)
        return;
    t->run = update_timed;
    t->context = c;
    c->pieces++;
}

static void offer(struct mover *m, struct choice *c, size_t position, bool expected)
{
    struct step *s = m->step;
    struct task *t = s->task[position];
    struct tensor *word = new_word(m, m->host), *there = new_word(m, t->lane->device);
    add_choice(m, c, position, word, there);
    struct task *device = keep_on_device(m, t, there, expected);
    size_t first = s->n;
    move_task(m, position);
    for (size_t i = first, end = s->n; i < end; i++) {
        depend_on(m, s->task[i], c, word, !expected);
        if (s->task[i]->run == update_timed)
            move_state(m, s->task[i], device, word);
    }
}

/* An update has its share of what its layer's tasks take together. */
static struct choice new_choice(const struct mover *m, size_t n, size_t position)
{
    const struct offloads *o = m->list;
    const struct task *t = m->step->task[position];
    const struct offload *u = &o->timing.update[o->update_at[position]];
    double bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += o->update_at[i] == o->update_at[position] ? (double)m->step->task[i]->bytes : 0;
    double share = (double)t->bytes / bytes;
    return (struct choice){.all = m->step->choices,
                           .work = t->host_run,
                           .lane = t->lane,
                           .device = seconds_alone(o->online->costs, t),
                           .host = share * u->host,
                           .predicted = share * u->host,
                           .down = share * u->down.all,
                           .up = share * u->up.all,
                           .gate = fmax(u->gate - u->release, 0),
                           .due = o->timing.fixed + u->need - u->release,
                           .moves_due = !u->behind_updates};
}

void offer_updates(struct mover *m, const bool *expected)
{
    struct step *s = m->step;
    const int *update_at = m->list->update_at;
    size_t n = s->n;
    free(s->choices);
    struct choices *all = s->choices = allocate(1, sizeof *all + n * sizeof all->choice[0]);
    all->rule = *m->list->online;
    for (size_t i = 0; i < n; i++)
        if (update_at[i] != NOWHERE) {
            all->choice[all->n] = new_choice(m, n, i);
            offer(m, &all->choice[all->n++], i, expected[update_at[i]]);
        }
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

char *describe_choices(const struct step *s)
{
    unsigned cpu = 0, all = 0, moved = 0;
    for (size_t i = 0; s->choices && i < s->choices->n; i++) {
        const struct choice *c = &s->choices->choice[i];
        cpu += c->taken[true], all += c->taken[true] + c->taken[false], moved += c->moved;
    }
    return all ? format_string(
                     "the CPU was given %u of %u updates; %u of the %u changed sides, their state moved first", cpu,
                     all, moved, all)
               : NULL;
}
