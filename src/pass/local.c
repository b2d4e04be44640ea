/* local.c - --overlap local: the running step decides, at the end of each layer's backward, where its update runs.
 *
 * The rule.  To the CPU when what it still has to do takes no longer than this update on the device.  The CPU's backlog
 * is known from when its updates began and from how long each took the last time; one that has not been there for a
 * while goes back, bit by bit, to what was predicted.
 *
 * The rewrite.  An update that may run on either side is in the list twice, and so is what it changes: parameters and
 * Adam's state are on the device and on the host.  A *choice task* of the host says in a word of memory which of the
 * two works this time, and whether it was the other one before; what else is in the list for this update looks at the
 * word first:
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
 * The last maker of the gradients must stand before the update and its pieces, where move_update() left them: the
 * choice task comes right behind it.
 *
 * Run as a whole the list computes the same update twice: what is fetched, returned or brought up is what is there
 * already.  That is what is placed, ordered and proved, and that every task looks at the word of its own step.  Whoever
 * leaves one side out leaves values there that nobody reads before fetch or return has made them new: for that there is
 * no proof, but trainings with choices at random (tests/test_overlap.c).  The device's parameters are valid at the end
 * of every update; its state is when the list has been drained (run/execute.c).  Before the first step both sides are.
 *
 * Source: that of overlap.c.  Feature A7.
 */
#include "local.h"

#include "../../cl/shared.h" /* defines: choice_bit */
#include "pass.h"

#include <math.h>
#include <pthread.h>

struct choice {          /* of an update */
    struct choice *next; /* of the others of the list, in a ring */
    host_function *work;
    double device, predicted; /* seconds there, and on the CPU */
    uint32_t pieces;          /* on the host */
    bool drawn;
    uint64_t seed, nth;

    /* guarded by `lock` */
    uint32_t number; /* of the iteration that it was last made in */
    bool on_cpu;
    double host;    /* seconds on the CPU: the last time's */
    uint64_t begun; /* when the first piece did, 0: not yet */
    uint32_t left;  /* pieces that have not ended */
    uint32_t taken[2], moved;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the rule, in the running step ------------------------------------------------------------------------------- */

/* Of all updates that the CPU was given. */
static double backlog(const struct choice *c, uint64_t now)
{
    double sum = 0;
    const struct choice *k = c;
    do {
        double done = k->begun ? 1e-9 * (double)(now - k->begun) : 0;
        sum += k->left ? fmax(k->host - done, 0) : 0;
        k = k->next;
    } while (k != c);
    return sum;
}

/* Writes access 0.  Asked again in the same iteration, as by an audit, it says the same. */
static void make_choice(void *context, const struct task *t, uint32_t number)
{
    struct choice *c = context;
    int32_t *word = tensor_memory(t->access[0].tensor), before = *word;
    pthread_mutex_lock(&lock);
    bool again = c->number == number;
    if (!again) {
        c->number = number;
        c->on_cpu =
            c->drawn ? random_uniform(c->seed, STREAM_CHOICE, number, c->nth) < 0.5 : backlog(c, now_ns()) <= c->device;
        c->left = c->on_cpu ? c->pieces : 0;
        c->begun = 0;
        c->host += c->on_cpu ? 0 : (c->predicted - c->host) / 8;
        c->taken[c->on_cpu]++;
    }
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

char *describe_choices(const struct step *s)
{
    unsigned cpu = 0, all = 0, moved = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct choice *c = s->task[i]->run == make_choice ? s->task[i]->context : NULL;
        if (c)
            cpu += c->taken[true], all += c->taken[true] + c->taken[false], moved += c->moved;
    }
    return all ? format_string(
                     "the CPU was given %u of %u updates; %u of the %u changed sides, their state moved first", cpu,
                     all, moved, all)
               : NULL;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

struct offer { /* of one update to both sides */
    struct edit *edit;
    struct step *step;
    struct choice *choice;
    struct tensor *word, *word_there; /* on the host; on the device */
};

static struct tensor *new_word(struct step *s, struct device *d)
{
    struct tensor *word = new_tensor(s->pool, d, MEM_WORK, "choice", INT32, 1, (int64_t[]){1});
    word->persistent = word->choice = true;
    return word;
}

/* The task works when the word has all those bits.  (A kernel looks for itself.) */
static void depend_on_word(const struct offer *o, struct task *t, int bits, bool expected)
{
    size_t bytes = t->bytes;
    bool kernel = t->file;
    add_access(t, kernel ? o->word_there : o->word, ACCESS_READ);
    t->bytes = bytes;
    t->needs = kernel ? 0 : bits;
    if (!expected)
        t->seconds = 0; /* that is what it takes */
}

/* The choice task, behind the maker of the gradients, and the word's way to the device. */
static void add_choice(struct offer *o, const struct task *update, struct task *maker)
{
    struct step *s = o->step;
    insert_behind(o->edit, maker);
    s->tags = (struct tags){update->layer, -1, ROLE_OFFLOAD};
    struct machine *m = s->pool->machine;
    struct task *t = add_host(s, lane_for(m, m->host, LANE_FEED, FOR_CONTROL), "choose", make_choice, o->choice);
    t->description = sizeof *o->choice; /* it is the task's own */
    add_access(t, o->word, ACCESS_BOTH);
    for (int i = 0; i < update->n_access; i++) /* that it comes behind, and does not look at */
        if (update->access[i].tensor->class == MEM_GRADIENTS)
            add_access(t, update->access[i].tensor, ACCESS_READ);
    t->bytes = 0;
    carry(s, "choice", o->word_there, o->word, FOR_CONTROL);
}

/* The device's update once more, before the host's; its kernel's last argument is the word. */
static struct task *keep_on_device(const struct offer *o, const struct task *update, struct task *hosts)
{
    insert_before(o->edit, hosts);
    struct task *mine = repeat(o->edit, update);
    struct arg *last = &mine->args[mine->n_args - 1];
    CHECK(last->kind == ARG_TENSOR && last->i < 0, "kernel %s has no argument for a choice", update->function);
    last->i = mine->n_access;
    return mine;
}

/* What the host keeps for itself comes and goes, before both updates. */
static void move_state(const struct offer *o, const struct task *hosts, struct task *device)
{
    struct step *s = o->step;
    insert_before(o->edit, device);
    s->tags.role = ROLE_OFFLOAD;
    for (int i = 0; i < device->n_access; i++) {
        struct tensor *there = device->access[i].tensor, *mirror = hosts->access[i].tensor->storage;
        if (!mirror->mirrors)
            continue;
        size_t begin = there->offset - mirror->mirrors->offset;
        struct tensor *here = new_range(s->pool, mirror, there->name, begin, begin + there->bytes);
        depend_on_word(o, carry(s, "overlap.fetch", here, there, FOR_STATE), CHOICE_CPU | CHOICE_MOVED, false);
        if (there->class == MEM_OPTIMIZER)
            depend_on_word(o, carry(s, "overlap.return", there, here, FOR_STATE), CHOICE_DEVICE | CHOICE_MOVED, false);
    }
}

void offer_both(struct edit *e, struct step *s, struct local *how, struct task *update, struct task *maker,
                size_t first, enum side expected)
{
    struct choice *c = allocate(1, sizeof *c);
    struct machine *m = s->pool->machine;
    struct offer o = {e, s, c, new_word(s, m->host), new_word(s, update->lane->device)};
    struct task *hosts = NULL; /* the first piece */
    for (size_t i = first, end = s->n; i < end; i++) {
        struct task *t = s->task[i];
        enum memory_class class = t->copy ? t->access[0].tensor->class : MEM_CLASSES;
        bool piece = t->role == ROLE_UPDATE && t->lane->device->is_host;
        if (piece) {
            hosts = hosts ? hosts : t;
            c->work = t->run;
            c->pieces++;
            c->predicted += seconds_alone(how->costs, t) / how->cores;
            t->run = update_timed;
            t->context = c;
        }
        if (piece || class == MEM_GRADIENTS || class == MEM_PARAMETERS) /* (other copies serve many updates) */
            depend_on_word(&o, t, CHOICE_CPU, expected != ON_DEVICE);
    }
    add_choice(&o, update, maker);
    struct task *device = keep_on_device(&o, update, hosts);
    move_state(&o, hosts, device);
    depend_on_word(&o, device, CHOICE_DEVICE, expected == ON_DEVICE);
    c->device = seconds_alone(how->costs, update);
    c->host = c->predicted;
    c->drawn = how->drawn, c->seed = how->seed;
    c->nth = how->ring ? how->ring->nth + 1 : 0;
    c->next = how->ring ? how->ring->next : c;
    if (how->ring)
        how->ring->next = c;
    how->ring = c;
}

/* ---- the rule, asked before the step runs ------------------------------------------------------------------------ */

void choose_locally(const struct forecast *f, const struct bucket *bucket, size_t n, unsigned char *choice)
{
    double ready = INFINITY, cpu = 0, *ends = allocate(n + 1, sizeof *ends);
    for (size_t b = 0; b < n; b++) /* with clipping, the norm */
        ready = fmin(ready, f->span[bucket[b].first].start);
    for (size_t b = 0; b < n; b++) {
        const struct bucket *u = &bucket[b];
        double now = u->released < 0 ? 0 : f->span[u->released].end, left = 0;
        for (size_t k = 0; k < b; k++) /* what the device does not do comes off its time */
            if (choice[k] == ON_CPU && (int)bucket[k].first < u->released &&
                f->task[bucket[k].first]->lane == f->task[u->first]->lane)
                now -= bucket[k].device;
        for (size_t k = 0; k < b; k++)
            left += choice[k] == ON_CPU ? fmin(fmax(ends[k] - now, 0), bucket[k].host) : 0;
        choice[b] = left <= u->device * (1 + 1e-9) ? ON_CPU : ON_DEVICE; /* (a tie, but for rounding) */
        if (choice[b] == ON_CPU)
            ends[b] = cpu = fmax(fmax(cpu, now + u->down), ready) + u->host;
    }
    free(ends);
}
