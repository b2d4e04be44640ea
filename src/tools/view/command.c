/* command.c - yard view: a trace, or the simulation of a step file, as a picture, in a window or as a PNG. */
#include "act.h"
#include "draw.h"
#include "launch.h"
#include "planning/console/arguments.h"
#include "planning/console/table.h"
#include "planning/lists/lists.h"
#include "planning/pass/pass.h"
#include "planning/trace/record.h"

#include <inttypes.h>
#include <math.h>

enum { OF_VIEW = 1 }; /* the bit of this command, which alone takes the options */

static struct {
    bool json;
    const char *png, *size, *script, *output;
    int step;
    double clip;
} asked_view;

static const struct option options[] = {
    {.name = "step",
     .type = OPT_INT,
     .value = &asked_view.step,
     .argument = "N",
     .low = 1,
     .high = INT32_MAX,
     .group = "What",
     .classes = OF_VIEW,
     .help = "look at this step first (default: all of the trace)"},
    {.name = "script",
     .type = OPT_TEXT,
     .value = &asked_view.script,
     .argument = "KEYS",
     .group = "What",
     .classes = OF_VIEW,
     .help = "press these keys first, with spaces between them. There are also the words /name, which "
             "searches, click:X,Y, move:X,Y, wheel:N, drag:X,Y,X,Y, hold:X,Y,X,Y (the button stays down) and "
             "measure:X,Y,X,Y"},
    {.name = "clip",
     .type = OPT_FLOAT,
     .value = &asked_view.clip,
     .initial = "1",
     .argument = "X",
     .low = 0,
     .high = 1e9,
     .group = "What",
     .classes = OF_VIEW,
     .help = "largest norm of the gradient in a step file, as for `yard plan`. With a limit no update starts before "
             "the norm of all gradients is known (0: no limit)"},
    {.name = "size",
     .type = OPT_TEXT,
     .value = &asked_view.size,
     .argument = "WxH",
     .group = "What",
     .classes = OF_VIEW,
     .help = "pixels of the window or picture (default: 1280x720). If H is not given, a picture is as high as its rows "
             "want. In one that is 2560 pixels wide or wider everything is twice as large"},
    {.name = "png",
     .type = OPT_OUTPUT,
     .value = &asked_view.png,
     .argument = "OUT",
     .group = "Output",
     .classes = OF_VIEW,
     .help = "write a picture instead of opening a window. It needs no display"},
    {.name = "json",
     .type = OPT_FLAG,
     .value = &asked_view.json,
     .group = "Output",
     .classes = OF_VIEW,
     .help = "print what is seen and selected as one JSON object on stdout, without a window"},
    {.name = "output",
     .letter = 'o',
     .type = OPT_OUTPUT,
     .value = &asked_view.output,
     .argument = "FILE",
     .group = "Output",
     .classes = OF_VIEW,
     .help = "the step file that key s writes (default: FILE.moved.txt beside FILE.txt)"},
};
static struct option_table table = {.options = options, .n = COUNT(options)};

/* ---- what is seen, as JSON --------------------------------------------------------------------------------------- */

/* Which task ran, and in which step. */
static json_t *record_json(const struct trace *trace, const struct trace_record *record)
{
    const struct trace_task *task = &trace->tasks[record->task];
    json_t *json = json_object();
    set_json_text(json, "task", task->name);
    set_json_integer(json, "layer", task->layer);
    set_json_integer(json, "micro", task->micro);
    set_json_text(json, "lane", trace->lanes[task->lane].name);
    set_json_integer(json, "step", (json_int_t)record->step);
    return json;
}

static json_t *selected_json(const struct view *view)
{
    if (!is_picked(&view->selection.task))
        return json_null();
    const struct track *track = view->tracks[view->selection.task.track];
    const struct trace *trace = track->trace;
    const struct trace_record *record = &view->selection.task.copy;
    struct drawn_edges edges = edges_of_pick(view, &view->selection.task);
    json_t *needs = json_array(), *needed_by = json_array();
    for (size_t i = 0; i < edges.n; i++) {
        const struct drawn_edge *drawn = &edges.items[i];
        bool before = drawn->consumer == (size_t)view->selection.task.record;
        const struct trace_record *other = &trace->records[before ? drawn->producer : drawn->consumer];
        json_array_append_new(before ? needs : needed_by, record_json(trace, other));
    }
    free(edges.items);
    json_t *selected = record_json(trace, record);
    double ms = (double)(record->end - record->start) * trace->header.pace_scale / 1e6;
    json_object_set_new(selected, "start_ms", json_real(axis_of(track, record->start) / 1e6));
    json_object_set_new(selected, "ms", json_real(ms));
    json_object_set_new(selected, "needs", needs);
    json_object_set_new(selected, "needed_by", needed_by);
    return selected;
}

/* Which task runs on a lane, or waits there. */
static json_t *running_json(const struct trace *trace, uint32_t lane, const struct trace_running_task *now)
{
    json_t *json = json_object();
    set_json_text(json, "lane", trace->lanes[lane].name);
    set_json_text(json, "task", trace->tasks[now->record->task].name);
    set_json_integer(json, "step", (json_int_t)now->record->step);
    set_json_truth(json, "waits", now->waits);
    return json;
}

static json_t *track_json(const struct track *track)
{
    const struct trace *trace = track->trace;
    json_t *lanes = json_array(); /* the tasks that run, or have been queued and wait */
    struct trace_running_task now;
    for (uint32_t i = 0; i < trace->header.n_lanes; i++)
        if (find_running_task(trace, i, &now))
            json_array_append_new(lanes, running_json(trace, i, &now));
    double loss = last_loss(track);
    json_t *json = json_object();
    set_json_text(json, "kind", name_of_trace_kind(trace));
    set_json_text(json, "state", life_name[trainer_life(track->follower)]);
    set_json_integer(json, "records", (json_int_t)trace->n_records);
    set_json_integer(json, "steps", (json_int_t)track->steps->n);
    json_object_set_new(json, "loss", isnan(loss) ? NULL : json_real(loss));
    json_object_set_new(json, "running", lanes);
    json_object_set_new(json, "list", track->board ? board_json(track->board) : NULL);
    return json;
}

/* The stretch of time that is measured. */
static json_t *range_json(const struct view *view)
{
    const struct panel *panel = &view->selection.panel;
    const double *at = view->selection.region.at;
    json_t *range = json_object();
    json_object_set_new(range, "from_ms", json_real(fmin(at[0], at[1]) / 1e6));
    json_object_set_new(range, "to_ms", json_real(fmax(at[0], at[1]) / 1e6));
    set_json_integer(range, "moved_bytes", (json_int_t)panel->bytes);
    json_object_set_new(range, "work", table_json(panel->table));
    return range;
}

/* The place on a memory row that is selected. */
static json_t *place_json(const struct view *view)
{
    const struct panel *panel = &view->selection.panel;
    const struct region *region = &view->selection.region;
    const struct trace *trace = view->tracks[region->track]->trace;
    json_t *place = json_object();
    set_json_text(place, "device", trace->devices[region->device].id);
    json_object_set_new(place, "at_ms", json_real(region->at[0] / 1e6));
    set_json_integer(place, "bytes", (json_int_t)panel->bytes);
    json_object_set_new(place, "tensors", table_json(panel->table));
    return place;
}

static json_t *seen_json(const struct view *view)
{
    enum region_kind kind = view->selection.region.kind;
    json_t *traces = json_array();
    for (int i = 0; i < view->n_tracks; i++)
        json_array_append_new(traces, track_json(view->tracks[i]));
    json_t *marks = json_array();
    for (int i = 0; i < view->selection.n_marks; i++)
        json_array_append_new(marks, json_real(view->selection.mark[i] / 1e6));
    json_t *seen = json_object();
    json_object_set_new(seen, "traces", traces);
    set_json_integer(seen, "step", (json_int_t)view->sight.anchor);
    json_object_set_new(seen, "selected", selected_json(view));
    json_object_set_new(seen, "marks_ms", marks);
    set_json_text(seen, "message", view->message);
    json_object_set_new(seen, "range", kind == STRETCH ? range_json(view) : json_null());
    json_object_set_new(seen, "memory", kind == PLACE ? place_json(view) : json_null());
    return seen;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static void expect_step(const struct view *view, uint32_t number)
{
    const struct trace_step_list *list = view->tracks[0]->steps;
    uint32_t first = 0, last = 0;
    for (int i = 0; i < view->n_tracks; i++) {
        const struct trace_step *step = find_step(view->tracks[i], number);
        if (step && step->step == number)
            return;
    }
    if (list->n > 0) {
        first = list->items[0].step;
        last = list->items[list->n - 1].step;
    }
    fail(EXIT_USAGE, "the trace %s holds the steps %" PRIu32 " to %" PRIu32 ", but --step asks for %" PRIu32,
         view->tracks[0]->path, first, last, number);
}

/* What --help says after the options. */
static void print_keys(void)
{
    static const char mouse[] =
        "  move       show details\n"
        "  click      select a task and show its edges; on a memory row: show what memory holds there; on a "
        "device: fold it; on the strip of steps: go there\n"
        "  drag       move the view; in a step file: move a task; on the ruler, or with shift: select a stretch\n"
        "  wheel      zoom\n";
    char *folded = fold_text(mouse, HELP_WIDTH);
    char keys[KEYS_SIZE];
    printf("\nKeys\n");
    for (size_t i = 0; i < n_actions; i++)
        printf("  %-10s %s\n", key_names(&actions[i], keys), actions[i].help);
    printf("\nMouse\n%s", folded);
    free(folded);
}

static void parse_size(int *width, int *height)
{
    char tail;
    *width = 1280;
    *height = 720;
    if (!asked_view.size)
        return;
    bool may_be_width = asked_view.png || asked_view.json;
    bool good = sscanf(asked_view.size, "%dx%d%c", width, height, &tail) == 2;
    if (!good && may_be_width)
        good = sscanf(asked_view.size, "%d%c", width, &tail) == 1;
    bool is_small = *width < LEAST_WIDTH || *height < LEAST_HEIGHT;
    bool is_large = *width > MOST_PIXELS || *height > MOST_PIXELS;
    if (!good || is_small || is_large)
        fail(EXIT_USAGE, "--size takes WIDTHxHEIGHT in pixels, %dx%d to %dx%d, or the width of a picture, not \"%s\"",
             LEAST_WIDTH, LEAST_HEIGHT, MOST_PIXELS, MOST_PIXELS, asked_view.size);
}

/* Is the picture's height given? */
static bool has_height(void) { return asked_view.size && strchr(asked_view.size, 'x'); }

/* The view goes to the step that was asked for.  Without one, the trace of a run that goes on is followed, and of a run
 * that has ended all steps are shown: the evaluation after the last one may take longer than they do. */
static void show_first(struct view *view)
{
    bool free_height = view->still && !has_height();
    if (free_height)
        choose_height(view); /* the script's places are those of the picture */
    if (asked_view.step) {
        expect_step(view, (uint32_t)asked_view.step);
        look_at_step(view, (uint32_t)asked_view.step);
    } else if (is_followed(view) && !asked_view.script) {
        press_key(view, "l");
    } else if (view->n_tracks == 1 && view->tracks[0]->trace->header.kind == TRACE_REAL) {
        look_at_steps(view);
    }
    if (asked_view.script)
        run_script(view, asked_view.script);
    bool places_mouse = asked_view.script && (strstr(asked_view.script, "move:") || strstr(asked_view.script, "hold:"));
    if (view->still && asked_view.script && !places_mouse)
        move_mouse(view, OFF_WINDOW, OFF_WINDOW); /* a click selects, and leaves no mouse in the picture */
    if (free_height)
        choose_height(view);
}

static void write_or_show(struct view *view)
{
    if (asked_view.png)
        write_view(view, asked_view.png);
    if (asked_view.png && !asked_view.json)
        print_line(stdout, "wrote %s: without --png a window shows it", asked_view.png);
    if (asked_view.json)
        print_json(seen_json(view));
    if (!asked_view.png && !asked_view.json && !view->quit)
        show_window(view);
}

static const struct path_command arguments = {
    .name = "view",
    .takes = "FILE [FILE] [options]",
    .examples = "build/run.trace\n"
                "data/steps/1f1b.txt --png 1f1b.png\n",
    .help =
        "Shows a trace that `yard train --trace` or `yard plan --trace` wrote, also while it is written. Two traces "
        "share one axis, and their steps start together. FILE.txt is a step file, and FILE.csv is a pipeline's "
        "schedule as PyTorch writes it. The list of such a file is simulated, and its tasks can be dragged elsewhere.",
    .bit = OF_VIEW,
    .inputs = MOST_TRACKS,
};

/* Opens a track for each file.  A list is simulated for that, and its tasks can be moved on its board. */
static void open_tracks(struct track *tracks[MOST_TRACKS], char *const *files, int n)
{
    for (int i = 0; i < n; i++) {
        struct board *board = NULL;
        if (names_list(files[i]))
            board = open_board(files[i], asked_view.clip);
        tracks[i] = open_track(files[i], board);
    }
}

static enum exit_code run_view(int argc, char **argv)
{
    int n, width, height;
    struct track *tracks[MOST_TRACKS];
    char **files = take_arguments(&table, &arguments, argc, argv, &n);
    if (!files) {
        print_keys();
        return EXIT_OK;
    }
    if (n < 1 || n > MOST_TRACKS)
        fail(EXIT_USAGE, "view takes one trace or two, but %d were given; `yard view --help` says more", n);
    parse_size(&width, &height);
    open_tracks(tracks, files, n);
    bool still = asked_view.png || asked_view.json; /* a window asks its screen */
    bool large = width >= LARGE_WIDTH && (!has_height() || height >= 2 * LEAST_HEIGHT);
    struct view *view = open_view(tracks, n, width, height, still && large ? 2 : 1);
    view->save_as = asked_view.output;
    view->still = still;
    show_first(view);
    write_or_show(view);
    for (int i = 0; i < n; i++)
        close_track(tracks[i]); /* a pause that it asked for ends */
    if (view->exit_code)
        fail(view->exit_code, "%s", view->message);
    close_view(view);
    free(files);
    return EXIT_OK;
}

static const struct subcommand command = {
    .help_place = 80,
    .name = "view",
    .help = "show a trace, also of a run that still goes on",
    .run = run_view,
    .foreign = "show timeline gui window",
};
static const struct option of_runs[] = {
    {.name = "view",
     .type = OPT_FLAG,
     .value = &asked_record.shown,
     .group = GROUP_LOOKING,
     .classes = OF_RUN | OF_STEP_FILE,
     .help = "open a window that shows what runs when, while it runs"},
};
static const struct trace_window window = {.open = start_viewer};
static const struct planning_parts planning = {.window = &window};
const struct module module_view = {
    .name = "view",
    .needs = "board console lists picture trace",
    .commands = &command,
    .n_commands = 1,
    .options = of_runs,
    .n_options = COUNT(of_runs),
    .planning = &planning,
};
