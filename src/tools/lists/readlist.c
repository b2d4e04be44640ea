/* readlist.c - a step file: the machine, the tensors and the tasks of a list that a person wrote down.
 *
 * Devices, lanes and tensors stand above the lines that name them.  The lines are shown in `line_kinds`;
 * tutorials/reference-lists.md describes their words.  A mistake ends the program with file, line and word.
 */
#include "line.h"
#include "lists.h"
#include "techniques/pass/edit.h"
#include "trainer/base/module.h"
#include "trainer/file/file.h"

struct awaited {       /* a name of `after=` that is looked up when all lines have been read */
    struct task *task; /* the task that waits */
    char *word;
    int line;
};
struct reading {
    struct line line;
    struct machine *machine;
    struct pool *pool;
    struct step *step;
    int n_devices, n_lanes;            /* the number named so far */
    json_t *devices, *lanes, *tensors; /* from name to index */
    json_t *tasks;                     /* from name to the index of the last task of that name */
    struct awaited *awaited;
    size_t n_awaited, cap_awaited;
};

/* The line's second word, a name of fewer than `size` characters.  It must be new in `names`, and is added with its
 * index; NULL: the name need not be new. */
static const char *read_name(struct reading *r, size_t size, json_t *names, size_t index)
{
    const char *word = word_at(&r->line, 1);
    if (strlen(word) >= size || strpbrk(word, "[],="))
        fail_word(&r->line, word, "a name of at most %zu characters without [ ] , =", size - 1);
    if (names && json_object_get(names, word))
        fail_word(&r->line, word, "a name that has not been used above");
    if (names)
        json_object_set_new_nocheck(names, word, json_integer((json_int_t)index));
    return word;
}

/* The index in `names` of the first `length` characters of the word. */
static size_t find_index(const struct reading *r, const json_t *names, const char *word, size_t length,
                         const char *expected)
{
    char *name = format_string("%.*s", (int)length, word);
    const json_t *index = json_object_get(names, name);
    if (!index)
        fail_word(&r->line, word, "%s", expected);
    free(name);
    return (size_t)json_integer_value(index);
}

/* Reads the name of a task, which other tasks may have too.  A name with ' would look like NAME' of after=, which means
 * the run in the step before. */
static const char *read_task_name(struct reading *r)
{
    const char *name = read_name(r, sizeof((struct task *)0)->name, NULL, 0);
    if (strchr(name, '\''))
        fail_word(&r->line, name, "a task's name without '");
    return name;
}

static void name_lanes(struct reading *r)
{
    for (; r->n_lanes < r->machine->n_lanes; r->n_lanes++) {
        const struct lane *l = r->machine->lane[r->n_lanes];
        char *name = format_string("%s.%s", l->device->id, l->name + strlen(l->device->id) + 1);
        json_object_set_new_nocheck(r->lanes, name, json_integer(r->n_lanes));
        free(name);
    }
}

static struct lane *read_lane(const struct reading *r, const char *word)
{
    size_t lane = find_index(r, r->lanes, word, strlen(word), "a lane that is declared above, DEVICE.KIND[N]");
    return r->machine->lane[lane];
}

static struct device *read_device(const struct reading *r, const char *word, const char *expected)
{
    size_t device = find_index(r, r->devices, word, strlen(word), expected);
    return &r->machine->device[device];
}

/* "NAME" or "NAME[begin:end]". */
static struct tensor *read_operand(const struct reading *r, const char *word)
{
    size_t found = find_index(r, r->tensors, word, strcspn(word, "["), "a tensor that is declared above");
    struct tensor *t = r->pool->tensors[found];
    if (!strchr(word, '['))
        return t;
    size_t begin, end;
    char *range = copy_string(strchr(word, '[') + 1);
    char *colon = strchr(range, ':'), *bracket = strchr(range, ']');
    if (!colon || !bracket || bracket < colon || bracket[1])
        fail_word(&r->line, word, "NAME or NAME[begin:end]");
    *colon = '\0';
    *bracket = '\0';
    if (!parse_bytes(range, &begin) || !parse_bytes(colon + 1, &end) || begin >= end || end > t->bytes)
        fail_word(&r->line, word, "bytes begin:end of %s, which has %zu", t->name, t->bytes);
    free(range);
    return new_range(r->pool, t, word, begin, end);
}

static void read_operands(struct reading *r, struct task *t, const char *key, enum access_mode mode)
{
    char *word, *list = word_option(&r->line, key);
    if (list && !*list) /* "reads=" with no name is allowed */
        list = NULL;
    while ((word = next_name(&r->line, &list)))
        add_access(t, read_operand(r, word), mode);
}

/* ---- the lines ------------------------------------------------------------------------------------------------- */

static void device_line(struct reading *r)
{
    struct device *d = r->machine->host;
    if (strcmp(word_at(&r->line, 1), "host") == 0) {
        read_options(&r->line, LINE_HOST, r->machine);
    } else {
        const char *name = read_name(r, sizeof d->id, r->devices, (size_t)r->n_devices);
        d = name_device(r->machine, r->n_devices, name, 0);
        r->n_devices++;
        name_lanes(r);
    }
    read_options(&r->line, LINE_DEVICE, d);
    if (!d->budget)
        fail_word(&r->line, r->line.word[1], "memory=BYTES after it");
    d->memory = d->budget;
    if (!d->max_allocation)
        d->max_allocation = d->budget;
    d->described.by_hand = true;
}

/* Where a link says how many queues of a device may use it, the device has no more lanes of the link's direction. */
static void check_queues(const struct reading *r, const char *word, const struct device *d)
{
    static const enum lane_kind kind[DIRECTIONS] = {[LINK_UP] = LANE_UPLOAD, [LINK_DOWN] = LANE_DOWNLOAD};
    for (int direction = LINK_UP; direction < DIRECTIONS; direction++) {
        const struct link *link = d->described.link[direction];
        int n = count_lanes(d, kind[direction]);
        if (link && link->max_lanes && n > link->max_lanes)
            fail_word(&r->line, word, "at most %d %s lane%s of %s, as queues= of its link says, not %d",
                      link->max_lanes, lane_kind_name[kind[direction]], link->max_lanes == 1 ? "" : "s", d->id, n);
    }
}

static void lane_line(struct reading *r)
{
    const char *word = word_at(&r->line, 1), *dot = strrchr(word, '.');
    size_t letters = 0; /* length of DEVICE.KIND */
    if (dot)
        letters = (size_t)(dot - word) + strcspn(dot, "0123456789");
    size_t found = find_index(r, r->lanes, word, letters,
                              "DEVICE.KIND[N], the device declared above, the kind compute, upload or "
                              "download, of host cpu, disk, feed or report");
    struct lane *lane = r->machine->lane[found];
    if (word[letters]) {
        int nth = (int)read_counter(&r->line, word + letters, 1, 10000);
        if (lane_of(lane->device, lane->kind, nth))
            fail_word(&r->line, word, "a lane that is not declared above");
        lane = add_lane(r->machine, lane->device, lane->kind, nth);
        name_lanes(r);
    }
    check_queues(r, word, lane->device);
    read_options(&r->line, LINE_LANE, lane);
}

static struct link *read_link(struct reading *r, size_t at)
{
    struct link *link = add_link(r->machine, read_as(&r->line, VALUE_RATE, word_at(&r->line, at)), 0);
    if (at + 1 < r->line.n && !strchr(r->line.word[at + 1], '='))
        link->latency = read_as(&r->line, VALUE_TIME, word_at(&r->line, at + 1));
    return link;
}

static void link_line(struct reading *r)
{
    char *name, *devices = word_at(&r->line, 1);
    const char *way = word_at(&r->line, 2);
    enum direction direction = strcmp(way, "up") == 0 ? LINK_UP : LINK_DOWN;
    if (direction == LINK_DOWN && strcmp(way, "down") != 0)
        fail_word(&r->line, way, "up or down");
    struct link *link = read_link(r, 3);
    read_options(&r->line, LINE_LINK, link);
    while ((name = next_name(&r->line, &devices))) {
        struct device *d = read_device(r, name, "a device that is declared above");
        if (d->is_host)
            fail_word(&r->line, name, "a device: a link joins it to the host");
        if (d->described.link[direction])
            fail_word(&r->line, name, "a device that has no link in this direction yet");
        d->described.link[direction] = link;
        check_queues(r, name, d);
    }
}

static void disk_line(struct reading *r)
{
    if (r->machine->host->described.disk)
        fail_word(&r->line, r->line.word[0], "one disk");
    r->machine->host->described.disk = read_link(r, 1);
}

static void tensor_line(struct reading *r)
{
    const char *name = read_name(r, sizeof((struct tensor *)0)->name, r->tensors, r->pool->n);
    struct device *d = read_device(r, word_at(&r->line, 2), "a device that is declared above, or host");
    size_t bytes = (size_t)read_as(&r->line, VALUE_BYTES, word_at(&r->line, 3));
    enum memory_class class = (enum memory_class)read_as(&r->line, VALUE_CLASS, word_at(&r->line, 4));
    struct tensor *t = new_bytes_tensor(r->pool, d, class, name, bytes);
    read_options(&r->line, LINE_TENSOR, t);
    if (class == MEM_PARAMETERS || class == MEM_OPTIMIZER)
        t->persistent = true;
}

/* Reads `after=`.  A name is looked up among the tasks above.  A name that is not there, and NAME', the run in the step
 * before, are looked up when all lines have been read. */
static void read_after(struct reading *r, struct task *t)
{
    char *word, *list = word_option(&r->line, "after");
    if (list && !*list) /* as for "reads=" */
        list = NULL;
    while ((word = next_name(&r->line, &list))) {
        const json_t *above = json_object_get(r->tasks, word);
        if (above)
            add_after(r->step, t, r->step->task[json_integer_value(above)], SAME_STEP);
        else
            *APPEND(r->awaited, r->n_awaited, r->cap_awaited) =
                (struct awaited){.task = t, .word = copy_string(word), .line = r->line.number};
    }
}

/* Looks up the awaited names.  A name without ' is wrong here: its task stands below, or nowhere. */
static void find_awaited(struct reading *r)
{
    for (struct awaited *a = r->awaited; a < r->awaited + r->n_awaited; a++) {
        r->line.number = a->line;
        if (json_object_get(r->tasks, a->word))
            fail_word(&r->line, a->word,
                      "a task above: %s stands below, or is this task (%s' is that of the step before)", a->word,
                      a->word);
        size_t length = strcspn(a->word, "'");
        bool previous = strcmp(a->word + length, "'") == 0;
        size_t first = find_index(r, r->tasks, a->word, previous ? length : strlen(a->word),
                                  "NAME of a task, or NAME' for its run in the step before");
        add_after(r->step, a->task, r->step->task[first], STEP_BEFORE);
        free(a->word);
    }
    free(r->awaited);
}

static void read_task(struct reading *r, struct task *t)
{
    read_options(&r->line, LINE_TASK, t);
    read_options(&r->line, is_copy(t) ? LINE_COPY : LINE_WORK, t);
    if (t->when.remainder >= t->when.every)
        fail_word(&r->line, r->line.word[0], "rest= below every=, which is %u", t->when.every);
    read_operands(r, t, "reads", ACCESS_READ);
    read_after(r, t);
    json_object_set_new_nocheck(r->tasks, t->name, json_integer((json_int_t)t->index));
}

static void task_line(struct reading *r)
{
    const char *name = read_task_name(r);
    struct task *t = add_host(r->step, read_lane(r, word_at(&r->line, 2)), name, NULL, NULL);
    t->seconds = read_as(&r->line, VALUE_TIME, word_at(&r->line, 3));
    read_task(r, t);
    read_operands(r, t, "writes", ACCESS_WRITE);
}

/* The lane that `given` names; without it an upload is on the receiver's lane, and any other copy on the sender's. */
static struct lane *lane_of_copy(const struct reading *r, const char *given, const struct tensor *to,
                                 const struct tensor *from)
{
    if (given)
        return read_lane(r, given);
    if (from->device->is_host)
        return to->device->lane[LANE_UPLOAD];
    return from->device->lane[LANE_DOWNLOAD];
}

static void copy_line(struct reading *r)
{
    const char *name = read_task_name(r);
    const char *target = word_at(&r->line, 2);
    const char *given = word_option(&r->line, "lane");
    struct tensor *to = read_operand(r, target), *from = read_operand(r, word_at(&r->line, 3));
    if (to->bytes != from->bytes)
        fail_word(&r->line, target, "as many bytes on both sides: %s has %zu, %s %zu", to->name, to->bytes, from->name,
                  from->bytes);
    if (share_bytes(to, from) && to->offset != from->offset)
        fail_word(&r->line, target, "other bytes than those it copies, or all of them (it takes no time then)");
    if (!given && from->device->is_host && to->device->is_host)
        fail_word(&r->line, name, "lane= where both tensors are on the host");
    struct task *t = add_copy(r->step, lane_of_copy(r, given, to, from), name, to, from);
    read_task(r, t);
    if (t->message && t->role != ROLE_BROADCAST)
        fail_word(&r->line, name, "role=broadcast beside msg=");
    r->step->last_message = MAX(r->step->last_message, t->message);
}

/* ---- the file -------------------------------------------------------------------------------------------------- */

static const struct {
    void (*read)(struct reading *r);
    const char *form; /* begins with the first word of such lines */
} line_kinds[] = {
    {device_line, "device NAME memory=BYTES [align=BYTES] [slab=BYTES] [share]"}, /* `host`: [issue=TIME] per task */
    {lane_line, "lane DEVICE.KIND[N] [gap=TIME]"},
    {link_line, "link DEVICE[,DEVICE...] up|down RATE [LATENCY] [queues=N] [queue=RATE]"},
    {disk_line, "disk RATE [LATENCY]"},
    {tensor_line, "tensor NAME DEVICE BYTES CLASS [keep] [buffer] [choice]"},
    {task_line, "task NAME LANE TIME [layer=K] [micro=M] [role=ROLE] [cpu=TIME] [every=K [rest=R]] [after=NAME,...] "
                "[reads=A[b:e],...] [writes=...]"},
    {copy_line, "copy NAME TO[b:e] FROM[b:e] [lane=LANE] [time=TIME] [layer=K] [micro=M] [role=ROLE] [msg=N] "
                "[every=K [rest=R]] [after=NAME,...] [reads=A[b:e],...]"},
};

/* The number of devices in the text.  They are counted first: they may not move once tensors or lanes point there. */
static int count_devices(const char *text)
{
    char *copy = copy_string(text), *rest = copy, *line;
    int n = 0;
    while ((line = strsep(&rest, "\n"))) {
        char kind[8], name[8];
        int words = sscanf(line, " %7[^ \t\r#] %7[^ \t\r#]", kind, name);
        if (words == 2 && strcmp(kind, "device") == 0 && strcmp(name, "host") != 0)
            n++;
    }
    free(copy);
    return n;
}

/* Sets up a machine of n devices, a pool and a list, all of them empty. */
static void begin_reading(struct reading *r, int n)
{
    r->machine = new_machine(n);
    r->machine->n_contexts = 1;
    name_device(r->machine, n, "host", NO_LIMIT)->described.by_hand = true;
    r->devices = json_pack("{s:i}", "host", n);
    r->lanes = json_object();
    r->tensors = json_object();
    r->tasks = json_object();
    name_lanes(r);
    r->pool = new_pool(r->machine);
    r->step = new_step(r->pool, "train");
}

/* Reads a line by the kind that its first word names. */
static void read_line(struct reading *r)
{
    const char *word = r->line.word[0];
    size_t kind = 0, length = strlen(word);
    while (kind < COUNT(line_kinds) &&
           (strncmp(line_kinds[kind].form, word, length) != 0 || line_kinds[kind].form[length] != ' '))
        kind++;
    if (kind == COUNT(line_kinds))
        fail_word(&r->line, word, "device, lane, link, disk, tensor, task or copy");
    r->line.takes = line_kinds[kind].form;
    line_kinds[kind].read(r);
    for (size_t i = 1; i < r->line.n; i++)
        if (!r->line.used[i])
            fail_word(&r->line, r->line.word[i], "%s", r->line.takes);
}

/* The form in which the file describes a list; NULL: it is a step file. */
static const struct list_form *form_of(const char *path)
{
    for (size_t i = 0; i < n_modules; i++) {
        const struct list_form *form = modules[i]->list_form;
        if (form && ends_with(path, form->ending))
            return form;
    }
    return NULL;
}

bool names_list(const char *path) { return ends_with(path, ".txt") || form_of(path); }

struct step *read_list(const char *path)
{
    const struct list_form *form = form_of(path);
    char *text = form ? form->read(path) : read_text(path);
    char *line, *rest = text;
    struct reading r = {.line = {.path = path}};
    begin_reading(&r, count_devices(text));
    while ((line = strsep(&rest, "\n"))) {
        r.line.number++;
        split_line(&r.line, line);
        if (r.line.n > 0)
            read_line(&r);
    }
    find_awaited(&r);
    if (r.step->n == 0)
        fail(EXIT_USAGE, "%s: there is no task in it; add lines such as 'task NAME LANE TIME'", path);
    for (int i = 0; i < r.machine->n_lanes; i++)
        set_purpose(r.machine->lane[i], FOR_NOTHING);
    for (size_t i = 0; i < r.step->n; i++)
        set_purpose(r.step->task[i]->lane, FOR_ALL);
    json_decref(r.devices);
    json_decref(r.lanes);
    json_decref(r.tensors);
    json_decref(r.tasks);
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
