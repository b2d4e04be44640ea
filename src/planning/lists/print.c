/* print.c - a list and its memory, for people and as JSON. */
#include "lists.h"
#include "trainer/base/json.h"

const char *budget_rule(const struct machine *machine)
{
    if (machine->host->extra.described.by_hand)
        return "memory= in the step file, or --device-mem and --host-mem";
    if (!machine->devices[0].cl)
        return "--device-mem, --host-mem, else the memory that is described";
    return "--device-mem, --host-mem, else all (CPUs: 3/4 of the host's, GPUs: 15/16 less 256 MiB)";
}

/* Does one of the first n accesses touch the tensor in this mode? */
static bool touches_before(const struct task *task, int n, const struct tensor *tensor, enum access_mode mode)
{
    for (int k = 0; k < n; k++)
        if (task->accesses[k].tensor == tensor && (task->accesses[k].mode & mode))
            return true;
    return false;
}

/* "mlp.ln, h.0.mlp.c_fc.weight": what the task touches in this mode; NAME@DEVICE where it lies elsewhere. */
static void print_accesses(FILE *out, const struct task *task, enum access_mode mode)
{
    const char *comma = "";
    for (int i = 0; i < task->n_accesses; i++) {
        const struct tensor *tensor = task->accesses[i].tensor;
        if (!(task->accesses[i].mode & mode) || touches_before(task, i, tensor, mode))
            continue;
        fprintf(out, "%s%s", comma, tensor->name);
        if (tensor->device != task->lane->device)
            fprintf(out, "@%s", tensor->device->id);
        comma = ", ";
    }
    if (!*comma)
        fputs("-", out);
}

enum { NO_BREAK = '\v' }; /* a blank at which a terminal shall not fold a line; none is left when it is printed */

/* "3, ~7' (2 implied)": edges that follow from others are only counted. */
static void print_edges(FILE *out, const struct task *task)
{
    const char *comma = "";
    size_t implied = 0;
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
        if (!edge->needs_wait) {
            implied++;
            continue;
        }
        fprintf(out, "%s%s%u%s", comma, edge->kind == EDGE_REUSE ? "~" : "", edge->producer, edge->previous ? "'" : "");
        comma = ", ";
    }
    if (implied)
        fprintf(out, "%s(%zu%cimplied)", *comma ? " " : "", implied, NO_BREAK);
}

/* The widths of columns: as on the pages, or on a terminal as narrow as the list allows. */
struct widths {
    int name, lane, mflop, mib;
};

static struct widths widths_of(FILE *out, const struct list *list)
{
    if (!is_screen(fileno(out)))
        return (struct widths){.name = 22, .lane = 16, .mflop = 10, .mib = 9};
    struct widths widths = {.name = 4, .lane = 4, .mflop = 7, .mib = 7};
    for (size_t i = 0; i < list->n; i++) {
        widths.name = MAX(widths.name, (int)strlen(list->tasks[i]->name));
        widths.lane = MAX(widths.lane, (int)strlen(list->tasks[i]->lane->name));
    }
    return widths;
}

/* Both lines of a task.  A terminal folds them. */
static void print_task(FILE *screen, const struct widths *widths, size_t number, const struct task *task)
{
    struct begun_text begun;
    FILE *out = begin_text(&begun);
    char layer[16] = "-", micro[16] = "-";
    if (task->layer >= 0)
        snprintf(layer, sizeof layer, "%d", task->layer);
    if (task->micro >= 0)
        snprintf(micro, sizeof micro, "%d", task->micro);
    fprintf(out, "%5zu  %-*s %5s %5s  %-*s %*.2f %*.3f  ", number, widths->name, task->name, layer, micro, widths->lane,
            task->lane->name, widths->mflop, task->flops / 1e6, widths->mib, (double)task->bytes / (1 << 20));
    print_edges(out, task);
    fprintf(out, "\n%9s", "");
    print_accesses(out, task, ACCESS_READ);
    fprintf(out, " -> ");
    print_accesses(out, task, ACCESS_WRITE);
    if (is_conditional(task))
        fprintf(out, "  (not in every step)");
    char *text = end_text(&begun);
    char *folded = fold_text(text, is_screen(fileno(screen)) ? screen_width(fileno(screen)) : INT32_MAX);
    for (char *at = folded; *at; at++)
        if (*at == NO_BREAK)
            *at = ' ';
    fprintf(screen, "%s\n", folded);
    free(folded);
    free(text);
}

void print_step(FILE *out, const struct list *list)
{
    const struct widths widths = widths_of(out, list);
    fprintf(out,
            "list %s: %zu tasks, each with what it reads -> writes\n"
            "waits: task numbers; ' of the step before; ~ only because bytes are reused\n"
            "%5s  %-*s %5s %5s  %-*s %*s %*s  waits for\n",
            list->name, list->n, "#", widths.name, "task", "layer", "micro", widths.lane, "lane", widths.mflop, "MFLOP",
            widths.mib, "MiB");
    for (size_t i = 0; i < list->n; i++)
        print_task(out, &widths, i, list->tasks[i]);
}

/* By device, there first what is kept, then by address, then by time. */
static int compare_places(const struct tensor *a, const struct tensor *b)
{
    if (a->device != b->device)
        return COMPARE(a->device->index, b->device->index);
    if (a->persistent != b->persistent)
        return COMPARE(b->persistent, a->persistent);
    if (a->slab != b->slab)
        return COMPARE(a->slab, b->slab);
    if (a->address != b->address)
        return COMPARE(a->address, b->address);
    return COMPARE(a->held_from, b->held_from);
}

static int map_order(const void *left, const void *right)
{
    const struct tensor *a = *(struct tensor *const *)left;
    const struct tensor *b = *(struct tensor *const *)right;
    return compare_places(a, b);
}

static int longest_device(const struct machine *machine)
{
    int longest = (int)strlen("device");
    for (int i = 0; i <= machine->n_devices; i++)
        longest = MAX(longest, (int)strlen(machine->devices[i].id));
    return longest;
}

void print_map(FILE *out, const struct pool *pool, const struct list *list)
{
    struct tensor **tensors = allocate(pool->n, sizeof *tensors);
    size_t n = 0;
    for (size_t i = 0; i < pool->n; i++) {
        struct tensor *tensor = pool->tensors[i];
        if (tensor->storage == tensor && tensor->slab >= 0 && (tensor->persistent || tensor->list == list))
            tensors[n++] = tensor;
    }
    SORT(tensors, n, map_order);
    bool is_narrow = is_screen(fileno(out));
    int id_width = is_narrow ? longest_device(pool->machine) : 18;
    int bytes_width = is_narrow ? 11 : 12;
    print_line(out,
               "\nmemory map of list %s: where a tensor lies, and its first and last task; kept: from step to step",
               list->name);
    fprintf(out, "%-*s %4s %*s %*s  %-11s  %5s %5s  tensor\n", id_width, "device", "slab", bytes_width, "address",
            bytes_width, "bytes", "class", "first", "last");
    for (size_t i = 0; i < n; i++) {
        const struct tensor *tensor = tensors[i];
        char life[32] = "kept";
        if (!tensor->persistent)
            snprintf(life, sizeof life, "%5d %5d", tensor->held_from, tensor->held_until);
        fprintf(out, "%-*s %4d %*zu %*zu  %-11s  %11s  %s\n", id_width, tensor->device->id, tensor->slab, bytes_width,
                tensor->address, bytes_width, tensor->bytes, memory_class_name[counted_as(tensor)], life, tensor->name);
    }
    free(tensors);
}

/* The columns of classes, in their order.  They are narrow, so that a line of a device like 0:0x2.0 has at most 80. */
static const char *const memory_heading[MEM_CLASSES] = {"params", "grads", "optim.", "activ.", "work", "buffers"};
enum { MIB_WIDTH = 7, TOGETHER_WIDTH = 8 };

static void print_mib(FILE *out, size_t bytes, int width)
{
    double mib = (double)bytes / (1 << 20);
    char text[32];
    int n = snprintf(text, sizeof text, "%.3f", mib);
    if (n > width)
        snprintf(text, sizeof text, "%.1f", mib);
    fprintf(out, " %*s", width, text);
}

void print_memory(FILE *out, const struct pool *pool, struct list *const *lists, size_t n)
{
    int id_width = longest_device(pool->machine);
    fprintf(out, "\nmemory, MiB at the peak of each class; together: most bytes live at once\n");
    print_line(out, "budget: %s", budget_rule(pool->machine));
    fprintf(out, "%-*s %-6s", id_width, "device", "list");
    for (int k = 0; k < MEM_CLASSES; k++)
        fprintf(out, " %*s", MIB_WIDTH, memory_heading[k]);
    fprintf(out, " %*s %*s\n", TOGETHER_WIDTH, "together", MIB_WIDTH, "budget");
    for (int nth = 0; nth <= pool->machine->n_devices; nth++) {
        const struct device *device = &pool->machine->devices[nth];
        for (size_t i = 0; i < n; i++) {
            fprintf(out, "%-*s %-6s", id_width, device->id, lists[i]->name);
            for (int k = 0; k < MEM_CLASSES; k++)
                print_mib(out, lists[i]->extra.peak[nth][k], MIB_WIDTH);
            print_mib(out, lists[i]->extra.peak_total[nth], TOGETHER_WIDTH);
            if (device->budget < NO_LIMIT)
                print_mib(out, device->budget, MIB_WIDTH);
            else
                fprintf(out, " %*s", MIB_WIDTH, "none");
            fputc('\n', out);
        }
    }
}

/* ---- as data ----------------------------------------------------------------------------------------------------- */

static json_t *edge_json(const struct edge *edge)
{
    json_t *json = json_object();
    set_json_integer(json, "from", (json_int_t)edge->producer);
    set_json_truth(json, "previous_step", edge->previous);
    set_json_text(json, "kind", edge->kind == EDGE_REUSE ? "reuse" : "data");
    set_json_truth(json, "wait", edge->needs_wait);
    return json;
}

static json_t *access_json(const struct access *access)
{
    static const char *const modes[] = {"none", "read", "write", "both"};
    const struct tensor *tensor = access->tensor;
    json_t *json = json_object();
    set_json_text(json, "tensor", tensor->name);
    set_json_text(json, "mode", modes[access->mode]);
    set_json_text(json, "device", tensor->device->id);
    set_json_integer(json, "slab", tensor->storage->slab);
    set_json_integer(json, "address", (json_int_t)(tensor->storage->address + tensor->offset));
    set_json_integer(json, "bytes", (json_int_t)tensor->bytes);
    return json;
}

static json_t *task_json(const struct task *task, size_t number)
{
    json_t *edges = json_array();
    json_t *accesses = json_array();
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
        json_array_append_new(edges, edge_json(edge));
    for (int i = 0; i < task->n_accesses; i++)
        json_array_append_new(accesses, access_json(&task->accesses[i]));
    json_t *json = json_object();
    set_json_integer(json, "index", (json_int_t)number);
    set_json_text(json, "task", task->name);
    set_json_integer(json, "layer", task->layer);
    set_json_integer(json, "micro", task->micro);
    set_json_text(json, "lane", task->lane->name);
    json_object_set_new(json, "flops", json_real(task->flops));
    set_json_integer(json, "bytes", (json_int_t)task->bytes);
    json_object_set_new(json, "edges", edges);
    json_object_set_new(json, "accesses", accesses);
    return json;
}

static json_t *list_json(const struct list *list)
{
    json_t *tasks = json_array();
    for (size_t i = 0; i < list->n; i++)
        json_array_append_new(tasks, task_json(list->tasks[i], i));
    return json_pack("{s:o, s:o}", "list", text_json(list->name), "tasks", tasks);
}

/* The bytes that a list holds on the nth device at the peak, by class and together. */
static json_t *peak_json(const struct list *list, int nth)
{
    json_t *classes = json_object();
    for (int k = 0; k < MEM_CLASSES; k++)
        set_json_integer(classes, memory_class_name[k], (json_int_t)list->extra.peak[nth][k]);
    set_json_integer(classes, "together", (json_int_t)list->extra.peak_total[nth]);
    return classes;
}

json_t *plan_json(const struct pool *pool, struct list *const *lists, size_t n)
{
    json_t *described = json_array();
    json_t *memory = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(described, list_json(lists[i]));
    for (int nth = 0; nth <= pool->machine->n_devices; nth++) {
        const struct device *device = &pool->machine->devices[nth];
        json_t *peak = json_object();
        for (size_t i = 0; i < n; i++)
            json_object_set_new(peak, lists[i]->name, peak_json(lists[i], nth));
        json_array_append_new(memory, json_pack("{s:o, s:I, s:o}", "device", text_json(device->id), "budget",
                                                (json_int_t)device->budget, "peak", peak));
    }
    return json_pack("{s:o, s:o}", "lists", described, "memory", memory);
}
