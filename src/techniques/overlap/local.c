/* local.c - --overlap local: the running step decides, at the end of each layer's backward, where its update runs.
 *
 * The rule.  To the CPU when what it still has to do takes no longer than this update on the device.  The CPU's backlog
 * is known from when its updates began and from how long each took the last time; one that has not been there for a
 * while goes back, bit by bit, to what was predicted.
 *
 * The rewrite.  An update that may run on either side is in the list twice, and so is what it changes: parameters and
 * Adam's state are on the device and on the host.  A *choice task* of the host says in a word of memory which of the
 * two works this time, and whether it was the other one before; what else is in the list for this update looks at the
 * word first (both: parameters and state):
 *
 *     task                              works when the word says
 *     choose     backward has ended     always: writes the word, which is then copied to the device
 *     fetch      both to the host       CPU, and it was the device before
 *     return     state to the device    device, and it was the CPU before
 *     adamw      on the device          device: the kernel is launched in any case, and ends at once
 *     down       gradients              CPU
 *     adamw      on the host            CPU
 *     up         parameters             CPU
 *
 * The choice task stands right behind the task that makes the last of the update's gradients, and so before all that
 * looks at the word: move_update() has put the copies down behind the same task, and both updates stand behind it.
 *
 * Run as a whole the list computes the same update twice: what is fetched, returned or brought up is what is there
 * already.  That is what is placed, ordered and proved, and that every task looks at the word of its own step.  Whoever
 * leaves one side out leaves values there that nobody reads before fetch or return has made them new: for that there is
 * no proof, but trainings with choices at random (tests/test_overlap.c).  The device's parameters are valid at the end
 * of every update; its state is when the list has been drained (bring_back()).  Before the first step both sides are.
 *
 * Source: that of overlap.c.
 */
#include "local.h"

#include "../../../cl/shared.h" /* defines: choice_bit */
#include "trainer/run/run.h"

#include <math.h>
#include <pthread.h>

struct chooser {          /* of an update */
    struct chooser *next; /* of the others of the list, in a ring */
    host_function *work;
    double device_takes, cpu_should_take; /* seconds, as predicted */
    uint32_t pieces;                      /* on the host */
    bool drawn;
    uint64_t seed, nth;

    /* guarded by `lock` */
    uint32_t number; /* of the iteration in which it was asked last */
    bool on_cpu;
    double cpu_takes; /* seconds: the last time's */
    uint64_t begun;   /* when the first piece did, 0: not yet */
    uint32_t left;    /* pieces that have not ended */
    uint32_t taken[2], moved;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the rule, in the running step ------------------------------------------------------------------------------- */

/* Of all updates that the CPU was given. */
static double backlog(const struct chooser *c, uint64_t now)
{
    double sum = 0;
    const struct chooser *k = c;
    do {
        double done = k->begun ? 1e-9 * (double)(now - k->begun) : 0;
        sum += k->left ? fmax(k->cpu_takes - done, 0) : 0;
        k = k->next;
    } while (k != c);
    return sum;
}

/* Writes access 0.  Asked again in the same iteration, as by an audit, it says the same. */
static void make_choice(void *context, const struct task *t, uint32_t number)
{
    struct chooser *c = context;
    int32_t *word = tensor_memory(t->access[0].tensor), before = *word;
    pthread_mutex_lock(&lock);
    bool again = c->number == number;
    if (!again) {
        c->number = number;
        c->on_cpu = c->drawn ? random_uniform(c->seed, STREAM_CHOICE, number, c->nth) < 0.5
                             : backlog(c, now_ns()) <= c->device_takes;
        c->left = c->on_cpu ? c->pieces : 0;
        c->begun = 0;
        c->cpu_takes += c->on_cpu ? 0 : (c->cpu_should_take - c->cpu_takes) / 8;
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
    struct chooser *c = context;
    pthread_mutex_lock(&lock);
    if (!c->begun)
        c->begun = now_ns();
    pthread_mutex_unlock(&lock);
    c->work(NULL, t, number);
    pthread_mutex_lock(&lock);
    if (c->left && --c->left == 0)
        c->cpu_takes = 1e-9 * (double)(now_ns() - c->begun);
    pthread_mutex_unlock(&lock);
}

char *describe_choices(const struct step *s)
{
    unsigned cpu = 0, all = 0, moved = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct chooser *c = s->task[i]->run == make_choice ? s->task[i]->context : NULL;
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
    struct chooser *chooser;
    struct tensor *word, *device_word; /* on the host; its copy on the device */
    enum side expected;
};

static struct tensor *new_word(struct step *s, struct device *d)
{
    struct tensor *word = new_tensor(s->pool, d, MEM_WORK, "choice", INT32, 1, (int64_t[]){1});
    word->persistent = word->choice = true;
    return word;
}

/* The choice task, behind the maker of the gradients, and the word's way to the device. */
static void add_choice(struct offer *o, const struct task *update, struct task *maker)
{
    struct step *s = o->step;
    insert_behind(o->edit, maker);
    s->tags = (struct tags){update->layer, -1, ROLE_OFFLOAD};
    struct machine *m = s->pool->machine;
    struct task *t = add_host(s, lane_for(m, m->host, LANE_FEED, FOR_CONTROL), "choose", make_choice, o->chooser);
    t->description = sizeof *o->chooser; /* it is the task's own */
    add_access(t, o->word, ACCESS_BOTH);
    for (int i = 0; i < update->n_access; i++) /* that it comes behind, and does not look at */
        if (update->access[i].tensor->class == MEM_GRADIENTS)
            add_access(t, update->access[i].tensor, ACCESS_READ);
    t->bytes = 0;
    carry(s, "choice", o->device_word, o->word, FOR_CONTROL);
}

/* The device's update once more, before the host's.  Its kernel looks at the word itself, which is its last argument:
 * the access that is added to it last. */
static struct task *keep_on_device(const struct offer *o, const struct task *update, struct task *host_update)
{
    insert_before(o->edit, host_update);
    struct task *mine = repeat(o->edit, update);
    struct arg *last = &mine->args[mine->n_args - 1];
    CHECK(last->kind == ARG_TENSOR && last->i < 0, "kernel %s has no argument for a choice", update->function);
    last->i = mine->n_access;
    need_choice(mine, o->device_word, 0, o->expected == ON_DEVICE);
    return mine;
}

/* What the host keeps for itself comes and goes, before both updates. */
static void move_state(const struct offer *o, const struct task *host_update, struct task *device_update)
{
    struct step *s = o->step;
    insert_before(o->edit, device_update);
    s->tags.role = ROLE_OFFLOAD;
    for (int i = 0; i < host_update->n_access; i++) {
        struct tensor *part = device_update->access[i].tensor, *mirror = host_update->access[i].tensor->storage;
        if (!mirror->mirrors)
            continue;
        size_t begin = part->offset - mirror->mirrors->offset;
        struct tensor *host = new_range(s->pool, mirror, part->name, begin, begin + part->bytes);
        need_choice(carry(s, "overlap.fetch", host, part, FOR_STATE), o->word, CHOICE_CPU | CHOICE_MOVED, false);
        if (part->class == MEM_OPTIMIZER)
            need_choice(carry(s, "overlap.return", part, host, FOR_STATE), o->word, CHOICE_DEVICE | CHOICE_MOVED,
                        false);
    }
}

/* State that the last choices have left on the host comes back by the copies that would bring it when the next ones are
 * others.  It is on both sides then, so the choices stay. */
static void bring_back(struct step *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        bool returns = (t->condition.needs & CHOICE_MOVED) && (t->condition.needs & CHOICE_DEVICE);
        if (returns && (choice_bits(t) & CHOICE_CPU))
            run_alone(s, 0, i, &(struct task_flight){.number = 0});
    }
}

void offer_both(struct edit *e, struct step *s, struct rule *rule, struct task *update, struct task *maker, size_t from,
                enum side expected)
{
    struct chooser *c = allocate(1, sizeof *c);
    struct offer o = {e, s, c, new_word(s, s->pool->machine->host), new_word(s, update->lane->device), expected};
    struct task *host_update = NULL; /* its first piece */
    for (size_t i = from, end = s->n; i < end; i++) {
        struct task *t = s->task[i];
        enum memory_class class = t->copy ? t->access[0].tensor->class : MEM_CLASSES;
        bool piece = t->role == ROLE_UPDATE && t->lane->device->is_host;
        if (piece) {
            host_update = host_update ? host_update : t;
            c->work = t->run;
            c->pieces++;
            c->cpu_should_take += seconds_alone(rule->question->costs, t) / rule->cores;
            t->run = update_timed;
            t->context = c;
        }
        if (piece || class == MEM_GRADIENTS || class == MEM_PARAMETERS) /* (other copies serve many updates) */
            need_choice(t, o.word, CHOICE_CPU, expected != ON_DEVICE);
    }
    add_choice(&o, update, maker);
    move_state(&o, host_update, keep_on_device(&o, update, host_update));
    c->device_takes = seconds_alone(rule->question->costs, update);
    c->cpu_takes = c->cpu_should_take;
    c->drawn = rule->drawn, c->seed = rule->seed;
    c->nth = rule->ring ? rule->ring->nth + 1 : 0;
    c->next = rule->ring ? rule->ring->next : c;
    if (rule->ring)
        rule->ring->next = c;
    rule->ring = c;
    s->settled = bring_back;
}

/* ---- the rule, asked before the step runs ------------------------------------------------------------------------ */

void try_candidate(const struct question *q, struct candidate *c)
{
    c->choice[q->n - 1] = GRADIENTS_ALONE;
    c->score = score_choice(q, c->choice);
    if (c->score.excess == 0)
        return;
    c->choice[q->n - 1] = GRADIENTS_SHARED;
    c->score = score_choice(q, c->choice);
}

/* Where the list with all updates on the device cannot be simulated, all go to the CPU.  The first `fixed` buckets do,
 * whatever the rule says. */
static void apply_rule(const struct rule *rule, size_t fixed, unsigned char *choice)
{
    const struct updates *bucket = rule->bucket;
    size_t n = rule->question->n - 1;
    struct forecast f = try_step(rule->question->step, rule->question->costs);
    double ready = INFINITY, cpu = 0, *ends = allocate(n + 1, sizeof *ends);
    memset(choice, ON_CPU, n);
    for (size_t b = 0; b < n && f.span; b++) /* with clipping, the norm */
        ready = fmin(ready, f.span[bucket[b].update].start);
    for (size_t b = 0; b < n && f.span; b++) {
        const struct updates *u = &bucket[b];
        double now = u->released < 0 ? 0 : f.span[u->released].end, left = 0;
        for (size_t k = 0; k < b; k++) /* what the device does not do comes off its time */
            if (choice[k] == ON_CPU && (int)bucket[k].update < u->released &&
                f.task[bucket[k].update]->lane == f.task[u->update]->lane)
                now -= bucket[k].on_device;
        for (size_t k = 0; k < b; k++)
            left += choice[k] == ON_CPU ? fmin(fmax(ends[k] - now, 0), bucket[k].on_cpu) : 0;
        /* (1e-9: a tie, but for rounding) */
        choice[b] = b < fixed || left <= u->on_device * (1 + 1e-9) ? ON_CPU : ON_DEVICE;
        if (choice[b] == ON_CPU)
            ends[b] = cpu = fmax(fmax(cpu, now + u->down), ready) + u->on_cpu;
    }
    free_forecast(&f), free(ends);
}

void expect_rule(const struct rule *rule, struct candidate *expected)
{
    const struct question *q = rule->question;
    apply_rule(rule, 0, expected->choice);
    try_candidate(q, expected);
    for (size_t b = q->n - 1; b-- > 0 && expected->score.excess > 0;) {
        struct candidate other = *expected;
        other.choice[b] = expected->choice[b] == ON_CPU ? ON_DEVICE : ON_CPU;
        try_candidate(q, &other);
        *expected = other.score.excess < expected->score.excess ? other : *expected;
    }
}

static bool moves_state(const struct pass *p, const struct run_facts *w)
{
    (void)w;
    return p->moves_state && p->moves_state();
}

/* Why all is decided before the step runs; NULL: it need not be.  The caller frees it. */
static char *reason_to_decide_now(const struct task *update, const struct run_facts *w, const struct pass *room)
{
    const struct pass *mover = find_wanted(moves_state, w);
    if (!update->host_run)
        return copy_string("nothing of a step file runs");
    if (w->paced)
        return copy_string("the step runs as predicted");
    if (mover)
        return format_string("%s moves the same state", mover->name);
    if (room)
        return format_string("%s is to make room for it", room->name);
    return NULL;
}

void decide_in_step(struct rule *rule, const struct run_facts *w, const struct pass *room, struct candidate *expected,
                    struct pass_report *r)
{
    const struct question *q = rule->question;
    size_t n = q->n - 1;
    struct candidate both;
    char *now = reason_to_decide_now(q->step->task[rule->bucket[0].update], w, room);
    for (rule->fixed = now ? n : 0; rule->fixed < n; rule->fixed += ceil_div(n, MOST_STARTS)) {
        apply_rule(rule, rule->fixed, both.choice);
        try_candidate(q, &both);
        if (both.score.excess == 0)
            break;
    }
    rule->fixed = MIN(rule->fixed, n);
    if (rule->fixed < n) {
        *expected = both;
        append_text(&r->reason, "%s in every step", rule->drawn ? "drawn at random" : "chosen");
        if (rule->fixed)
            append_text(&r->reason, " but for %zu, on the CPU since not all state fits on both sides", rule->fixed);
        append_text(&r->reason, ", expected: ");
    } else
        append_text(&r->reason,
                    "chosen before the step runs, since %s: ", now ? now : "state on both sides does not fit");
}
