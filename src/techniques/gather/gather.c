/* gather.c - ZeRO-3: parameters lie in shards, and a layer's are gathered for as long as it is at work.
 *
 * The list is built as if every rank kept all of its parameters.  On each device the tasks that read the same ones, one
 * after another, are a *window*; as a rule those of a layer, once forward and once backward.
 *
 *     window            layer 0    layer 1    layer 2   ...   layer 1    layer 0
 *     gathered at       start      start      layer 1         layer 2    layer 1        with one layer ahead
 *     held until        layer 0    layer 1    layer 2         layer 1    layer 0        is done
 *
 * The rule.  A window is gathered while the one before it on its device is at work.  Windows follow from the list's
 * order.  Where a layer's readers do not stand together there are more windows, each gathered again: slower, and as
 * correct.
 *
 * Replicas are gathered together, in front of the first of their tasks in the list: a shard that moves through the host
 * comes down once.  Each shard's owner begins with another receiver, so that none gets everything at once.
 *
 * The rewrite.  A window gets a tensor of its own, which copies from the ranks' shards fill, and its tasks are
 * re-pointed to it.  The tensor that used to persist is let go.  Updates write the shard in its place, and nothing is
 * sent behind them.
 *
 * Source: P_os+g+p of "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (Rajbhandari et al. 2020).
 */
#include "techniques/pass/pass.h"
#include "trainer/mesh/mesh.h"

enum { AHEAD = 1 }; /* windows are gathered so many before their own */

struct window {
    struct tensor *whole; /* what its tasks used to read; with the device */
    struct tensor *gathered;
    size_t position; /* among its device's windows */
    struct task **reader;
    size_t n, cap;
};
struct row { /* of things that grow */
    void **item;
    size_t n, cap;
};
struct survey {
    struct step *step;
    size_t n_tensors;    /* as it was */
    struct row *shards;  /* by tensor: those that keep parts of it */
    struct row *wholes;  /* by tensor: those that start with all or a part of what it does, and are to be gathered */
    struct row *windows; /* by such a tensor */
    struct row *device;  /* by device: its windows in list order */
    struct row all;      /* windows in list order */
    struct row dropped;  /* copies from replica to replica */
    size_t gathered;
    bool sliced; /* another pass is to send what is gathered, over several queues */
};

static bool wants_gather(const struct run_facts *w) { return w->gather; }

static void add_item(struct row *r, void *item) { *APPEND(r->item, r->n, r->cap) = item; }

static bool is_whole(const struct survey *v, const struct tensor *storage)
{
    return !storage->shard && !storage->mirrors && storage->class == MEM_PARAMETERS &&
           v->shards[storage->replica_of->id].n > 0;
}

/* ---- the list as it is ------------------------------------------------------------------------------------------ */

/* The task goes on with its device's window, or begins the next. */
static void note_reader(struct survey *v, struct task *t, struct tensor *whole)
{
    struct row *mine = &v->device[whole->device->index];
    struct window *w = mine->n ? mine->item[mine->n - 1] : NULL;
    if (!w || w->whole != whole) {
        w = allocate(1, sizeof *w);
        *w = (struct window){.whole = whole, .position = mine->n};
        add_item(mine, w), add_item(&v->windows[whole->id], w), add_item(&v->all, w);
    }
    if (w->n == 0 || w->reader[w->n - 1] != t)
        *APPEND(w->reader, w->n, w->cap) = t;
}

/* Or a copy that takes the parameters to the host for an update there, or brings them back. */
static bool updates(const struct task *t)
{
    return t->role == ROLE_UPDATE ||
           (t->copy && (t->access[0].tensor->storage->mirrors || t->access[1].tensor->storage->mirrors));
}

static struct survey look_at(struct step *s)
{
    const struct pool *p = s->pool;
    struct survey v = {.step = s, .n_tensors = p->n};
    v.shards = allocate(p->n, sizeof *v.shards);
    v.wholes = allocate(p->n, sizeof *v.wholes);
    v.windows = allocate(p->n, sizeof *v.windows);
    v.device = allocate((size_t)p->machine->n_devices + 1, sizeof *v.device);
    for (size_t i = 0; i < p->n; i++)
        if (p->tensors[i]->shard)
            add_item(&v.shards[p->tensors[i]->replica_of->id], p->tensors[i]);
    for (size_t i = 0; i < p->n; i++)
        if (p->tensors[i]->storage == p->tensors[i] && is_whole(&v, p->tensors[i]))
            add_item(&v.wholes[p->tensors[i]->replica_of->id], p->tensors[i]);
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < s->task[i]->n_access && !updates(s->task[i]); k++) {
            struct tensor *storage = s->task[i]->access[k].tensor->storage;
            if (is_whole(&v, storage) && !s->task[i]->copy)
                note_reader(&v, s->task[i], storage);
            else if (is_whole(&v, storage) && k == 0)
                add_item(&v.dropped, s->task[i]);
        }
    return v;
}

static void free_survey(struct survey *v, int n_devices)
{
    for (size_t i = 0; i < v->all.n; i++)
        free(((struct window *)v->all.item[i])->reader), free(v->all.item[i]);
    for (size_t i = 0; i < v->n_tensors; i++)
        free(v->shards[i].item), free(v->wholes[i].item), free(v->windows[i].item);
    for (int d = 0; d <= n_devices; d++)
        free(v->device[d].item);
    free(v->shards), free(v->wholes), free(v->windows), free(v->device), free(v->all.item), free(v->dropped.item);
}

/* ---- gathering -------------------------------------------------------------------------------------------------- */

/* The same window of all replicas: of those that have as many. */
static size_t find_peers(const struct survey *v, const struct window *w, struct window **peer)
{
    const struct row *mine = &v->windows[w->whole->id], *replicas = &v->wholes[w->whole->replica_of->id];
    size_t nth = 0, n = 0;
    while (mine->item[nth] != w)
        nth++;
    for (size_t i = 0; i < replicas->n; i++) {
        const struct tensor *x = replicas->item[i];
        if (x->replica_begin == w->whole->replica_begin && x->bytes == w->whole->bytes && nth < v->windows[x->id].n)
            peer[n++] = v->windows[x->id].item[nth];
    }
    return n;
}

/* Where in the list the peers' copies go: in front of the first window that they are to be gathered under. */
static struct task *place_of(const struct survey *v, struct window *const *peer, size_t n)
{
    struct task *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct row *windows = &v->device[peer[i]->whole->device->index];
        const struct window *at = windows->item[peer[i]->position - MIN(AHEAD, peer[i]->position)];
        if (!first || at->reader[0]->index < first->index)
            first = at->reader[0];
    }
    return first;
}

/* What the kth shard keeps of them, to all peers, from the one behind its owner on. */
static void share_shard(struct survey *v, struct window *const *peer, size_t n, size_t k)
{
    struct pool *p = v->step->pool;
    const struct tensor *whole = peer[0]->whole;
    struct tensor *shard = v->shards[whole->replica_of->id].item[k], **to = allocate(n, sizeof(struct tensor *));
    size_t begin = MAX(shard->replica_begin, whole->replica_begin), own = 0;
    size_t end = MIN(shard->replica_begin + shard->bytes, whole->replica_begin + whole->bytes);
    while (own < n - 1 && peer[own]->whole->device != shard->device)
        own++;
    for (size_t i = 0; i < n && begin < end; i++)
        to[i] = new_range(p, peer[(own + 1 + i) % n]->gathered, "gathered.part", begin - whole->replica_begin,
                          end - whole->replica_begin);
    if (begin < end)
        add_broadcast(v->step, "gather", to, (int)n,
                      new_range(p, shard, shard->name, begin - shard->replica_begin, end - shard->replica_begin),
                      FOR_GATHER);
    free(to);
}

static void gather_window(struct survey *v, struct edit *e, struct window *w)
{
    struct window **peer = allocate(v->wholes[w->whole->replica_of->id].n, sizeof(struct window *));
    size_t n = find_peers(v, w, peer);
    const struct task *user = w->reader[0];
    insert_before(e, place_of(v, peer, n));
    v->step->tags = (struct tags){user->layer, user->micro, v->sliced ? ROLE_BROADCAST : ROLE_SEND};
    for (size_t i = 0; i < n; i++) {
        const struct tensor *x = peer[i]->whole;
        peer[i]->gathered =
            as_buffer(new_tensor(v->step->pool, x->device, MEM_PARAMETERS, "gathered", x->element, x->rank, x->shape));
        snprintf(peer[i]->gathered->name, sizeof x->name, "%.38s.gathered", x->name);
    }
    for (size_t k = 0; k < v->shards[w->whole->replica_of->id].n; k++)
        share_shard(v, peer, n, k);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < peer[i]->n; k++)
            repoint(e, peer[i]->reader[k], peer[i]->whole, peer[i]->gathered);
    v->gathered += n;
    free(peer);
}

/* ---- updates ---------------------------------------------------------------------------------------------------- */

/* Of the shard on that device which keeps these bytes. */
static struct tensor *shard_for(const struct survey *v, const struct tensor *x)
{
    const struct row *shards = &v->shards[x->storage->replica_of->id];
    size_t begin = x->storage->replica_begin + x->offset;
    for (size_t i = 0; i < shards->n; i++) {
        struct tensor *s = shards->item[i];
        if (s->device == x->device && s->replica_begin <= begin && begin + x->bytes <= s->replica_begin + s->bytes)
            return new_range(v->step->pool, s, x->name, begin - s->replica_begin, begin - s->replica_begin + x->bytes);
    }
    CHECK(false, "no shard on %s keeps %s", x->device->id, x->name);
    return NULL;
}

static void update_shards(struct survey *v, struct edit *e)
{
    const struct step *s = v->step;
    size_t n = s->n;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < s->task[i]->n_access && updates(s->task[i]); k++) {
            struct tensor *x = s->task[i]->access[k].tensor;
            if (is_whole(v, x->storage))
                repoint(e, s->task[i], x, shard_for(v, x));
        }
}

/* With the downloads that only they read. */
static void drop_copies(struct survey *v, struct edit *e, size_t n)
{
    const struct step *s = v->step;
    int *readers = allocate(v->n_tensors, sizeof *readers), *lost = allocate(v->n_tensors, sizeof *lost);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < s->task[i]->n_access; k++)
            if ((size_t)s->task[i]->access[k].tensor->storage->id < v->n_tensors)
                readers[s->task[i]->access[k].tensor->storage->id] += (s->task[i]->access[k].mode & ACCESS_READ) != 0;
    for (size_t i = 0; i < v->dropped.n; i++)
        lost[((struct task *)v->dropped.item[i])->access[1].tensor->storage->id]++;
    for (size_t i = 0; i < n; i++) {
        const struct tensor *to = s->task[i]->copy ? s->task[i]->access[0].tensor->storage : NULL;
        if (to && (size_t)to->id < v->n_tensors && lost[to->id] && lost[to->id] == readers[to->id])
            drop(e, s->task[i]);
    }
    for (size_t i = 0; i < v->dropped.n; i++)
        drop(e, v->dropped.item[i]);
    free(readers), free(lost);
}

/* ---- the pass --------------------------------------------------------------------------------------------------- */

static char *describe(const struct survey *v)
{
    const struct pool *p = v->step->pool;
    size_t bytes = 0, *kept = allocate((size_t)p->machine->n_devices + 1, sizeof *kept);
    for (size_t i = 0; i < p->n; i++)
        kept[p->tensors[i]->device->index] += p->tensors[i]->shard ? p->tensors[i]->bytes : 0;
    for (int d = 0; d < p->machine->n_devices; d++)
        bytes = MAX(bytes, kept[d]);
    free(kept);
    return format_string("parameters are kept in shards of at most %s per device; %zu times a device gathers those of "
                         "a layer, %d ahead",
                         format_bytes((char[32]){0}, (double)bytes), v->gathered, AHEAD);
}

static bool run_gather(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r)
{
    (void)c;
    struct survey v = look_at(s);
    v.sliced = somebody_sends(w);
    struct edit *e = open_edit(s);
    size_t n = s->n;
    update_shards(&v, e);
    drop_copies(&v, e, n);
    for (size_t i = 0; i < v.all.n; i++) {
        struct window *window = v.all.item[i];
        if (!window->gathered)
            gather_window(&v, e, window);
    }
    for (size_t id = 0; id < v.n_tensors; id++) {
        struct window **of = (struct window **)v.windows[id].item;
        for (size_t i = 1; i < v.windows[id].n; i++)
            of[i - 1]->gathered->later = of[i]->gathered;
        for (size_t i = 0; i < v.wholes[id].n; i++)
            let_go(e, v.wholes[id].item[i]);
    }
    if (v.gathered) {
        commit(e);
        r->reason = describe(&v);
    } else {
        undo(e);
        r->reason = copy_string("no parameters lie in shards");
    }
    free_survey(&v, s->pool->machine->n_devices);
    return v.gathered > 0;
}

static const struct pass pass = {.place = 20,
                                 .name = "gather",
                                 .wanted = wants_gather,
                                 .run = run_gather,
                                 .turned_on = {"--zero 3"},
                                 .every_list = true};
const struct module module_gather = {.name = "gather", .needs = "pass", .place = 26, .pass = &pass, .gathers = true};
