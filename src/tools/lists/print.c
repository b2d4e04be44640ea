/* print.c - a list and its memory, for people and as JSON. */
#include "lists.h"

const char *budget_rule(const struct machine *m)
{
    if (m->host->described.by_hand)
        return "memory= in the step file, or --device-mem and --host-mem";
    if (!m->device[0].cl)
        return "--device-mem, --host-mem, else the memory that is described";
    return "--device-mem, --host-mem, else all (CPUs: 3/4 of the host's, GPUs: 15/16 less 256 MiB)";
}

/* Does one of the first n accesses touch the tensor in this mode? */
static bool touches_before(const struct task *t, int n, const struct tensor *x, enum access_mode mode)
{
    for (int k = 0; k < n; k++)
        if (t->access[k].tensor == x && (t->access[k].mode & mode))
            return true;
    return false;
}

/* "mlp.ln, h.0.mlp.c_fc.weight": what the task touches in this mode; NAME@DEVICE where it lies elsewhere. */
static void print_accesses(FILE *out, const struct task *t, enum access_mode mode)
{
    const char *comma = "";
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor;
        if (!(t->access[i].mode & mode) || touches_before(t, i, x, mode))
            continue;
        fprintf(out, "%s%s", comma, x->name);
        if (x->device != t->lane->device)
            fprintf(out, "@%s", x->device->id);
        comma = ", ";
    }
    if (!*comma)
        fputs("-", out);
}

enum { NO_BREAK = '\v' }; /* a blank at which a terminal shall not fold a line; none is left when it is printed */

/* "3, ~7' (2 implied)": edges that follow from others are only counted. */
static void print_edges(FILE *out, const struct task *t)
{
    const char *comma = "";
    size_t implied = 0;
    for (size_t i = 0; i < t->n_edges; i++) {
        const struct edge *e = &t->edges[i];
        if (!e->wait) {
            implied++;
            continue;
        }
        fprintf(out, "%s%s%u%s", comma, e->kind == EDGE_REUSE ? "~" : "", e->producer, e->previous ? "'" : "");
        comma = ", ";
    }
    if (implied)
        fprintf(out, "%s(%zu%cimplied)", *comma ? " " : "", implied, NO_BREAK);
}

/* The widths of columns: as on the pages, or on a terminal as narrow as the list allows. */
struct widths {
    int name, lane, mflop, mib;
};

static struct widths widths_of(FILE *out, const struct step *s)
{
    if (!is_screen(fileno(out)))
        return (struct widths){.name = 22, .lane = 16, .mflop = 10, .mib = 9};
    struct widths w = {.name = 4, .lane = 4, .mflop = 7, .mib = 7};
    for (size_t i = 0; i < s->n; i++) {
        w.name = MAX(w.name, (int)strlen(s->task[i]->name));
        w.lane = MAX(w.lane, (int)strlen(s->task[i]->lane->name));
    }
    return w;
}

/* Both lines of a task.  A terminal folds them. */
static void print_task(FILE *screen, const struct widths *w, size_t number, const struct task *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    char layer[16] = "-", micro[16] = "-";
    if (t->layer >= 0)
        snprintf(layer, sizeof layer, "%d", t->layer);
    if (t->micro >= 0)
        snprintf(micro, sizeof micro, "%d", t->micro);
    fprintf(out, "%5zu  %-*s %5s %5s  %-*s %*.2f %*.3f  ", number, w->name, t->name, layer, micro, w->lane,
            t->lane->name, w->mflop, t->flops / 1e6, w->mib, (double)t->bytes / (1 << 20));
    print_edges(out, t);
    fprintf(out, "\n%9s", "");
    print_accesses(out, t, ACCESS_READ);
    fprintf(out, " -> ");
    print_accesses(out, t, ACCESS_WRITE);
    if (t->member.needed)
        fprintf(out, "  (not in every iteration)");
    fclose(out);
    char *folded = fold_text(text, is_screen(fileno(screen)) ? screen_width(fileno(screen)) : INT32_MAX);
    for (char *at = folded; *at; at++)
        if (*at == NO_BREAK)
            *at = ' ';
    fprintf(screen, "%s\n", folded);
    free(folded);
    free(text);
}

void print_step(FILE *out, const struct step *s)
{
    const struct widths w = widths_of(out, s);
    fprintf(out,
            "list %s: %zu tasks, each with what it reads -> writes\n"
            "waits: task numbers; ' of the step before; ~ only because bytes are reused\n"
            "%5s  %-*s %5s %5s  %-*s %*s %*s  waits for\n",
            s->name, s->n, "#", w.name, "task", "layer", "micro", w.lane, "lane", w.mflop, "MFLOP", w.mib, "MiB");
    for (size_t i = 0; i < s->n; i++)
        print_task(out, &w, i, s->task[i]);
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
COMPARISON_POINTERS(map_order, struct tensor, compare_places(a, b))

static int longest_device(const struct machine *m)
{
    int longest = (int)strlen("device");
    for (int d = 0; d <= m->n_devices; d++)
        longest = MAX(longest, (int)strlen(m->device[d].id));
    return longest;
}

void print_map(FILE *out, const struct pool *p, const struct step *s)
{
    struct tensor **order = allocate(p->n, sizeof *order);
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct tensor *t = p->tensors[i];
        if (t->storage == t && t->slab >= 0 && (t->persistent || t->step == s))
            order[n++] = t;
    }
    SORT(order, n, map_order);
    const bool screen = is_screen(fileno(out));
    const int id = screen ? longest_device(p->machine) : 18, bytes = screen ? 11 : 12;
    print_line(out,
               "\nmemory map of list %s: where a tensor lies, and its first and last task; kept: from step to step",
               s->name);
    fprintf(out, "%-*s %4s %*s %*s  %-11s  %5s %5s  tensor\n", id, "device", "slab", bytes, "address", bytes, "bytes",
            "class", "first", "last");
    for (size_t i = 0; i < n; i++) {
        const struct tensor *t = order[i];
        char life[32] = "kept";
        if (!t->persistent)
            snprintf(life, sizeof life, "%5d %5d", t->held_from, t->held_until);
        fprintf(out, "%-*s %4d %*zu %*zu  %-11s  %11s  %s\n", id, t->device->id, t->slab, bytes, t->address, bytes,
                t->bytes, memory_class_name[counted_as(t)], life, t->name);
    }
    free(order);
}

/* The columns of classes, in their order.  They are narrow, so that a line of a device like 0:0x2.0 has at most 80. */
static const char *const memory_heading[MEM_CLASSES] = {"params", "grads", "optim.", "activ.", "work", "buffers"};
enum { MIB_WIDTH = 7, TOGETHER_WIDTH = 8 };

static void print_mib(FILE *out, size_t bytes, int width)
{
    const double mib = (double)bytes / (1 << 20);
    char text[32];
    const int n = snprintf(text, sizeof text, "%.3f", mib);
    if (n > width)
        snprintf(text, sizeof text, "%.1f", mib);
    fprintf(out, " %*s", width, text);
}

void print_memory(FILE *out, const struct pool *p, struct step *const *steps, size_t n)
{
    const int id_width = longest_device(p->machine);
    fprintf(out, "\nmemory, MiB at the peak of each class; together: most bytes live at once\n");
    print_line(out, "budget: %s", budget_rule(p->machine));
    fprintf(out, "%-*s %-6s", id_width, "device", "list");
    for (int c = 0; c < MEM_CLASSES; c++)
        fprintf(out, " %*s", MIB_WIDTH, memory_heading[c]);
    fprintf(out, " %*s %*s\n", TOGETHER_WIDTH, "together", MIB_WIDTH, "budget");
    for (int d = 0; d <= p->machine->n_devices; d++) {
        const struct device *device = &p->machine->device[d];
        for (size_t i = 0; i < n; i++) {
            fprintf(out, "%-*s %-6s", id_width, device->id, steps[i]->name);
            for (int c = 0; c < MEM_CLASSES; c++)
                print_mib(out, steps[i]->peak[d][c], MIB_WIDTH);
            print_mib(out, steps[i]->peak_total[d], TOGETHER_WIDTH);
            if (device->budget < NO_LIMIT)
                print_mib(out, device->budget, MIB_WIDTH);
            else
                fprintf(out, " %*s", MIB_WIDTH, "none");
            fputc('\n', out);
        }
    }
}

/* ---- as data --------------------------------------------------------------------------------------------------- */

static json_t *edge_json(const struct edge *e)
{
    return json_pack("{s:i, s:b, s:s, s:b}", "from", (int)e->producer, "previous_step", e->previous, "kind",
                     e->kind == EDGE_REUSE ? "reuse" : "data", "wait", e->wait);
}

static json_t *access_json(const struct access *a)
{
    static const char *const modes[] = {"none", "read", "write", "both"};
    const struct tensor *x = a->tensor;
    return json_pack("{s:s, s:s, s:s, s:i, s:I, s:I}", "tensor", x->name, "mode", modes[a->mode], "device",
                     x->device->id, "slab", x->storage->slab, "address", (json_int_t)(x->storage->address + x->offset),
                     "bytes", (json_int_t)x->bytes);
}

static json_t *task_json(const struct task *t, size_t number)
{
    json_t *edges = json_array(), *accesses = json_array();
    for (size_t i = 0; i < t->n_edges; i++)
        json_array_append_new(edges, edge_json(&t->edges[i]));
    for (int i = 0; i < t->n_access; i++)
        json_array_append_new(accesses, access_json(&t->access[i]));
    return json_pack("{s:i, s:s, s:i, s:i, s:s, s:f, s:I, s:o, s:o}", "index", (int)number, "task", t->name, "layer",
                     t->layer, "micro", t->micro, "lane", t->lane->name, "flops", t->flops, "bytes",
                     (json_int_t)t->bytes, "edges", edges, "accesses", accesses);
}

static json_t *list_json(const struct step *s)
{
    json_t *tasks = json_array();
    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(tasks, task_json(s->task[i], i));
    return json_pack("{s:s, s:o}", "list", s->name, "tasks", tasks);
}

/* The bytes that a list holds on device d at the peak, by class and together. */
static json_t *peak_json(const struct step *s, int d)
{
    json_t *classes = json_object();
    for (int c = 0; c < MEM_CLASSES; c++)
        json_object_set_new(classes, memory_class_name[c], json_integer((json_int_t)s->peak[d][c]));
    json_object_set_new(classes, "together", json_integer((json_int_t)s->peak_total[d]));
    return classes;
}

json_t *plan_json(const struct pool *p, struct step *const *steps, size_t n)
{
    json_t *lists = json_array(), *memory = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(lists, list_json(steps[i]));
    for (int d = 0; d <= p->machine->n_devices; d++) {
        const struct device *device = &p->machine->device[d];
        json_t *peak = json_object();
        for (size_t i = 0; i < n; i++)
            json_object_set_new(peak, steps[i]->name, peak_json(steps[i], d));
        json_array_append_new(memory, json_pack("{s:s, s:I, s:o}", "device", device->id, "budget",
                                                (json_int_t)device->budget, "peak", peak));
    }
    return json_pack("{s:o, s:o}", "lists", lists, "memory", memory);
}
