/* readlist.c - a step file: the machine, the tensors and the tasks of a list that a person wrote down.
 *
 *     device NAME memory=BYTES [align=BYTES] [slab=BYTES]     `host`: its memory, and [issue=TIME] per task
 *     lane DEVICE.KIND[N] [gap=TIME]                          further lanes, from 1; gap: between two of its tasks
 *     link A[,B...] up|down RATE [LATENCY] [queues=N] [queue=RATE]
 *     disk RATE [LATENCY]
 *     tensor NAME DEVICE BYTES CLASS [keep] [choice]
 *     task NAME LANE TIME [layer=K] [micro=M] [role=ROLE] [cpu=TIME] [every=K] [reads=A[b:e],...] [writes=...]
 *     copy NAME TO[b:e] FROM[b:e] [lane=LANE] [time=TIME] [layer=K] [micro=M] [role=ROLE] [every=K] [reads=A[b:e],...]
 *
 * What is used must stand above: devices, lanes and tensors before what names them.  tutorials/reference-lists.md
 * describes the words.  Whatever is wrong ends the program with file, line and word.
 */
#include "../file/file.h"
#include "step.h"
#include "words.h"

enum { MOST_NUMBER = 1000000, MOST_EVERY = 1000, NAME_LANES = 10000 };

struct reading {
    struct line line;
    int n_devices; /* named so far */
    struct machine *machine;
    struct pool *pool;
    struct step *step;
    json_t *devices, *tensors; /* name: index */
};

/* A new name, of fewer than `size` characters, in `names`. */
static const char *read_name(const struct reading *r, const char *word, size_t size, json_t *names, size_t index)
{
    if (strlen(word) >= size || strpbrk(word, "[],="))
        fail_word(&r->line, word, "a name of at most %zu characters without [ ] , =", size - 1);
    if (!names)
        return word;
    if (json_object_get(names, word))
        fail_word(&r->line, word, "a name that has not been used above");
    json_object_set_new_nocheck(names, word, json_integer((json_int_t)index));
    return word;
}

static struct device *find_device(const struct reading *r, const char *name)
{
    const json_t *index = json_object_get(r->devices, name);
    return index ? &r->machine->device[json_integer_value(index)] : NULL;
}

static struct device *read_device(const struct reading *r, const char *word)
{
    struct device *d = find_device(r, word);
    if (!d)
        fail_word(&r->line, word, "a device that is declared above, or host");
    return d;
}

/* ---- lanes ----------------------------------------------------------------------------------------------------- */

/* "server.0.download2": device, kind and number; the kind must be one that the device has. */
static struct device *parse_lane(const struct reading *r, const char *word, enum lane_kind *kind, int *nth)
{
    char name[64], *dot;
    snprintf(name, sizeof name, "%s", word);
    if (strlen(word) >= sizeof name || !(dot = strrchr(name, '.')))
        fail_word(&r->line, word, "a lane DEVICE.KIND, such as gpu.compute");
    *dot++ = '\0';
    struct device *d = find_device(r, name);
    if (!d)
        fail_word(&r->line, word, "a lane of a device that is declared above, or of host");
    size_t letters = strcspn(dot, "0123456789");
    for (int k = 0; k < LANE_KINDS; k++)
        if (d->lane[k] && strlen(lane_kind_name[k]) == letters && strncmp(dot, lane_kind_name[k], letters) == 0) {
            *kind = (enum lane_kind)k;
            *nth = dot[letters] ? read_number(&r->line, dot + letters, 1, NAME_LANES) : 0;
            return d;
        }
    fail_word(&r->line, word,
              d->is_host ? "cpu, disk, feed or report behind the last dot"
                         : "compute, upload or download behind the last dot");
}

static struct lane *read_lane(const struct reading *r, const char *word)
{
    enum lane_kind kind;
    int nth;
    const struct device *d = parse_lane(r, word, &kind, &nth);
    struct lane *lane = lane_of(d, kind, nth);
    if (!lane)
        fail_word(&r->line, word, "a lane that is declared above with `lane`");
    return lane;
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

/* "NAME" or "NAME[b:e]", which is cut up. */
static struct tensor *read_operand(const struct reading *r, char *word)
{
    char *bracket = strchr(word, '['), *colon = bracket ? strchr(bracket, ':') : NULL, *end = colon;
    char *whole = copy_string(word);
    if (bracket)
        *bracket = '\0';
    const json_t *index = json_object_get(r->tensors, word);
    if (!index)
        fail_word(&r->line, whole, "a tensor that is declared above");
    struct tensor *t = r->pool->tensors[json_integer_value(index)];
    size_t from, to;
    if (bracket) {
        if (colon) {
            *colon = '\0';
            end = strchr(colon + 1, ']');
        }
        if (!colon || !end || end[1])
            fail_word(&r->line, whole, "NAME or NAME[begin:end]");
        *end = '\0';
        if (!parse_bytes(bracket + 1, &from) || !parse_bytes(colon + 1, &to) || from >= to || to > t->bytes)
            fail_word(&r->line, whole, "bytes begin:end of %s, which has %zu", t->name, t->bytes);
        t = new_range(r->pool, t, whole, from, to);
    }
    free(whole);
    return t;
}

static void read_operands(struct reading *r, struct task *t, const char *key, enum access_mode mode)
{
    char *list = word_option(&r->line, key);
    if (list && !*list) /* of nothing */
        list = NULL;
    for (char *word; (word = next_name(&r->line, &list));)
        add_access(t, read_operand(r, word), mode);
}

/* ---- the lines ------------------------------------------------------------------------------------------------- */

static void device_line(struct reading *r)
{
    const char *name = word_at(&r->line, 1, "a device's name"), *memory = word_option(&r->line, "memory"),
               *align = word_option(&r->line, "align");
    bool host = strcmp(name, "host") == 0;
    struct device *d = r->machine->host;
    if (!memory)
        fail_word(&r->line, name, "memory=BYTES behind it");
    if (!host) {
        read_name(r, name, sizeof d->id, r->devices, (size_t)r->n_devices);
        d = name_device(r->machine, r->n_devices++, name, read_bytes(&r->line, memory));
    }
    d->memory = d->budget = d->max_allocation = read_bytes(&r->line, memory);
    d->alignment = align ? read_bytes(&r->line, align) : 1;
    d->by_hand = true;
    d->shares = flag_option(&r->line, "share");
    const char *slab = word_option(&r->line, "slab");
    if (slab)
        d->max_allocation = read_bytes(&r->line, slab);
    if (host)
        r->machine->issue = time_option(&r->line, "issue", 0);
    check_all_used(&r->line, host ? "device host memory=BYTES [align=BYTES] [slab=BYTES] [issue=TIME] [share]"
                                  : "device NAME memory=BYTES [align=BYTES] [slab=BYTES] [share]");
}

/* A link that says how many queues of a device may use it has not more of the device's lanes. */
static void check_queues(const struct reading *r, const char *word, const struct device *d)
{
    static const enum lane_kind kind[DIRECTIONS] = {[LINK_UP] = LANE_UPLOAD, [LINK_DOWN] = LANE_DOWNLOAD};
    for (int direction = LINK_UP; direction < DIRECTIONS; direction++) {
        const struct link *link = d->link[direction];
        int n = count_lanes(d, kind[direction]);
        if (link && link->queues && n > link->queues)
            fail_word(&r->line, word, "at most %d %s lane%s of %s, as queues= of its link says, not %d", link->queues,
                      lane_kind_name[kind[direction]], link->queues == 1 ? "" : "s", d->id, n);
    }
}

static void lane_line(struct reading *r)
{
    enum lane_kind kind;
    int nth;
    char *word = word_at(&r->line, 1, "a lane, DEVICE.KIND1");
    struct device *d = parse_lane(r, word, &kind, &nth);
    struct lane *lane = lane_of(d, kind, nth);
    if (lane && nth)
        fail_word(&r->line, word, "a lane that is not declared above");
    if (!lane)
        lane = add_lane(r->machine, d, kind, nth);
    check_queues(r, word, d);
    lane->gap = time_option(&r->line, "gap", 0);
}

static struct link *read_link(struct reading *r, size_t at)
{
    struct link *link =
        add_link(r->machine, read_rate(&r->line, word_at(&r->line, at, "a rate in bytes per second")), 0);
    if (at + 1 < r->line.n && !strchr(r->line.word[at + 1], '='))
        link->latency = read_time(&r->line, word_at(&r->line, at + 1, ""));
    return link;
}

static void link_line(struct reading *r)
{
    char *devices = word_at(&r->line, 1, "the devices that share it");
    const char *way = word_at(&r->line, 2, "up or down");
    enum direction direction = strcmp(way, "up") == 0 ? LINK_UP : LINK_DOWN;
    if (direction == LINK_DOWN && strcmp(way, "down") != 0)
        fail_word(&r->line, way, "up or down");
    struct link *link = read_link(r, 3);
    link->queues = number_option(&r->line, "queues", 1, MOST_NUMBER, 0);
    const char *queue = word_option(&r->line, "queue");
    link->queue = queue ? read_rate(&r->line, queue) : 0;
    for (char *name; (name = next_name(&r->line, &devices));) {
        struct device *d = read_device(r, name);
        if (d->is_host)
            fail_word(&r->line, name, "a device: a link joins it to the host");
        if (d->link[direction])
            fail_word(&r->line, name, "a device that has no link in this direction yet");
        d->link[direction] = link;
        check_queues(r, name, d);
    }
}

static void disk_line(struct reading *r)
{
    if (r->machine->host->disk)
        fail_word(&r->line, r->line.word[0], "one disk");
    r->machine->host->disk = read_link(r, 1);
}

static void tensor_line(struct reading *r)
{
    const char *name =
        read_name(r, word_at(&r->line, 1, "a tensor's name"), sizeof((struct tensor *)0)->name, r->tensors, r->pool->n);
    struct device *d = read_device(r, word_at(&r->line, 2, "its device"));
    size_t bytes = read_bytes(&r->line, word_at(&r->line, 3, "its bytes"));
    const char *class = word_at(&r->line, 4, "its class");
    int c = 0;
    while (c < MEM_CLASSES && strcmp(memory_class_name[c], class) != 0)
        c++;
    if (c == MEM_CLASSES)
        fail_word(&r->line, class, "parameters, gradients, optimizer, activations or work");
    struct tensor *t = new_bytes_tensor(r->pool, d, (enum memory_class)c, name, bytes);
    t->persistent = flag_option(&r->line, "keep") || c == MEM_PARAMETERS || c == MEM_OPTIMIZER;
    t->choice = flag_option(&r->line, "choice");
}

static enum role read_role(const struct reading *r, const char *word)
{
    char *words = copy_string("");
    for (int k = ROLE_OTHER + 1; k < ROLES_BY_HAND; k++) {
        if (strcmp(role_name[k], word) == 0) {
            free(words);
            return (enum role)k;
        }
        append_text(&words, "%s%s", k == ROLE_OTHER + 1 ? "" : k + 1 == ROLES_BY_HAND ? " or " : ", ", role_name[k]);
    }
    fail_word(&r->line, word, "a role: %s; without role= none", words);
}

static void read_stamp(struct reading *r, struct task *t)
{
    const char *role = word_option(&r->line, "role");
    t->layer = number_option(&r->line, "layer", 0, MOST_NUMBER, -1);
    t->micro = number_option(&r->line, "micro", 0, MOST_NUMBER, -1);
    t->when.every = (uint32_t)number_option(&r->line, "every", 1, MOST_EVERY, 1);
    t->when.rest = (uint32_t)number_option(&r->line, "rest", 0, (int)t->when.every - 1, 0);
    t->role = role ? read_role(r, role) : ROLE_OTHER;
}

static void task_line(struct reading *r)
{
    const char *name = read_name(r, word_at(&r->line, 1, "a task's name"), sizeof((struct task *)0)->name, NULL, 0);
    struct lane *lane = read_lane(r, word_at(&r->line, 2, "its lane"));
    struct task *t = add_host(r->step, lane, name, NULL, NULL);
    t->seconds = read_time(&r->line, word_at(&r->line, 3, "its time"));
    t->host_seconds = time_option(&r->line, "cpu", -1);
    read_stamp(r, t);
    read_operands(r, t, "reads", ACCESS_READ);
    read_operands(r, t, "writes", ACCESS_WRITE);
}

/* Uploads on the receiver's lane, all others on the sender's. */
static struct lane *default_lane(const struct reading *r, const char *name, const struct tensor *to,
                                 const struct tensor *from)
{
    if (!from->device->is_host)
        return from->device->lane[LANE_DOWNLOAD];
    if (to->device->is_host)
        fail_word(&r->line, name, "lane= where both tensors are on the host");
    return to->device->lane[LANE_UPLOAD];
}

static void copy_line(struct reading *r)
{
    const char *name = read_name(r, word_at(&r->line, 1, "a copy's name"), sizeof((struct task *)0)->name, NULL, 0);
    char *target = word_at(&r->line, 2, "the tensor it writes"), *given = copy_string(target),
         *lane = word_option(&r->line, "lane");
    struct tensor *to = read_operand(r, target), *from = read_operand(r, word_at(&r->line, 3, "the tensor it reads"));
    if (to->bytes != from->bytes)
        fail_word(&r->line, given, "as many bytes on both sides: %s has %zu, %s %zu", to->name, to->bytes, from->name,
                  from->bytes);
    if (share_bytes(to, from))
        fail_word(&r->line, given, "other bytes than those it copies");
    struct task *t = add_copy(r->step, lane ? read_lane(r, lane) : default_lane(r, name, to, from), name, to, from);
    t->seconds = time_option(&r->line, "time", -1);
    read_stamp(r, t);
    read_operands(r, t, "reads", ACCESS_READ);
    free(given);
}

/* ---- the file -------------------------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    void (*read)(struct reading *r);
    const char *takes; /* the whole line */
} kinds[] = {
    {"device", device_line, "device NAME memory=BYTES [align=BYTES] [slab=BYTES] [share]"},
    {"lane", lane_line, "lane DEVICE.KIND[N] [gap=TIME]"},
    {"link", link_line, "link DEVICE[,DEVICE...] up|down RATE [LATENCY] [queues=N] [queue=RATE]"},
    {"disk", disk_line, "disk RATE [LATENCY]"},
    {"tensor", tensor_line, "tensor NAME DEVICE BYTES CLASS [keep] [choice]"},
    {"task", task_line,
     "task NAME LANE TIME [layer=K] [micro=M] [role=ROLE] [cpu=TIME] [every=K [rest=R]] [reads=A[b:e],...] "
     "[writes=...]"},
    {"copy", copy_line,
     "copy NAME TO[b:e] FROM[b:e] [lane=LANE] [time=TIME] [layer=K] [micro=M] [role=ROLE] [every=K [rest=R]] "
     "[reads=A[b:e],...]"},
};

static void read_line(struct reading *r, char *line)
{
    split_line(&r->line, line);
    if (r->line.n == 0)
        return;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(kinds[i].word, r->line.word[0]) == 0) {
            kinds[i].read(r);
            check_all_used(&r->line, kinds[i].takes);
            return;
        }
    fail_word(&r->line, r->line.word[0], "device, lane, link, disk, tensor, task or copy");
}

/* The machine's devices are counted first, since tensors and lanes point to them. */
static void count_devices(struct reading *r, const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *word = line + strspn(line, " \t\r"), *name = word + strcspn(word, " \t\r\n");
        name += strspn(name, " \t\r");
        bool host = strncmp(name, "host", 4) == 0 && strcspn(name, " \t\r\n#") == 4;
        r->n_devices += strncmp(word, "device", 6) == 0 && !host;
    }
}

static void open_paper(struct reading *r, const char *text)
{
    count_devices(r, text);
    r->machine = new_machine(r->n_devices);
    r->machine->n_contexts = 1;
    struct device *host = name_device(r->machine, r->n_devices, "host", NO_LIMIT);
    host->by_hand = true;
    r->devices = json_pack("{s:i}", "host", r->n_devices);
    r->tensors = json_object();
    r->n_devices = 0; /* named so far */
    r->pool = new_pool(r->machine);
    r->step = new_step(r->pool, "train");
}

struct step *read_list(const char *path)
{
    char *text = read_text(path), *rest = text;
    struct reading r = {.line = {.path = path}};
    open_paper(&r, text);
    for (char *line; (line = strsep(&rest, "\n"));) {
        r.line.number++;
        read_line(&r, line);
    }
    if (r.step->n == 0)
        fail(EXIT_USAGE, "%s: there is no task in it", path);
    for (int i = 0; i < r.machine->n_lanes; i++)
        r.machine->lane[i]->purpose = FOR_NOTHING;
    for (size_t i = 0; i < r.step->n; i++)
        r.step->task[i]->lane->purpose = FOR_ALL;
    json_decref(r.devices), json_decref(r.tensors);
    free(text);
    return r.step;
}

void free_list(struct step *s)
{
    struct pool *pool = s->pool;
    struct machine *machine = pool->machine;
    free_step(s);
    free_pool(pool);
    close_machine(machine);
}

double given_seconds(const struct task *t)
{
    const struct link *link[2];
    links_of(t, link);
    if (t->seconds >= 0)
        return t->seconds;
    return link_latency(link) + (double)t->access[0].tensor->bytes / link_rate(link, NULL);
}
