/* view.c - yard view: a trace as a picture, in a window or as a PNG. */
#include "../view/view.h"
#include "../base/table.h"
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <unistd.h>

static struct {
    bool json;
    const char *png, *size, *script, *log;
    int step;
} given;

static const struct option options[] = {
    {"step", 0, OPT_INT, &given.step, NULL, "N", 1, INT32_MAX, "What", 1,
     "look at this step first (default: all of the trace)"},
    {"script", 0, OPT_TEXT, &given.script, NULL, "KEYS", 0, 0, "What", 1,
     "press these keys first, with spaces between; further words: /name searches, click:X,Y, move:X,Y, wheel:N, "
     "drag:X,Y,X,Y, measure:X,Y,X,Y"},
    {"log", 0, OPT_INPUT, &given.log, NULL, "FILE", 0, 0, "What", 1, "draw the loss from this log of the run"},
    {"size", 0, OPT_TEXT, &given.size, "1280x720", "WxH", 0, 0, "What", 1, "pixels of the window or picture"},
    {"png", 0, OPT_OUTPUT, &given.png, NULL, "OUT", 0, 0, "Output", 1,
     "write a picture instead of opening a window; needs no display"},
    {"json", 0, OPT_FLAG, &given.json, NULL, NULL, 0, 0, "Output", 1,
     "what is seen and selected, as one JSON object on stdout, without a window"},
};
static struct option_table table = {.options = options, .n = COUNT(options)};

static void print_help(void)
{
    printf("usage: yard view FILE [FILE] [options]\n\n"
           "Shows a trace that yard train --trace or yard plan --trace wrote, also while it is written.  Two traces\n"
           "share one axis: their steps start together.\n");
    print_options(stdout, &table, 1);
    printf("\nKeys\n");
    for (size_t i = 0; i < n_actions; i++)
        printf("  %-10s %s\n", actions[i].keys, actions[i].help);
    printf("\nMouse: move for details, click selects and shows edges, drag moves, wheel zooms, shift+drag measures,\n"
           "click on the strip of steps to go there.\n");
}

static void parse_size(const char *text, int *width, int *height)
{
    char tail;
    if (sscanf(text, "%dx%d%c", width, height, &tail) != 2 || *width < LEAST_WIDTH || *height < LEAST_HEIGHT ||
        *width > 16384 || *height > 16384)
        fail(EXIT_USAGE, "--size takes WIDTHxHEIGHT in pixels, %dx%d to 16384x16384, not \"%s\"", LEAST_WIDTH,
             LEAST_HEIGHT, text);
}

/* ---- what is seen, as JSON ------------------------------------------------------------------------------------- */

static json_t *names_json(const struct view *v, const struct links *l, bool producers)
{
    const struct trace *t = v->track[v->selected.track]->trace;
    size_t here = (size_t)v->selected.record;
    json_t *names = json_array();
    for (size_t i = 0; i < l->n; i++)
        if ((producers ? l->link[i].to : l->link[i].from) == here) {
            const struct trace_record *r = &t->records[producers ? l->link[i].from : l->link[i].to];
            json_array_append_new(names, json_string(t->tasks[r->task].name));
        }
    return names;
}

static json_t *selected_json(const struct view *v)
{
    if (!is_picked(&v->selected))
        return json_null();
    const struct track *k = v->track[v->selected.track];
    const struct trace_record *r = &v->selected.copy;
    const struct trace_task *task = &k->trace->tasks[r->task];
    struct links links = links_of_pick(v, &v->selected);
    json_t *o =
        json_pack("{s:s, s:i, s:i, s:s, s:I, s:f, s:f, s:o, s:o}", "task", task->name, "layer", task->layer, "micro",
                  task->micro, "lane", k->trace->lanes[task->lane].name, "step", (json_int_t)r->step, "start_ms",
                  axis_of(k, r->start) / 1e6, "ms", (double)(r->end - r->start) * k->trace->header.pace_scale / 1e6,
                  "needs", names_json(v, &links, true), "needed_by", names_json(v, &links, false));
    free(links.link);
    return o;
}

/* Per lane what runs, or has been queued and waits. */
static json_t *running_json(const struct track *k)
{
    json_t *lanes = json_array();
    struct trace_running now;
    for (uint32_t i = 0; i < k->trace->header.n_lanes; i++)
        if (trace_running(k->trace, i, &now))
            json_array_append_new(lanes, json_pack("{s:s, s:s, s:I, s:b}", "lane", k->trace->lanes[i].name, "task",
                                                   k->trace->tasks[now.record->task].name, "step",
                                                   (json_int_t)now.record->step, "waits", now.waits));
    return lanes;
}

static json_t *traces_json(const struct view *v)
{
    json_t *traces = json_array();
    for (int i = 0; i < v->n_tracks; i++) {
        const struct track *k = v->track[i];
        json_array_append_new(traces, json_pack("{s:s, s:s, s:I, s:I, s:o}", "kind", trace_kind_name(k->trace), "state",
                                                life_name[trace_follow_life(k->follow)], "records",
                                                (json_int_t)k->trace->n_records, "steps", (json_int_t)k->steps->n,
                                                "running", running_json(k)));
    }
    return traces;
}

static json_t *view_json(const struct view *v)
{
    json_t *ruler = v->measuring ? json_real(fabs(v->ruler[1] - v->ruler[0]) / 1e6) : json_null();
    return json_pack("{s:o, s:I, s:f, s:f, s:s, s:b, s:I, s:s, s:I, s:o, s:o, s:s}", "traces", traces_json(v), "step",
                     (json_int_t)v->anchor, "from_ms", v->from / 1e6, "to_ms", v->to / 1e6, "colour",
                     colour_way_name(v->colour), "follow", v->follow, "critical_path",
                     (json_int_t)(v->critical ? v->n_path : 0), "search", v->search, "matches",
                     (json_int_t)(v->search[0] ? count_matches(v) : 0), "ruler_ms", ruler, "selected", selected_json(v),
                     "message", v->message);
}

/* ---- ways to show ---------------------------------------------------------------------------------------------- */

static void open_window(struct view *v)
{
#ifdef HAVE_SDL2
    must(show_window(v));
#else
    (void)v;
    fail(EXIT_USAGE, "this yard was built without SDL2, so it opens no window: install SDL2 (Debian: libsdl2-dev) and "
                     "build again, or write a picture with yard view FILE --png OUT.png");
#endif
}

static void show_view(struct view *v)
{
    if (given.png)
        must(write_view(v, given.png));
    if (given.png && !given.json)
        print_line(stdout, "wrote %s: without --png a window shows it", given.png);
    if (given.json)
        print_json(view_json(v));
    if (!given.png && !given.json && !v->quit)
        open_window(v);
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static void claim_files(char **files, int n)
{
    begin_claims();
    for (int i = 0; i < n; i++)
        claim_input("yard view", files[i]);
    if (given.log)
        claim_input("--log", given.log);
    if (given.png)
        claim_output("--png", given.png, NULL);
}

static void expect_step(const struct view *v, uint32_t step)
{
    const struct trace_step *s = NULL;
    for (int i = 0; i < v->n_tracks && !(s && s->step == step); i++)
        s = find_step(v->track[i], step);
    const struct trace_step_list *l = v->track[0]->steps;
    if (!l->n)
        fail(EXIT_USAGE, "the trace %s holds no step, so none for --step %" PRIu32, v->track[0]->path, step);
    if (!s || s->step != step)
        fail(EXIT_USAGE, "the trace %s holds the steps %" PRIu32 " to %" PRIu32 ", but --step asks for %" PRIu32,
             v->track[0]->path, l->step[0].step, l->step[l->n - 1].step, step);
}

/* A trace of a run that goes on is followed; else the step is seen that was asked for, or all. */
static void look_first(struct view *v)
{
    if (given.step)
        expect_step(v, (uint32_t)given.step), look_at_step(v, (uint32_t)given.step);
    else if (is_followed(v) && !given.script)
        press_key(v, "l");
    if (given.script)
        must(run_script(v, given.script));
}

int cmd_view(int argc, char **argv)
{
    char **files;
    int n, width, height;
    struct track *tracks[MAX_TRACKS];
    reset_options(&table);
    if (wants_help(argc, argv))
        return print_help(), EXIT_OK;
    parse_options(&table, 1, "view", argc, argv, &files, &n);
    if (n < 1 || n > MAX_TRACKS)
        fail(EXIT_USAGE, "yard view takes one trace or two, but %d were given; 'yard view --help' says more", n);
    claim_files(files, n);
    parse_size(given.size, &width, &height);
    for (int i = 0; i < n; i++)
        must(open_track(files[i], &tracks[i]));
    struct curve *loss = given.log ? open_curve(given.log) : NULL;
    struct view *v = open_view(tracks, n, loss, width, height, 1);
    if (loss && access(given.log, R_OK) != 0 && !is_followed(v))
        fail(EXIT_IO, "cannot read the log %s: %s", given.log, strerror(errno));
    look_first(v);
    show_view(v);
    close_view(v);
    if (loss)
        close_curve(loss);
    for (int i = 0; i < n; i++)
        close_track(tracks[i]);
    free(files);
    return EXIT_OK;
}
