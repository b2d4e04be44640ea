/* gather.c - ZeRO-3: parameters lie in shards, and those of a layer are gathered for as long as the layer is at work.
 *
 * The list is built as if every rank kept all of its parameters.  Consecutive tasks of a device that read the same
 * parameters are a *window*: as a rule the tasks of one layer, once forward and once backward.
 *
 *     window            layer 0    layer 1    layer 2   ...   layer 1    layer 0
 *     gathered at       start      start      layer 1         layer 2    layer 1        with one layer ahead
 *     held until        layer 0    layer 1    layer 2         layer 1    layer 0        is done
 *
 * The rule.  A window is gathered while the window before it on its device is at work.  Windows follow from the list's
 * order.  Where a layer's readers are not adjacent, the layer has more windows, and is gathered for each: that is
 * slower, and as correct.
 *
 * Replicas on several devices are gathered together, before the first of their tasks in the list: so a shard that moves
 * through the host comes down once.  Each shard's owner begins with another receiver, so that no device receives all
 * shards at once.
 *
 * The rewrite.  A window gets a tensor of its own, which copies from the ranks' shards fill, and its tasks read this
 * tensor.  The tensor that persisted before no longer does.  Updates write the shard in its place, and nothing is sent
 * after them.
 *
 * Source: P_os+g+p of "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (Rajbhandari et al. 2020).
 */
#include "gather.h"
#include "trainer/mesh/mesh.h"

#define FOR_GATHER "gather" /* the lanes of copies of parameters from their shards */

struct read_window {         /* adjacent tasks of one device, which read the same parameters */
    struct tensor *replica;  /* the tensor that they read as the list is built; it lies on their device */
    struct tensor *gathered; /* the tensor that they read instead; NULL: not made yet */
    size_t nth_on_device;    /* its index among the windows of its device */
    size_t nth_of_replica;   /* its index among the windows of its replica */
    struct task **readers;   /* the tasks */
    size_t n, cap;
};
struct tensors {
    struct tensor **items;
    size_t n, cap;
};
struct windows {
    struct read_window **items;
    size_t n, cap;
};
struct survey { /* what the pass finds in the list */
    struct list *list;
    size_t n_tensors;       /* as many as the pool has before the pass adds its own: the length of arrays "by tensor" */
    struct tensors *shards; /* by first replica: the shards that keep parts of it */
    /* By first replica: the tensors with the same values, or a part of them, to be gathered. */
    struct tensors *replicas;
    struct windows *windows;        /* by tensor of `replicas`: its windows in list order */
    struct windows *device_windows; /* by device: its windows in list order */
    struct windows all;             /* all windows in list order */
    struct task **dropped;          /* copies from replica to replica, which are no longer needed */
    size_t n_dropped, cap_dropped;
    size_t n_gathered; /* how many windows have been gathered */
    bool sliced;       /* another pass is to send what is gathered, over several queues */
};

static struct tensors *shards_of(const struct survey *survey, const struct tensor *replica)
{
    return &survey->shards[replica->replica.of->id];
}

static struct tensors *replicas_like(const struct survey *survey, const struct tensor *replica)
{
    return &survey->replicas[replica->replica.of->id];
}

/* Does the tensor have all parameters of a layer, and do shards keep their values? */
static bool is_replica(const struct survey *survey, const struct tensor *storage)
{
    if (storage->replica.is_shard || storage->extra.mirror.of || storage->class != MEM_PARAMETERS)
        return false;
    return shards_of(survey, storage)->n > 0;
}

/* ---- the list as it is ------------------------------------------------------------------------------------------- */

static void add_window(struct windows *windows, struct read_window *window)
{
    GROW(windows->items, windows->cap, windows->n + 1);
    windows->items[windows->n++] = window;
}

static struct read_window *begin_window(struct survey *survey, struct tensor *replica)
{
    struct windows *of_device = &survey->device_windows[replica->device->index];
    struct read_window *window = allocate(1, sizeof *window);
    window->replica = replica;
    window->nth_on_device = of_device->n;
    window->nth_of_replica = survey->windows[replica->id].n;
    add_window(of_device, window);
    add_window(&survey->windows[replica->id], window);
    add_window(&survey->all, window);
    return window;
}

/* The task is one more of its device's last window, or begins the next one. */
static void add_to_window(struct survey *survey, struct task *task, struct tensor *replica)
{
    const struct windows *of_device = &survey->device_windows[replica->device->index];
    struct read_window *window = of_device->n ? of_device->items[of_device->n - 1] : NULL;
    if (!window || window->replica != replica)
        window = begin_window(survey, replica);
    if (window->n == 0 || window->readers[window->n - 1] != task) {
        GROW(window->readers, window->cap, window->n + 1);
        window->readers[window->n++] = task;
    }
}

/* Does the task belong to an update, which makes the parameters of the next step?  A copy that takes parameters to the
 * host for an update, or brings them back, belongs to it too. */
static bool is_of_update(const struct task *task)
{
    if (task->role == ROLE_UPDATE)
        return true;
    return is_copy(task) &&
           (copy_target(task)->storage->extra.mirror.of || copy_source(task)->storage->extra.mirror.of);
}

static void add_tensor(struct tensors *tensors, struct tensor *tensor)
{
    GROW(tensors->items, tensors->cap, tensors->n + 1);
    tensors->items[tensors->n++] = tensor;
}

/* Lists the shards, and then the replicas whose values they keep: is_replica() asks for the shards. */
static void note_tensors(struct survey *survey)
{
    const struct pool *pool = survey->list->pool;
    for (size_t i = 0; i < pool->n; i++)
        if (pool->tensors[i]->replica.is_shard)
            add_tensor(shards_of(survey, pool->tensors[i]), pool->tensors[i]);
    for (size_t i = 0; i < pool->n; i++)
        if (pool->tensors[i]->storage == pool->tensors[i] && is_replica(survey, pool->tensors[i]))
            add_tensor(replicas_like(survey, pool->tensors[i]), pool->tensors[i]);
}

/* Notes the windows that the task belongs to; or, if it sends parameters on, that it is no longer needed. */
static void note_task(struct survey *survey, struct task *task)
{
    if (is_of_update(task))
        return;
    for (int k = 0; k < task->n_accesses; k++) {
        struct tensor *storage = task->accesses[k].tensor->storage;
        if (!is_replica(survey, storage))
            continue;
        if (!is_copy(task)) {
            add_to_window(survey, task, storage);
        } else if (k == 0) { /* it writes a replica */
            GROW(survey->dropped, survey->cap_dropped, survey->n_dropped + 1);
            survey->dropped[survey->n_dropped++] = task;
        }
    }
}

static struct survey survey_list(struct list *list)
{
    const struct pool *pool = list->pool;
    struct survey survey = {.list = list, .n_tensors = pool->n};
    survey.shards = allocate(pool->n, sizeof *survey.shards);
    survey.replicas = allocate(pool->n, sizeof *survey.replicas);
    survey.windows = allocate(pool->n, sizeof *survey.windows);
    survey.device_windows = allocate_each(pool->machine->n_devices + 1, sizeof *survey.device_windows);
    note_tensors(&survey);
    for (size_t i = 0; i < list->n; i++)
        note_task(&survey, list->tasks[i]);
    return survey;
}

static void free_survey(struct survey *survey)
{
    int n_devices = survey->list->pool->machine->n_devices;
    for (size_t i = 0; i < survey->all.n; i++) {
        struct read_window *window = survey->all.items[i];
        free(window->readers);
        free(window);
    }
    for (size_t i = 0; i < survey->n_tensors; i++) {
        free(survey->shards[i].items);
        free(survey->replicas[i].items);
        free(survey->windows[i].items);
    }
    for (int d = 0; d <= n_devices; d++)
        free(survey->device_windows[d].items);
    free(survey->shards);
    free(survey->replicas);
    free(survey->windows);
    free(survey->device_windows);
    free(survey->all.items);
    free(survey->dropped);
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

/* Writes to peers[], which has room for all replicas, the nth windows of the replicas that have the same bytes, where
 * `window` is the nth one of its own replica; a replica that has fewer windows gives none.  Returns how many there
 * are. */
static size_t collect_peers(const struct survey *survey, const struct read_window *window, struct read_window **peers)
{
    const struct tensor *replica = window->replica;
    const struct tensors *replicas = replicas_like(survey, replica);
    size_t n = 0;
    for (size_t i = 0; i < replicas->n; i++) {
        const struct tensor *tensor = replicas->items[i];
        const struct windows *windows = &survey->windows[tensor->id];
        bool is_same = tensor->replica.begin == replica->replica.begin && tensor->bytes == replica->bytes;
        if (!is_same || window->nth_of_replica >= windows->n)
            continue;
        peers[n] = windows->items[window->nth_of_replica];
        n++;
    }
    return n;
}

/* The task before which the peers' copies go: the first one of all windows under which they are to be gathered. */
static struct task *first_reader(const struct survey *survey, struct read_window *const *peers, size_t n)
{
    struct task *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct windows *windows = &survey->device_windows[peers[i]->replica->device->index];
        size_t position = peers[i]->nth_on_device;
        const struct read_window *earlier = windows->items[position - MIN(WINDOWS_AHEAD, position)];
        if (!first || earlier->readers[0]->index < first->index)
            first = earlier->readers[0];
    }
    return first;
}

/* The position of the peer on that device; if none is there, of the last one. */
static size_t peer_on(const struct device *device, struct read_window *const *peers, size_t n)
{
    size_t i = 0;
    while (i < n - 1 && peers[i]->replica->device != device)
        i++;
    return i;
}

/* Sends the bytes that the kth shard has of the peers' tensor to all peers; the first to get them is the one that
 * follows the shard's owner. */
static void share_shard(struct survey *survey, struct read_window *const *peers, size_t n, size_t k)
{
    struct pool *pool = survey->list->pool;
    const struct tensor *replica = peers[0]->replica;
    struct tensor *shard = shards_of(survey, replica)->items[k];
    size_t begin = MAX(shard->replica.begin, replica->replica.begin);
    size_t end = MIN(shard->replica.begin + shard->bytes, replica->replica.begin + replica->bytes);
    if (begin >= end)
        return;
    struct tensor **to = allocate(n, sizeof(struct tensor *));
    size_t next = peer_on(shard->device, peers, n) + 1;
    for (size_t i = 0; i < n; i++)
        to[i] = new_range(pool, peers[(next + i) % n]->gathered, "gathered.part", begin - replica->replica.begin,
                          end - replica->replica.begin);
    struct tensor *from = new_range(pool, shard, shard->name, begin - shard->replica.begin, end - shard->replica.begin);
    add_broadcast(survey->list, "gather", to, (int)n, from, FOR_GATHER);
    free(to);
}

/* Gives a tensor the name "wte.gathered" after "wte", which is cut where there is no room for all of it. */
static void name_gathered(struct tensor *gathered, const char *name)
{
    static const char ending[] = ".gathered";
    size_t room = sizeof gathered->name - sizeof ending;
    snprintf(gathered->name, sizeof gathered->name, "%.*s%s", (int)room, name, ending);
}

/* Makes the tensor that the window's tasks are to read. */
static void make_gathered(struct pool *pool, struct read_window *window)
{
    const struct tensor *tensor = window->replica;
    const struct tensor_form form = {
        .device = tensor->device,
        .class = MEM_PARAMETERS,
        .name = "gathered",
        .type = tensor->type,
        .shape = tensor->shape,
    };
    struct tensor *gathered = new_tensor(pool, &form);
    name_gathered(gathered, tensor->name);
    window->gathered = as_buffer(gathered);
}

/* Gathers the parameters of the window and of its peers, and lets their tasks read them there. */
static void gather_peers(struct survey *survey, struct edit *edit, struct read_window *window)
{
    struct read_window **peers = allocate(replicas_like(survey, window->replica)->n, sizeof(struct read_window *));
    size_t n = collect_peers(survey, window, peers);
    const struct task *user = window->readers[0];
    insert_before(edit, first_reader(survey, peers, n));
    tag_tasks(survey->list, user->layer, user->micro, survey->sliced ? ROLE_BROADCAST : ROLE_SEND);
    for (size_t i = 0; i < n; i++)
        make_gathered(survey->list->pool, peers[i]);
    for (size_t k = 0; k < shards_of(survey, window->replica)->n; k++)
        share_shard(survey, peers, n, k);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < peers[i]->n; k++)
            repoint_task(edit, peers[i]->readers[k], peers[i]->replica, peers[i]->gathered);
    survey->n_gathered += n;
    free(peers);
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

/* The bytes of the tensor, as the shard on its device keeps them. */
static struct tensor *part_of_shard(const struct survey *survey, const struct tensor *tensor)
{
    const struct tensors *shards = shards_of(survey, tensor->storage);
    size_t begin = tensor->storage->replica.begin + tensor->offset;
    for (size_t i = 0; i < shards->n; i++) {
        struct tensor *shard = shards->items[i];
        bool has_it = shard->replica.begin <= begin && begin + tensor->bytes <= shard->replica.begin + shard->bytes;
        size_t at = begin - shard->replica.begin;
        if (shard->device == tensor->device && has_it)
            return new_range(survey->list->pool, shard, tensor->name, at, at + tensor->bytes);
    }
    BROKEN("no shard on %s keeps %s", tensor->device->id, tensor->name);
}

/* Updates read and write the shards where they read and wrote replicas. */
static void update_shards(struct survey *survey, struct edit *edit)
{
    const struct list *list = survey->list;
    size_t n = list->n;
    for (size_t i = 0; i < n; i++) {
        struct task *task = list->tasks[i];
        if (!is_of_update(task))
            continue;
        for (int k = 0; k < task->n_accesses; k++) {
            struct tensor *tensor = task->accesses[k].tensor;
            if (is_replica(survey, tensor->storage))
                repoint_task(edit, task, tensor, part_of_shard(survey, tensor));
        }
    }
}

/* Adds to readers[], by tensor, how many of the first n tasks read it. */
static void count_readers(const struct survey *survey, size_t n, int *readers)
{
    for (size_t i = 0; i < n; i++) {
        const struct task *task = survey->list->tasks[i];
        for (int k = 0; k < task->n_accesses; k++) {
            size_t id = (size_t)task->accesses[k].tensor->storage->id;
            if (id < survey->n_tensors && (task->accesses[k].mode & ACCESS_READ))
                readers[id]++;
        }
    }
}

/* Drops the copies from replica to replica, and the downloads that only they read.  n_before: how many tasks the list
 * had before the edit. */
static void drop_copies(struct survey *survey, struct edit *edit, size_t n_before)
{
    int *readers = allocate(survey->n_tensors, sizeof *readers);
    int *lost = allocate(survey->n_tensors, sizeof *lost); /* readers that are dropped */
    count_readers(survey, n_before, readers);
    for (size_t i = 0; i < survey->n_dropped; i++) {
        const struct task *task = survey->dropped[i];
        lost[copy_source(task)->storage->id]++;
    }
    for (size_t i = 0; i < n_before; i++) {
        struct task *task = survey->list->tasks[i];
        if (!is_copy(task) || is_replica(survey, copy_target(task)->storage)) /* survey->dropped has these */
            continue;
        size_t id = (size_t)copy_target(task)->storage->id;
        if (id < survey->n_tensors && lost[id] && lost[id] == readers[id])
            drop_task(edit, task);
    }
    for (size_t i = 0; i < survey->n_dropped; i++)
        drop_task(edit, survey->dropped[i]);
    free(readers);
    free(lost);
}

/* ---- the whole list ---------------------------------------------------------------------------------------------- */

/* Says of each gathered tensor which one has the same parameters when they are gathered next. */
static void link_windows(struct survey *survey)
{
    for (size_t id = 0; id < survey->n_tensors; id++)
        for (size_t i = 1; i < survey->windows[id].n; i++) {
            struct read_window *before = survey->windows[id].items[i - 1];
            const struct read_window *window = survey->windows[id].items[i];
            before->gathered->extra.later_copy = window->gathered;
        }
}

/* Replicas no longer persist.  Nothing touches them by now, so they have no bytes. */
static void drop_replicas(struct survey *survey, struct edit *edit)
{
    for (size_t id = 0; id < survey->n_tensors; id++)
        for (size_t i = 0; i < survey->replicas[id].n; i++)
            make_transient(edit, survey->replicas[id].items[i]);
}

/* Gathers each window, with its peers, before it is used. */
static void gather_windows(struct survey *survey, struct edit *edit)
{
    for (size_t i = 0; i < survey->all.n; i++) {
        struct read_window *window = survey->all.items[i];
        if (!window->gathered)
            gather_peers(survey, edit, window);
    }
}

size_t gather_parameters(struct list *list, struct edit *edit, bool sliced)
{
    struct survey survey = survey_list(list);
    size_t n_before = list->n;
    survey.sliced = sliced;
    update_shards(&survey, edit);
    drop_copies(&survey, edit, n_before);
    gather_windows(&survey, edit);
    link_windows(&survey);
    drop_replicas(&survey, edit);
    size_t n_gathered = survey.n_gathered;
    free_survey(&survey);
    return n_gathered;
}
