/* print.c - a list and its memory, for people and as JSON. */
#include "step.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- for people ------------------------------------------------------------------------------------------------ */

/* "12, 7', ~3": waits are bare, ' marks the previous step, ~ a reuse edge; edges that follow from others are left out.
 */
static void print_edges(FILE *out, const struct task *t)
{
    size_t implied = 0;
    const char *comma = "";
    for (size_t i = 0; i < t->n_edges; i++) {
        const struct edge *e = &t->edges[i];
        implied += !e->wait;
        if (!e->wait)
            continue;
        fprintf(out, "%s%s%u%s", comma, e->kind == EDGE_REUSE ? "~" : "", e->from, e->previous ? "'" : "");
        comma = ", ";
    }
    if (implied)
        fprintf(out, "%s(%zu implied)", *comma ? " " : "", implied);
    fputc('\n', out);
}

static void print_number(FILE *out, int n, int width)
{
    if (n < 0)
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*d", width, n);
}

void print_step(FILE *out, const struct step *s)
{
    double flops = 0;
    fprintf(out, "list %s: %zu tasks. waits: task numbers; ' of the step before; ~ only because bytes are reused\n",
            s->name, s->n);
    fprintf(out, "%5s  %-22s %5s %5s  %-16s %10s %9s  waits for\n", "#", "task", "layer", "micro", "lane", "MFLOP",
            "MiB");
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = &s->tasks[i];
        fprintf(out, "%5zu  %-22s", i, t->name);
        print_number(out, t->layer, 5);
        print_number(out, t->micro, 5);
        fprintf(out, "  %-16s %10.2f %9.3f  ", t->lane->name, t->flops / 1e6, (double)t->bytes / (1 << 20));
        print_edges(out, t);
        flops += t->flops;
    }
    fprintf(out, "%zu tasks, %.3f GFLOP in matrix products\n", s->n, flops / 1e9);
}

void print_memory(FILE *out, const struct pool *p, struct step *const *steps, size_t n)
{
    fprintf(out, "\nmemory, MiB at the peak of each class; together: most bytes live at once\n%-18s %-6s", "device",
            "list");
    for (int c = 0; c < MEM_CLASSES; c++)
        fprintf(out, " %11s", memory_class_name[c]);
    fprintf(out, " %11s %11s\n", "together", "budget");
    for (int d = 0; d <= p->machine->n_devices; d++)
        for (size_t i = 0; i < n; i++) {
            fprintf(out, "%-18s %-6s", p->machine->device[d].id, steps[i]->name);
            for (int c = 0; c < MEM_CLASSES; c++)
                fprintf(out, " %11.3f", (double)steps[i]->peak[d][c] / (1 << 20));
            fprintf(out, " %11.3f %11.1f\n", (double)steps[i]->high[d] / (1 << 20),
                    (double)p->machine->device[d].budget / (1 << 20));
        }
}

/* ---- as data --------------------------------------------------------------------------------------------------- */

static json_t *edges_json(const struct task *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_edges; i++)
        json_array_append_new(list,
                              json_pack("{s:i, s:b, s:s, s:b}", "from", (int)t->edges[i].from, "previous_step",
                                        t->edges[i].previous, "kind", t->edges[i].kind == EDGE_REUSE ? "reuse" : "data",
                                        "wait", t->edges[i].wait));
    return list;
}

static json_t *accesses_json(const struct task *t)
{
    static const char *const modes[] = {"none", "read", "write", "both"};
    json_t *list = json_array();
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor;
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:i, s:I, s:I}", "tensor", x->name, "mode",
                                              modes[t->access[i].mode], "device", x->device->id, "slab", x->root->slab,
                                              "address", (json_int_t)(x->root->address + x->offset), "bytes",
                                              (json_int_t)x->bytes));
    }
    return list;
}

static json_t *step_json(const struct step *s)
{
    json_t *tasks = json_array();
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = &s->tasks[i];
        json_array_append_new(tasks, json_pack("{s:i, s:s, s:i, s:i, s:s, s:f, s:I, s:o, s:o}", "index", (int)i, "task",
                                               t->name, "layer", t->layer, "micro", t->micro, "lane", t->lane->name,
                                               "flops", t->flops, "bytes", (json_int_t)t->bytes, "edges", edges_json(t),
                                               "accesses", accesses_json(t)));
    }
    return json_pack("{s:s, s:o}", "list", s->name, "tasks", tasks);
}

static json_t *memory_json(const struct pool *p, struct step *const *steps, size_t n)
{
    json_t *devices = json_array();
    for (int d = 0; d <= p->machine->n_devices; d++) {
        json_t *lists = json_object();
        for (size_t i = 0; i < n; i++) {
            json_t *classes = json_object();
            for (int c = 0; c < MEM_CLASSES; c++)
                json_object_set_new(classes, memory_class_name[c], json_integer((json_int_t)steps[i]->peak[d][c]));
            json_object_set_new(classes, "together", json_integer((json_int_t)steps[i]->high[d]));
            json_object_set_new(lists, steps[i]->name, classes);
        }
        json_array_append_new(devices, json_pack("{s:s, s:I, s:o}", "device", p->machine->device[d].id, "budget",
                                                 (json_int_t)p->machine->device[d].budget, "peak", lists));
    }
    return devices;
}

json_t *plan_json(const struct pool *p, struct step *const *steps, size_t n)
{
    json_t *lists = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(lists, step_json(steps[i]));
    return json_pack("{s:o, s:o}", "lists", lists, "memory", memory_json(p, steps, n));
}
