/* view.c - opens a view, and keeps it up with its traces. */
#include "draw.h"

struct view *open_view(struct track *const *tracks, int n, int width, int height, int scale)
{
    struct view *v = allocate(1, sizeof *v);
    *v = (struct view){.n_tracks = n, .width = width, .height = height, .scale = scale};
    v->mouse.hover.record = NONE;
    v->selection.task.record = NONE;
    v->mouse.gesture.blocker.record = NONE;
    v->mouse.x = OFF_WINDOW;
    v->mouse.y = OFF_WINDOW;
    for (int i = 0; i < n; i++)
        v->track[i] = tracks[i];
    count_colours(v);
    lay_out(v);
    look_at_all(v);
    return v;
}

void close_view(struct view *v)
{
    v->selection.region.kind = NO_REGION;
    select_again(v); /* frees the panel */
    free(v->selection.path);
    free(v->layout.row);
    free(v->mouse.gesture.spot);
    free(v);
}

bool is_followed(const struct view *v)
{
    bool any = false;
    for (int i = 0; i < v->n_tracks; i++)
        any |= is_living(v->track[i]);
    return any;
}

bool is_frozen(const struct view *v)
{
    struct box rows = places_of(v).rows;
    return v->sight.follow && !v->sight.steps && is_inside(&rows, v->mouse.x, v->mouse.y);
}

/* Selects the task that was asked for, or the last run of the one that is selected, and shows what happens now. */
static void follow_run(struct view *v)
{
    const struct pick *p = &v->selection.task;
    if (v->sight.steps) {
        v->selection.task = pick_of(v, 0, (int64_t)v->track[0]->trace->n_records - 1);
    } else if (is_picked(p)) {
        const struct runs *runs = &v->track[p->track]->trace->runs[p->copy.task];
        if (runs->n > 0)
            v->selection.task = pick_of(v, p->track, (int64_t)runs->record[runs->n - 1]);
    }
    look_at_end(v);
}

void refresh(struct view *v)
{
    if (v->selection.critical)
        find_critical_path(v);
    select_again(v);
    lay_out(v);
    v->mouse.hover = pick_at(v, v->mouse.x, v->mouse.y);
}

/* Has another trace taken the path of this one?  Then that is shown. */
static bool replace_track(struct view *v, struct track *track)
{
    if (track->board || !trace_follow_replaced(track->follow))
        return false;
    renew_track(track); /* another run, or the list that gdb's `yard step-list` goes through */
    v->selection.task.record = NONE;
    v->selection.region.kind = NO_REGION;
    v->selection.n_marks = 0;
    count_colours(v);
    return true;
}

bool poll_view(struct view *v)
{
    bool changed = false;
    for (int i = 0; i < v->n_tracks; i++) {
        changed |= poll_track(v->track[i]);
        changed |= replace_track(v, v->track[i]);
    }
    if (!changed)
        return false;
    struct pick *p = &v->selection.task;
    if (is_picked(p)) { /* the record may have another index now */
        const struct trace *t = v->track[p->track]->trace;
        *p = pick_of(v, p->track, trace_find_before(t, p->copy.task, p->copy.step, SIZE_MAX));
    }
    if (v->sight.follow && !is_frozen(v))
        follow_run(v);
    refresh(v);
    return true;
}

#ifndef HAVE_SDL2 /* window.c is empty */
void show_window(struct view *v)
{
    (void)v;
    fail(EXIT_USAGE, "this yard was built without SDL2, so it opens no window: install SDL2 (Debian: libsdl2-dev) and "
                     "build again, or write a picture with yard view FILE --png OUT.png");
}
#endif
