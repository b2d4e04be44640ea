/* report.c - a simulation for people, as JSON, and as a trace like a real one. */
#include "../base/table.h"
#include "predict.h"

enum { TOP = 12 };

struct total { /* of the tasks of one name on one lane */
    const char *name;
    int lane;
    double seconds;
    size_t count;
};

ORDER(longest_first, struct total, COMPARE(b->seconds, a->seconds))

static const struct task *task_of(const struct simulation *sim, int node)
{
    return sim->step->task[node % (int)sim->step->n];
}

/* From the last end back through what each task waited for, over the steady pattern; ms per step.  But for snapshots:
 * they end during later steps, which do not wait for them. */
static struct table *critical_path(const struct simulation *sim)
{
    static const struct column columns[] = {{"critical path, simulated", "task", CELL_TEXT, 24, 0},
                                            {"lane", "lane", CELL_TEXT, 24, 0},
                                            {"tasks", "tasks", CELL_COUNT, 6, 0},
                                            {"ms", "ms", CELL_FIXED, 10, 3},
                                            {"share", "share", CELL_SHARE, 6, 0}};
    struct table *t = new_table(columns, COUNT(columns));
    struct total *totals = allocate(sim->step->n, sizeof *totals);
    size_t n = 0;
    int node = sim->first * (int)sim->step->n;
    for (int i = node; i < sim->steps * (int)sim->step->n; i++)
        if (sim->moments[i].end > sim->moments[node].end && task_of(sim, i)->role != ROLE_SNAPSHOT)
            node = i;
    double stop = sim->moments[node].end - sim->period * sim->pattern;
    for (; node >= 0 && sim->moments[node].end > stop; node = sim->moments[node].blocker) {
        const struct moment *m = &sim->moments[node];
        const struct task *task = task_of(sim, node);
        size_t i = 0;
        while (i < n && (totals[i].lane != task->lane->index || strcmp(totals[i].name, task->name) != 0))
            i++;
        n = MAX(n, i + 1);
        totals[i].name = task->name;
        totals[i].lane = task->lane->index;
        totals[i].seconds += (m->end - MAX(m->start, stop)) / sim->pattern;
        totals[i].count++;
    }
    SORT(totals, n, longest_first);
    for (size_t i = 0; i < n; i++)
        ROW(t, text_cell(totals[i].name), text_cell(sim->step->pool->machine->lane[totals[i].lane]->name),
            number_cell((double)totals[i].count), number_cell(1e3 * totals[i].seconds),
            number_cell(totals[i].seconds / sim->period));
    free(totals);
    return t;
}

void print_simulation(FILE *out, const struct simulation *sim, const struct costs *c)
{
    static const struct column columns[] = {{"lane, simulated", "name", CELL_TEXT, 24, 0},
                                            {"busy ms", "busy_ms", CELL_FIXED, 10, 3},
                                            {"busy", "busy", CELL_SHARE, 6, 0}};
    const struct machine *m = sim->step->pool->machine;
    struct table *lanes = new_table(columns, COUNT(columns)), *path = critical_path(sim);
    char bytes[32], budget[32];
    if (c)
        print_line(out, "simulated step: %.3f ms, from %s %s: times of %zu tasks measured, %zu scaled, %zu modelled",
                   1e3 * sim->period, c->measured ? "profile" : "hardware", c->path, sim->by_source[COST_MEASURED],
                   sim->by_source[COST_SCALED], sim->by_source[COST_MODELLED]);
    else
        print_line(out, "simulated step: %.3f ms, from the times of %zu tasks in the list", 1e3 * sim->period,
                   sim->by_source[COST_GIVEN]);
    if (!sim->settled)
        print_line(out, "the times of %d steps did not repeat: these are means of the last %d", sim->steps,
                   sim->pattern);
    else if (sim->pattern > 1)
        print_line(out, "mean of the steady pattern, which is %d steps long", sim->pattern);
    for (int i = 0; i < m->n_lanes; i++)
        if (sim->busy[i] > 0)
            ROW(lanes, text_cell(m->lane[i]->name), number_cell(1e3 * sim->busy[i]),
                number_cell(sim->busy[i] / sim->period));
    print_table(out, lanes);
    for (int d = 0; d <= m->n_devices; d++)
        fprintf(out, "%s%-24s holds at most %s, budget %s\n", d ? "" : "\n", m->device[d].id,
                format_bytes(bytes, (double)sim->step->high[d]),
                m->device[d].budget < NO_LIMIT ? format_bytes(budget, (double)m->device[d].budget) : "none");
    print_top(out, path, TOP, 3);
    free_table(lanes), free_table(path);
}

/* ---- as data --------------------------------------------------------------------------------------------------- */

json_t *simulation_json(const struct simulation *sim)
{
    static const char *const source_name[COST_SOURCES] = {"measured", "scaled", "modelled", "given"};
    const struct machine *m = sim->step->pool->machine;
    struct table *path = critical_path(sim);
    json_t *lanes = json_object();
    for (int i = 0; i < m->n_lanes; i++)
        json_object_set_new(lanes, m->lane[i]->name, json_real(sim->busy[i] / sim->period));
    json_t *all =
        json_pack("{s:s, s:f, s:i, s:b, s:o, s:o, s:{}}", "kind", "simulated", "step_ms", 1e3 * sim->period, "pattern",
                  sim->pattern, "settled", sim->settled, "busy", lanes, "critical_path", table_json(path), "tasks");
    for (int source = 0; source < COST_SOURCES; source++)
        json_object_set_new(json_object_get(all, "tasks"), source_name[source],
                            json_integer((json_int_t)sim->by_source[source]));
    free_table(path);
    return all;
}

static double simulated_ns(void *sim, const struct task *t)
{
    return 1e9 * ((struct simulation *)sim)->seconds[t->index];
}

void write_simulation(const struct simulation *sim, const char *path, const char *model)
{
    struct step *s = (struct step *)sim->step; /* only its place in the trace's table is set */
    struct trace_about about = {model, TRACE_SIMULATED, 1, simulated_ns, (void *)sim, (uint64_t)sim->steps * s->n};
    struct trace_writer *w = start_trace(path, s->pool->machine, &s, 1, &about);
    const struct moment *m = sim->moments;
    for (uint32_t iteration = 1; iteration <= (uint32_t)sim->steps; iteration++)
        for (uint32_t i = 0; i < s->n; i++, m++) {
            uint64_t start = 1 + (uint64_t)(1e9 * m->start), end = 1 + (uint64_t)(1e9 * m->end);
            if (m->blocker != SKIPPED)
                trace_end(w, trace_begin(w, iteration, i, start), start, end, 0);
        }
    trace_close(w);
}
