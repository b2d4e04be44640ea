/* support_view.c - views for tests: of step files, and of traces that a test writes itself. */
#include "support_view.h"

#include "planning/predict/predict.h"
#include "support_lists.h"

#include "planning/lists/lists.h"

#include <math.h>

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* The simulation of a step file as a trace; the path is the caller's. */
char *trace_of_list(const char *list)
{
    struct list *step = read_list(list);
    finish_list(step);
    struct simulation *simulation = must_simulate(step, NULL);
    char *path = copy_string(temp_path("list.trace"));
    write_simulation(simulation, path, list);
    free_simulation(simulation);
    free_list_and_machine(step);
    return path;
}

char *second_trace_of_list(const char *list)
{
    char *first = trace_of_list(list);
    char *second = copy_string(temp_path("second.trace"));
    assert_int_equal(rename(first, second), 0);
    free(first);
    return second;
}

struct view *open_test_view(const char *trace, const char *other, int width, int height, int scale)
{
    struct track *tracks[MOST_TRACKS];
    int n = 0;
    tracks[n++] = open_track(trace, NULL);
    if (other)
        tracks[n++] = open_track(other, NULL);
    return open_view(tracks, n, width, height, scale);
}

/* A view of a step file, whose tasks can be moved. */
struct view *view_of_list(const char *list, int width, int height, int scale)
{
    struct track *track = open_track(list, open_board(list, 1));
    return open_view(&track, 1, width, height, scale);
}

void end_view(struct view *view)
{
    for (int i = 0; i < view->n_tracks; i++)
        close_track(view->tracks[i]);
    close_view(view);
}

/* ---- what is seen in a view -------------------------------------------------------------------------------------- */

const char *selected_name(const struct view *view)
{
    return is_picked(&view->selection.task)
               ? view->tracks[view->selection.task.track]->trace->tasks[view->selection.task.copy.task].name
               : "";
}

double period_of(const struct view *view)
{
    json_t *all = board_json(view->tracks[0]->board);
    double ms = json_number_value(json_object_get(all, "period_ms"));
    json_decref(all);
    return round(1e6 * ms) / 1e6;
}

/* The middle of the nth bar of the anchor step on a lane. */
int bar_at(const struct view *view, const char *lane, size_t nth, int *y)
{
    const struct trace *trace = view->tracks[0]->trace;
    uint32_t i = 0;
    while (strcmp(trace->lanes[i].name, lane) != 0)
        i++;
    const struct view_row *row = row_of_lane(view, 0, i);
    const struct bar *bar = trace->bars[i].items;
    while (trace->records[bar->record].step != view->sight.anchor)
        bar++;
    *y = row->y + row->height / 2;
    return (int)x_of(view, (axis_of(view->tracks[0], bar[nth].start) + axis_of(view->tracks[0], bar[nth].end)) / 2);
}

struct canvas *new_picture(struct view *view)
{
    struct canvas *canvas = new_canvas(view->width, view->height);
    draw_view(view, canvas);
    return canvas;
}

bool has_sign(const struct view *view, const char *name)
{
    struct sign signs[MOST_SIGNS];
    size_t n = fill_signs(view, signs);
    for (size_t i = 0; i < n; i++)
        if (strcmp(signs[i].name, name) == 0)
            return true;
    return false;
}

void expect_lit(const struct view *view)
{
    for (int k = 0; k < view->n_tracks; k++) {
        const struct trace *trace = view->tracks[k]->trace;
        const struct highlight *highlight = &view->selection.highlights[k];
        bool dims = view->selection.search[0] || (view->selection.critical && k == 0);
        assert_int_equal(highlight->lanes != NULL, dims);
        for (uint32_t lane = 0; lane < trace->header.n_lanes && dims; lane++) {
            size_t n = 0;
            for (size_t i = 0; i < trace->bars[lane].n; i++) {
                if (!is_lit(view, k, trace->bars[lane].items[i].record))
                    continue;
                assert_below(n, highlight->lanes[lane].n);
                assert_int_equal(highlight->lanes[lane].all[n], i);
                n++;
            }
            assert_int_equal(n, highlight->lanes[lane].n);
        }
    }
}

/* ---- traces that are written ------------------------------------------------------------------------------------- */

struct trace_writer *begin_trace(const char *path)
{
    static struct trace_device device = {.id = "0:0", .name = "paper", .budget = 1 << 20};
    static struct trace_tensor tensors[] = {{.name = "weight", .bytes = 100},
                                            {.name = "x", .n_uses = 4, .bytes = 1000},
                                            {.name = "y", .first_use = 4, .n_uses = 2, .bytes = 500}};
    static uint32_t uses[] = {0, 3, 4, 8, 5, 11};
    struct trace_lane lanes[LANES + 1] = {{.name = "0:0 compute", .kind = LANE_COMPUTE},
                                          {.name = "0:0 upload", .kind = LANE_UPLOAD},
                                          {.name = "host cpu", .kind = LANE_CPU},
                                          {.name = "host report", .kind = LANE_REPORT}};
    struct trace_edge edges[TASKS];
    struct trace_task tasks[TASKS + 1];
    for (uint32_t i = 0; i < TASKS; i++) {
        edges[i] = (struct trace_edge){(i + TASKS - 1) % TASKS, i == 0, 0};
        tasks[i] = (struct trace_task){
            .name = "task", .layer = (int)i - 1, .micro = -1, .lane = i % LANES, .first_edge = i, .n_edges = 1};
    }
    tasks[TASKS] = (struct trace_task){.name = "report", .layer = -1, .micro = -1, .lane = LANES}; /* not always run */
    struct trace trace = {.header = {.kind = TRACE_REAL,
                                     .pace_scale = 1,
                                     .model = "grows",
                                     .n_devices = 1,
                                     .n_lanes = LANES + 1,
                                     .n_tasks = TASKS + 1,
                                     .n_edges = TASKS,
                                     .n_tensors = COUNT(tensors),
                                     .n_uses = COUNT(uses),
                                     .n_lists = 1,
                                     .list = {"train"},
                                     .n_roles = 1,
                                     .role = {"other"},
                                     .n_classes = 1,
                                     .memory = {"work"}},
                          .devices = &device,
                          .lanes = lanes,
                          .tasks = tasks,
                          .edges = edges,
                          .tensors = tensors,
                          .uses = uses};
    return open_trace_writer(path, &trace, 200); /* less than is written: old records are lost on the way */
}

/* One task after another, of `ns` each; what the next step fetches comes first in it, on the lane of task 1. */
uint64_t write_step(struct trace_writer *writer, uint32_t step, uint64_t clock, uint64_t ns)
{
    for (uint32_t i = 0; i < TASKS; i++, clock += ns) {
        uint64_t number = begin_trace_record(writer, step, i, clock - 10);
        end_trace_record(writer, number, clock, clock + ns, 0);
    }
    return clock;
}

/* ---- memory by the clock ----------------------------------------------------------------------------------------- */

/* What a device holds at a clock, tensor by tensor and step by step: while one of its tasks runs, and between them; in
 * a step that is not whole, until all have ended. */
static uint64_t count_held(const struct trace *trace, uint32_t device, uint64_t clock)
{
    uint64_t bytes = 0;
    for (const struct trace_tensor *tensor = trace->tensors; tensor < trace->tensors + trace->header.n_tensors;
         tensor++) {
        const struct trace_step_list *steps = &trace->steps[tensor->list];
        bool held = tensor->n_uses == 0;
        for (size_t k = 0; k < steps->n && !held; k++) {
            uint32_t step = steps->items[k].step, ended = 0;
            uint64_t start = UINT64_MAX, end = 0;
            for (uint32_t u = 0; u < tensor->n_uses; u++) {
                const struct runs *runs = &trace->runs[trace->uses[tensor->first_use + u]];
                for (size_t i = 0; i < runs->n; i++) {
                    const struct trace_record *record = &trace->records[runs->record[i]];
                    start = record->step == step ? MIN(start, record->start) : start;
                    end = record->step == step ? MAX(end, record->end) : end;
                    if (record->step == step)
                        ended++;
                }
            }
            bool goes_on = ended < tensor->n_uses && step > trace->whole_step;
            held = ended && start <= clock && (end > clock || goes_on);
        }
        bytes += tensor->device == device ? held * tensor->bytes : 0;
    }
    return bytes;
}

/* The amounts that are kept up to date are those that are counted, at any clock; and the tensors that are alive then
 * have as many bytes. */
void expect_held(const struct trace *trace, uint64_t clock)
{
    for (uint32_t device = 0; device < trace->header.n_devices; device++) {
        const struct trace_tensor **alive;
        size_t n = tensors_alive_at(trace, device, clock, &alive);
        uint64_t sum = 0;
        const struct memory_use *use = &trace->memory_use[device];
        uint64_t held = use->sums[amount_at(use, clock) - use->amounts].sum;
        for (size_t i = 0; i < n; i++) {
            if (i > 0)
                assert_at_least(alive[i - 1]->bytes, alive[i]->bytes);
            sum += alive[i]->bytes;
        }
        assert_int_equal(held, count_held(trace, device, clock));
        assert_int_equal(sum, held);
        free(alive);
    }
}
