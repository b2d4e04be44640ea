/* view.c - opens a view, and keeps it up with its traces. */
#include "draw.h"

#include <stdarg.h>

struct view *open_view(struct track *const *tracks, int n, int width, int height, int scale)
{
    struct view *view = allocate(1, sizeof *view);
    *view = (struct view){.n_tracks = n, .width = width, .height = height, .scale = scale};
    view->mouse.hover.record = NONE;
    view->selection.task.record = NONE;
    view->mouse.gesture.blocker.record = NONE;
    view->mouse.x = OFF_WINDOW;
    view->mouse.y = OFF_WINDOW;
    for (int i = 0; i < n; i++)
        view->tracks[i] = tracks[i];
    count_colours(view);
    lay_out(view);
    look_at_all(view);
    return view;
}

void close_view(struct view *view)
{
    view->selection.region.kind = NO_REGION;
    select_again(view); /* frees the panel */
    free(view->selection.path);
    forget_lit(view);
    forget_shares(view);
    free(view->layout.rows);
    free(view->mouse.gesture.spots);
    free(view);
}

void show_message(struct view *view, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(view->message, sizeof view->message, format, arguments);
    va_end(arguments);
}

bool is_followed(const struct view *view)
{
    bool any = false;
    for (int i = 0; i < view->n_tracks; i++)
        any |= is_living(view->tracks[i]);
    return any;
}

bool is_frozen(const struct view *view)
{
    struct box rows = places_of(view).rows;
    return view->sight.follow && !view->sight.asked && is_inside(&rows, view->mouse.x, view->mouse.y);
}

/* Selects the task that was asked for, or the last run of the one that is selected, and shows what happens now. */
static void follow_run(struct view *view)
{
    const struct pick *pick = &view->selection.task;
    if (view->sight.asked) {
        view->selection.task = pick_of(view, 0, (int64_t)view->tracks[0]->trace->n_records - 1);
    } else if (is_picked(pick)) {
        const struct runs *runs = &view->tracks[pick->track]->trace->runs[pick->copy.task];
        if (runs->n > 0)
            view->selection.task = pick_of(view, pick->track, (int64_t)runs->record[runs->n - 1]);
    }
    look_at_end(view);
}

void refresh_view(struct view *view)
{
    if (view->selection.critical)
        fill_critical_path(view);
    fill_lit(view);
    select_again(view);
    lay_out(view);
    view->mouse.hover = pick_at(view, view->mouse.x, view->mouse.y);
}

/* Has another trace taken the path of this one?  Then that is shown. */
static bool replace_track(struct view *view, struct track *track)
{
    if (track->board || !is_trace_replaced(track->follower))
        return false;
    renew_track(track); /* another run, or the list that gdb's `yard step-list` goes through */
    view->selection.task.record = NONE;
    view->selection.region.kind = NO_REGION;
    view->selection.n_marks = 0;
    count_colours(view);
    forget_shares(view);
    return true;
}

bool poll_view(struct view *view)
{
    bool changed = false;
    for (int i = 0; i < view->n_tracks; i++) {
        changed |= poll_track(view->tracks[i]);
        changed |= replace_track(view, view->tracks[i]);
    }
    if (!changed)
        return false;
    struct pick *pick = &view->selection.task;
    if (is_picked(pick)) { /* the record may have another index now */
        const struct trace *trace = view->tracks[pick->track]->trace;
        *pick = pick_of(view, pick->track, find_run_before(trace, pick->copy.task, pick->copy.step, SIZE_MAX));
    }
    if (view->sight.follow && !is_frozen(view))
        follow_run(view);
    refresh_view(view);
    return true;
}
