/* view.c - a view from its beginning to its end. */
#include "view.h"

struct view *open_view(struct track *const *tracks, int n, int width, int height, int scale)
{
    struct view *v = allocate(1, sizeof *v);
    *v = (struct view){.n_tracks = n, .width = width, .height = height, .scale = scale};
    v->hover.record = v->selected.record = v->gesture.blocker.record = NOTHING;
    v->mouse_x = v->mouse_y = NOTHING;
    for (int i = 0; i < n; i++)
        v->track[i] = tracks[i];
    count_colours(v);
    lay_out(v);
    look_at_all(v);
    return v;
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
    return v->follow && !v->steps && is_inside(&rows, v->mouse_x, v->mouse_y);
}

/* The task that was asked for, or the last run of the one that is selected. */
static void follow(struct view *v)
{
    const struct trace *t = v->track[v->selected.track]->trace;
    const struct runs *runs = is_picked(&v->selected) ? &t->runs[v->selected.copy.task] : NULL;
    if (v->steps)
        v->selected = pick_of(v, 0, (int64_t)v->track[0]->trace->n_records - 1);
    else if (runs && runs->n)
        v->selected = pick_of(v, v->selected.track, (int64_t)runs->record[runs->n - 1]);
    look_at_end(v);
}

void refresh(struct view *v)
{
    if (v->critical)
        find_critical_path(v);
    select_again(v);
    lay_out(v);
    v->hover = pick_at(v, v->mouse_x, v->mouse_y);
}

bool poll_view(struct view *v)
{
    bool changed = false;
    for (int i = 0; i < v->n_tracks; i++) {
        struct track *k = v->track[i];
        changed |= poll_track(k);
        if (k->board || !trace_follow_replaced(k->follow))
            continue;
        renew_track(k); /* another run; or the list that gdb's `yard step-list` goes through */
        v->selected.record = NOTHING;
        v->region.kind = NO_REGION;
        count_colours(v);
        changed = true;
    }
    if (!changed)
        return false;
    struct pick *p = &v->selected; /* the trace has grown */
    if (is_picked(p))
        *p = pick_of(v, p->track, trace_find_before(v->track[p->track]->trace, p->copy.task, p->copy.step, SIZE_MAX));
    if (v->follow && !is_frozen(v))
        follow(v);
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
