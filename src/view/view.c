/* view.c - a view from its beginning to its end. */
#include "view.h"

struct view *open_view(struct track *const *tracks, int n, struct curve *loss, int width, int height, int scale)
{
    struct view *v = allocate(1, sizeof *v);
    *v = (struct view){.n_tracks = n, .loss = loss, .width = width, .height = height, .scale = scale};
    v->hover.record = v->selected.record = NOTHING;
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

bool poll_view(struct view *v)
{
    bool changed = v->loss && poll_curve(v->loss);
    for (int i = 0; i < v->n_tracks; i++) {
        const struct trace *before = v->track[i]->trace;
        changed |= poll_track(v->track[i]);
        if (v->track[i]->trace == before)
            continue;
        v->selected.record = NOTHING; /* another run's trace, under the same name */
        if (v->loss)
            restart_curve(v->loss);
        count_colours(v);
        look_at_all(v);
    }
    if (!changed)
        return false;
    pick_again(v, &v->selected);
    if (v->follow)
        look_at_end(v);
    if (v->critical)
        find_critical_path(v);
    lay_out(v);
    v->hover = pick_at(v, v->mouse_x, v->mouse_y);
    return true;
}
