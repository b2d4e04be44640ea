/* readlist.c - a step file: the machine, the tensors and the tasks of a list that a person wrote down.
 *
 *     device d0 memory=64M                               it has the lanes compute, upload and download
 *     lane d0.upload1                                    a second lane of that kind
 *     link d0 down 12e9 5us                              to the host: bytes per second, and the latency of a copy
 *     disk 2e9                                           the host's
 *     tensor x d0 1M activations
 *     tensor saved host 1M work
 *     task forward d0.compute 2ms layer=0 writes=x
 *     copy out saved x                                   of x to saved; its time follows from the link
 *
 * Devices, lanes and tensors are above the lines that name them.  `line_kinds` has all words that a line may have,
 * and tutorials/reference-lists.md describes them.  A mistake ends the program with file, line and word.
 */
#include "line.h"
#include "lists.h"
#include "planning/pass/pass.h"
#include "trainer/file/file.h"

struct after_word {    /* a name of `after=` that is looked up when all lines have been read */
    struct task *task; /* the task that waits */
    char *word;
    int line;
};
struct reading {
    struct line line;
    struct machine *machine;
    struct pool *pool;
    struct list *list;
    int n_devices, n_lanes;            /* the number named so far */
    json_t *devices, *lanes, *tensors; /* from name to index */
    json_t *tasks;                     /* from name to the index of the last task of that name */
    struct after_word *awaited;
    size_t n_awaited, cap_awaited;
};

/* The line's second word, a name of fewer than `size` characters.  It must be new in `names`, and is added with its
 * index; NULL: the name need not be new. */
static const char *read_name(struct reading *reading, size_t size, json_t *names, size_t index)
{
    const char *word = word_at(&reading->line, 1);
    if (strlen(word) >= size || strpbrk(word, "[],="))
        fail_word(&reading->line, word, "a name of at most %zu characters without [ ] , =", size - 1);
    if (names && json_object_get(names, word))
        fail_word(&reading->line, word, "a name that has not been used above");
    if (names)
        json_object_set_new_nocheck(names, word, json_integer((json_int_t)index));
    return word;
}

/* The index in `names` of the first `length` characters of the word. */
static size_t find_index(const struct reading *reading, const json_t *names, const char *word, size_t length,
                         const char *expected)
{
    char *name = format_string("%.*s", (int)length, word);
    const json_t *index = json_object_get(names, name);
    if (!index)
        fail_word(&reading->line, word, "%s", expected);
    free(name);
    return (size_t)json_integer_value(index);
}

/* Reads the name of a task, which other tasks may have too.  A name with ' would look like NAME' of after=, which means
 * the run in the step before. */
static const char *read_task_name(struct reading *reading)
{
    const char *name = read_name(reading, sizeof((struct task *)0)->name, NULL, 0);
    if (strchr(name, '\''))
        fail_word(&reading->line, name, "a task's name without '");
    return name;
}

/* Adds the names of lanes that the machine has got since the last call. */
static void name_lanes(struct reading *reading)
{
    for (; reading->n_lanes < reading->machine->n_lanes; reading->n_lanes++) {
        const struct lane *lane = reading->machine->lanes[reading->n_lanes];
        char *name = format_string("%s.%s", lane->device->id, lane->name + strlen(lane->device->id) + 1);
        json_object_set_new_nocheck(reading->lanes, name, json_integer(reading->n_lanes));
        free(name);
    }
}

static struct lane *read_lane(const struct reading *reading, const char *word)
{
    size_t lane = find_index(reading, reading->lanes, word, strlen(word),
                             "a lane, DEVICE.KIND[N], with a device that is declared above, the kind compute, upload "
                             "or download (of host: cpu, disk, feed or report), and N for a further lane that is "
                             "declared");
    return reading->machine->lanes[lane];
}

static struct device *read_device(const struct reading *reading, const char *word, const char *expected)
{
    size_t device = find_index(reading, reading->devices, word, strlen(word), expected);
    return &reading->machine->devices[device];
}

/* "NAME" or "NAME[begin:end]". */
static struct tensor *read_operand(const struct reading *reading, const char *word)
{
    size_t found = find_index(reading, reading->tensors, word, strcspn(word, "["), "a tensor that is declared above");
    struct tensor *tensor = reading->pool->tensors[found];
    if (!strchr(word, '['))
        return tensor;
    size_t begin, end;
    char *range = copy_string(strchr(word, '[') + 1);
    char *colon = strchr(range, ':');
    char *bracket = strchr(range, ']');
    if (!colon || !bracket || bracket < colon || bracket[1])
        fail_word(&reading->line, word, "NAME or NAME[begin:end]");
    *colon = '\0';
    *bracket = '\0';
    if (!parse_bytes(range, &begin) || !parse_bytes(colon + 1, &end) || begin >= end || end > tensor->bytes)
        fail_word(&reading->line, word, "bytes begin:end of %s, which has %zu", tensor->name, tensor->bytes);
    free(range);
    return new_range(reading->pool, tensor, word, begin, end);
}

static void read_operands(struct reading *reading, struct task *task, const char *key, enum access_mode mode)
{
    char *word, *list = word_option(&reading->line, key);
    if (list && !*list) /* "reads=" with no name is allowed */
        list = NULL;
    while ((word = next_name(&reading->line, &list)))
        add_access(task, read_operand(reading, word), mode);
}

/* ---- the lines --------------------------------------------------------------------------------------------------- */

/* The form of the line of `host`, which unlike other devices has an option for the time to issue a task. */
static const char host_form[] = "device host memory=BYTES [align=BYTES] [slab=BYTES] [share] [issue=TIME]";

static void device_line(struct reading *reading)
{
    struct device *device = reading->machine->host;
    if (strcmp(word_at(&reading->line, 1), "host") == 0) {
        reading->line.takes = host_form;
        read_options(&reading->line, LINE_HOST, reading->machine);
    } else {
        const char *name = read_name(reading, sizeof device->id, reading->devices, (size_t)reading->n_devices);
        device = set_up_device(reading->machine, reading->n_devices, name, 0);
        reading->n_devices++;
        name_lanes(reading);
    }
    read_options(&reading->line, LINE_DEVICE, device);
    if (!device->budget)
        fail_word(&reading->line, reading->line.words[1], "memory=BYTES after it");
    device->memory = device->budget;
    if (!device->max_allocation)
        device->max_allocation = device->budget;
    device->extra.described.by_hand = true;
}

/* Where a link says how many queues of a device may use it, the device has no more lanes of the link's direction. */
static void refuse_if_too_many_queues(const struct reading *reading, const char *word, const struct device *device)
{
    for (int direction = LINK_UP; direction < DIRECTIONS; direction++) {
        const struct link *link = device->extra.described.links[direction];
        enum lane_kind kind = lane_of_direction[direction];
        int n = count_lanes(device, kind);
        if (link && link->max_lanes && n > link->max_lanes)
            fail_word(&reading->line, word, "at most %d %s lane%s of %s, as queues= of its link says, not %d",
                      link->max_lanes, lane_kind_name[kind], PLURAL(link->max_lanes), device->id, n);
    }
}

static void lane_line(struct reading *reading)
{
    const char *word = word_at(&reading->line, 1);
    const char *dot = strrchr(word, '.');
    size_t letters = 0; /* length of DEVICE.KIND */
    if (dot)
        letters = (size_t)(dot - word) + strcspn(dot, "0123456789");
    size_t found = find_index(reading, reading->lanes, word, letters,
                              "DEVICE.KIND[N], with a device that is declared above and the kind compute, upload or "
                              "download (of host: cpu, disk, feed or report)");
    struct lane *lane = reading->machine->lanes[found];
    if (word[letters]) {
        int nth = (int)read_counter(&reading->line, word + letters, 1, 10000);
        if (lane_of(lane->device, lane->kind, nth))
            fail_word(&reading->line, word, "a lane that is not declared above");
        lane = add_lane(reading->machine, lane->device, lane->kind, nth);
        name_lanes(reading);
    }
    refuse_if_too_many_queues(reading, word, lane->device);
    read_options(&reading->line, LINE_LANE, lane);
}

static struct link *read_link(struct reading *reading, size_t at)
{
    struct link *link = add_link(reading->machine, read_as(&reading->line, VALUE_RATE, word_at(&reading->line, at)), 0);
    if (at + 1 < reading->line.n && !strchr(reading->line.words[at + 1], '='))
        link->latency = read_as(&reading->line, VALUE_TIME, word_at(&reading->line, at + 1));
    return link;
}

static void link_line(struct reading *reading)
{
    char *name, *devices = word_at(&reading->line, 1);
    const char *way = word_at(&reading->line, 2);
    enum direction direction = strcmp(way, "up") == 0 ? LINK_UP : LINK_DOWN;
    if (direction == LINK_DOWN && strcmp(way, "down") != 0)
        fail_word(&reading->line, way, "up or down");
    struct link *link = read_link(reading, 3);
    read_options(&reading->line, LINE_LINK, link);
    while ((name = next_name(&reading->line, &devices))) {
        struct device *device = read_device(reading, name, "a device that is declared above");
        if (device->is_host)
            fail_word(&reading->line, name, "a device: a link joins it to the host");
        if (device->extra.described.links[direction])
            fail_word(&reading->line, name, "a device that has no link in this direction yet");
        device->extra.described.links[direction] = link;
        refuse_if_too_many_queues(reading, name, device);
    }
}

static void disk_line(struct reading *reading)
{
    if (reading->machine->host->extra.described.disk)
        fail_word(&reading->line, reading->line.words[0], "one disk");
    reading->machine->host->extra.described.disk = read_link(reading, 1);
}

static void tensor_line(struct reading *reading)
{
    const char *name = read_name(reading, sizeof((struct tensor *)0)->name, reading->tensors, reading->pool->n);
    struct device *device =
        read_device(reading, word_at(&reading->line, 2), "a device that is declared above, or host");
    size_t bytes = (size_t)read_as(&reading->line, VALUE_BYTES, word_at(&reading->line, 3));
    enum memory_class class = (enum memory_class)read_as(&reading->line, VALUE_CLASS, word_at(&reading->line, 4));
    struct tensor *tensor = new_bytes_tensor(reading->pool, device, class, name, bytes);
    read_options(&reading->line, LINE_TENSOR, tensor);
    if (class == MEM_PARAMETERS || class == MEM_OPTIMIZER)
        tensor->persistent = true;
}

/* Reads `after=`.  A name is looked up among the tasks above.  A name that is not there, and NAME', the run in the step
 * before, are looked up when all lines have been read. */
static void read_after(struct reading *reading, struct task *task)
{
    char *word, *list = word_option(&reading->line, "after");
    if (list && !*list) /* as for "reads=" */
        list = NULL;
    while ((word = next_name(&reading->line, &list))) {
        const json_t *above = json_object_get(reading->tasks, word);
        if (above)
            add_after(reading->list, task, reading->list->tasks[json_integer_value(above)], SAME_STEP);
        else {
            GROW(reading->awaited, reading->cap_awaited, reading->n_awaited + 1);
            reading->awaited[reading->n_awaited++] =
                (struct after_word){.task = task, .word = copy_string(word), .line = reading->line.number};
        }
    }
}

/* Looks up the awaited names.  A name without ' is wrong here: its task is below, or nowhere. */
static void add_awaited(struct reading *reading)
{
    for (struct after_word *awaited = reading->awaited; awaited < reading->awaited + reading->n_awaited; awaited++) {
        reading->line.number = awaited->line;
        if (json_object_get(reading->tasks, awaited->word))
            fail_word(&reading->line, awaited->word,
                      "a task above: %s stands below, or is this task (%s' is that of the step before)", awaited->word,
                      awaited->word);
        size_t length = strcspn(awaited->word, "'");
        bool previous = strcmp(awaited->word + length, "'") == 0;
        size_t first = find_index(reading, reading->tasks, awaited->word, previous ? length : strlen(awaited->word),
                                  "NAME of a task, or NAME' for its run in the step before");
        add_after(reading->list, awaited->task, reading->list->tasks[first], STEP_BEFORE);
        free(awaited->word);
    }
    free(reading->awaited);
}

/* What lines `task` and `copy` have in common. */
static void read_common_words(struct reading *reading, struct task *task)
{
    read_options(&reading->line, LINE_TASK, task);
    read_options(&reading->line, is_copy(task) ? LINE_COPY : LINE_WORK, task);
    if (task->extra.when.remainder >= task->extra.when.every)
        fail_word(&reading->line, reading->line.words[0], "rest= below every=, which is %u", task->extra.when.every);
    read_operands(reading, task, "reads", ACCESS_READ);
    read_after(reading, task);
    json_object_set_new_nocheck(reading->tasks, task->name, json_integer((json_int_t)task->index));
}

static void task_line(struct reading *reading)
{
    const char *name = read_task_name(reading);
    struct task *task = add_host(reading->list, read_lane(reading, word_at(&reading->line, 2)), name, NULL, NULL);
    task->extra.seconds = read_as(&reading->line, VALUE_TIME, word_at(&reading->line, 3));
    read_common_words(reading, task);
    read_operands(reading, task, "writes", ACCESS_WRITE);
}

/* The lane that `given` names; without it an upload is on the receiver's lane, and any other copy on the sender's. */
static struct lane *lane_of_copy(const struct reading *reading, const char *given, const struct tensor *to,
                                 const struct tensor *from)
{
    if (given)
        return read_lane(reading, given);
    if (from->device->is_host)
        return to->device->lanes[LANE_UPLOAD];
    return from->device->lanes[LANE_DOWNLOAD];
}

static void copy_line(struct reading *reading)
{
    const char *name = read_task_name(reading);
    const char *target = word_at(&reading->line, 2);
    const char *given = word_option(&reading->line, "lane");
    struct tensor *to = read_operand(reading, target);
    struct tensor *from = read_operand(reading, word_at(&reading->line, 3));
    if (to->bytes != from->bytes)
        fail_word(&reading->line, target, "as many bytes on both sides: %s has %zu, %s %zu", to->name, to->bytes,
                  from->name, from->bytes);
    if (share_bytes(to, from) && to->offset != from->offset)
        fail_word(&reading->line, target, "other bytes than those it copies, or all of them (it takes no time then)");
    if (!given && from->device->is_host && to->device->is_host)
        fail_word(&reading->line, name, "lane= where both tensors are on the host");
    struct task *task = add_copy(reading->list, lane_of_copy(reading, given, to, from), name, to, from);
    read_common_words(reading, task);
    if (task->extra.message && task->role != ROLE_BROADCAST)
        fail_word(&reading->line, name, "role=broadcast beside msg=");
    reading->list->extra.last_message = MAX(reading->list->extra.last_message, task->extra.message);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static const struct {
    void (*read)(struct reading *reading);
    const char *form; /* begins with the first word of such lines */
} line_kinds[] = {
    {device_line, "device NAME memory=BYTES [align=BYTES] [slab=BYTES] [share]"}, /* device_line() has that of `host` */
    {lane_line, "lane DEVICE.KIND[N] [gap=TIME]"},
    {link_line, "link DEVICE[,DEVICE...] up|down RATE [LATENCY] [queues=N] [queue=RATE]"},
    {disk_line, "disk RATE [LATENCY]"},
    {tensor_line, "tensor NAME DEVICE BYTES CLASS [keep] [buffer] [side]"},
    {task_line, "task NAME LANE TIME [layer=K] [micro=M] [role=ROLE] [cpu=TIME] [every=K [rest=R]] [after=NAME,...] "
                "[reads=A[b:e],...] [writes=...]"},
    {copy_line, "copy NAME TO[b:e] FROM[b:e] [lane=LANE] [time=TIME] [layer=K] [micro=M] [role=ROLE] [msg=N] "
                "[every=K [rest=R]] [after=NAME,...] [reads=A[b:e],...]"},
};

/* The number of devices in the text.  They are counted first: they may not move once tensors or lanes point there. */
static int count_devices(const char *text)
{
    char *copy = copy_string(text);
    char *rest = copy; /* what has not been read yet */
    char *line;
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
static void begin_reading(struct reading *reading, int n)
{
    reading->machine = new_machine(n);
    reading->machine->n_contexts = 1;
    struct device *host = set_up_device(reading->machine, n, "host", NO_LIMIT);
    host->extra.described.by_hand = true;
    reading->devices = json_pack("{s:i}", "host", n);
    reading->lanes = json_object();
    reading->tensors = json_object();
    reading->tasks = json_object();
    name_lanes(reading);
    reading->pool = new_pool(reading->machine);
    reading->list = new_list(reading->pool, "train");
}

/* Hardware descriptions and profiles have lines NAME = VALUE. */
static void refuse_if_costs(const struct line *line)
{
    if (line->n > 1 && strcmp(line->words[1], "=") == 0)
        fail(EXIT_USAGE,
             "%s is not a step file such as data/steps/1f1b.txt: its line %d, \"%.60s = ...\", is one of a hardware "
             "description, which --hardware takes, or of a profile, which --profile takes",
             line->path, line->number, line->words[0]);
}

/* Reads a line by the kind that its first word names. */
static void read_line(struct reading *reading)
{
    const char *word = reading->line.words[0];
    size_t kind = 0;
    size_t length = strlen(word);
    refuse_if_costs(&reading->line);
    while (kind < COUNT(line_kinds) &&
           (strncmp(line_kinds[kind].form, word, length) != 0 || line_kinds[kind].form[length] != ' '))
        kind++;
    if (kind == COUNT(line_kinds))
        fail_word(&reading->line, word,
                  "device, lane, link, disk, tensor, task or copy, as at the beginning of each line of a step file");
    reading->line.takes = line_kinds[kind].form;
    line_kinds[kind].read(reading);
    for (size_t i = 1; i < reading->line.n; i++)
        if (!reading->line.used[i])
            fail_word(&reading->line, reading->line.words[i], "%s", reading->line.takes);
}

/* The form in which the file describes a list; NULL: it is a step file. */
static const struct list_form *form_of(const char *path)
{
    for (size_t i = 0; i < n_modules; i++) {
        const struct list_form *form = planning_parts_of(modules[i])->list_form;
        if (form && ends_with(path, form->ending))
            return form;
    }
    return NULL;
}

bool names_list(const char *path) { return ends_with(path, ".txt") || form_of(path); }

struct list *read_list(const char *path)
{
    const struct list_form *form = form_of(path);
    refuse_if_other_kind(path, KIND_STEP_FILE, form ? "a list" : "a step file such as data/steps/1f1b.txt");
    char *text = form ? form->read(path) : read_text(path);
    char *line, *rest = text;
    struct reading reading = {.line = {.path = path}};
    begin_reading(&reading, count_devices(text));
    while ((line = strsep(&rest, "\n"))) {
        reading.line.number++;
        split_line(&reading.line, line);
        if (reading.line.n > 0)
            read_line(&reading);
    }
    add_awaited(&reading);
    if (reading.list->n == 0)
        fail(EXIT_USAGE, "%s: there is no task in it; add lines such as `task NAME LANE TIME`", path);
    for (int i = 0; i < reading.machine->n_lanes; i++)
        set_purpose(reading.machine->lanes[i], FOR_NOTHING);
    for (size_t i = 0; i < reading.list->n; i++)
        set_purpose(reading.list->tasks[i]->lane, FOR_ALL);
    json_decref(reading.devices);
    json_decref(reading.lanes);
    json_decref(reading.tensors);
    json_decref(reading.tasks);
    free(text);
    return reading.list;
}

void free_list_and_machine(struct list *list)
{
    struct pool *pool = list->pool;
    struct machine *machine = pool->machine;
    free_list(list);
    free_pool(pool);
    close_machine(machine);
}
