/* actions.c - all that changes a view: the table of keys, the mouse, scripts of both. */
#include "act.h"
#include "draw.h"

#include <math.h>

/* ---- moving ------------------------------------------------------------------------------------------------------ */

static void pan(struct view *view, double share)
{
    double by = share * (view->sight.to - view->sight.from);
    view->sight.follow = false;
    look_at(view, view->sight.from + by, view->sight.to + by);
}

/* The time at the mouse keeps its place.  If the mouse is not on the rows, the time in the middle does. */
static void zoom(struct view *view, double factor)
{
    struct box rows = places_of(view).rows;
    bool inside = view->mouse.x >= rows.x && view->mouse.x < rows.x + rows.w;
    double at = inside ? axis_at(view, view->mouse.x) : (view->sight.from + view->sight.to) / 2;
    view->sight.zoomed = true;
    if ((view->sight.to - view->sight.from) * factor >= NARROWEST_NS)
        look_at(view, at + (view->sight.from - at) * factor, at + (view->sight.to - at) * factor);
    if (view->sight.follow)
        look_at_end(view);
}

static void scroll_rows(struct view *view, double dots) { view->sight.scroll += (int)(dots * view->scale); }

static void go_to_step(struct view *view, uint32_t step)
{
    view->sight.follow = false;
    look_at_step(view, step);
}

/* by: -1, 0 or 1. */
static void go_by(struct view *view, int by)
{
    const struct trace_step_list *steps = view->tracks[0]->steps;
    const struct trace_step *step = find_step(view->tracks[0], view->sight.anchor);
    if (!step) {
        go_to_step(view, view->sight.anchor);
        return;
    }
    if (by < 0 && step > steps->items)
        step--;
    if (by > 0 && step + 1 < steps->items + steps->n)
        step++;
    go_to_step(view, step->step);
}

static void fit_step(struct view *view) { go_by(view, 0); }
static void go_to_next_step(struct view *view) { go_by(view, 1); }
static void go_to_previous_step(struct view *view) { go_by(view, -1); }

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

/* Shows the selected task with `times` its own length in sight.  0: the length in sight stays, and the picture too if
 * the task is in it. */
static void show_selected(struct view *view, double times)
{
    if (!is_picked(&view->selection.task))
        return;
    const struct track *track = view->tracks[view->selection.task.track];
    double from = axis_of(track, view->selection.task.copy.start);
    double to = axis_of(track, view->selection.task.copy.end);
    double length = times > 0 ? times * (to - from) : view->sight.to - view->sight.from;
    if (times > 0 || from < view->sight.from || to > view->sight.to)
        look_at(view, (from + to - length) / 2, (from + to + length) / 2);
    view->sight.follow = false;
}

/* The first task of the anchor step, or if that is out of sight the first in sight, on the topmost lane with one. */
static struct pick first_in_sight(const struct view *view)
{
    double from = view->sight.from < 0 && view->sight.to > 0 ? 0 : view->sight.from;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        const struct track *track = view->tracks[row->track];
        if (row->kind != ROW_LANE)
            continue;
        const struct bars *bars = &track->trace->bars[row->index];
        size_t bar = first_bar_from(bars, clock_of(track, from));
        if (bar < bars->n)
            return pick_of(view, row->track, (int64_t)bars->items[bar].record);
    }
    return pick_of(view, 0, NONE);
}

/* Goes along the lane of the selected task; by: -1 or 1. */
static void select_neighbour(struct view *view, double by)
{
    if (is_picked(&view->selection.task))
        pick_neighbour(view, &view->selection.task, (int)by);
    else
        view->selection.task = first_in_sight(view);
    show_selected(view, 0);
}

/* ---- looks ------------------------------------------------------------------------------------------------------- */

static void fit_all(struct view *view)
{
    view->sight.follow = false;
    look_at_all(view);
}

static void use_next_colour(struct view *view) { view->colour = (view->colour + 1) % COLOUR_WAYS; }
static void toggle_critical(struct view *view) { view->selection.critical = !view->selection.critical; }
static void toggle_causes(struct view *view) { view->show_causes = !view->show_causes; }
static void toggle_memory(struct view *view) { view->hide_memory = !view->hide_memory; }
static void toggle_help(struct view *view) { view->help = !view->help; }
static void quit_view(struct view *view) { view->quit = true; }

/* Folds all devices, or if all are folded unfolds them. */
static void fold_all(struct view *view)
{
    bool all = true;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        if (row->kind == ROW_DEVICE && !view->tracks[row->track]->folded[row->index])
            all = false;
    }
    for (int i = 0; i < view->n_tracks; i++)
        memset(view->tracks[i]->folded, !all, view->tracks[i]->trace->header.n_devices);
}

static void toggle_follow(struct view *view)
{
    view->sight.follow = !view->sight.follow;
    if (view->sight.follow)
        look_at_end(view);
}

static void begin_search(struct view *view)
{
    view->selection.search[0] = '\0';
    view->selection.typing = true;
    show_message(view, "search: _");
}

/* Marks the time at the mouse.  There are two marks at most: a third one replaces the oldest. */
static void mark_time(struct view *view)
{
    const struct box rows = places_of(view).rows;
    struct view_selection *selection = &view->selection;
    if (view->mouse.x < rows.x || view->mouse.x >= rows.x + rows.w) {
        show_message(view, "put the mouse at the time that t is to mark");
        return;
    }
    if (selection->n_marks == MOST_MARKS) {
        selection->mark[0] = selection->mark[1];
        selection->n_marks--;
    }
    selection->mark[selection->n_marks++] = axis_at(view, view->mouse.x);
}

static void forget_selection(struct view *view)
{
    view->selection.search[0] = '\0';
    view->selection.n_marks = 0;
    view->selection.task.record = NONE;
    view->selection.region.kind = NO_REGION;
    view->selection.critical = false;
    view->help = false;
}

/* ---- the trainer ------------------------------------------------------------------------------------------------- */

enum asked { PAUSE, ONE_TASK, ONE_STEP };

/* ONE_TASK and ONE_STEP pause a trainer that runs. */
static void ask_trainer(struct view *view, enum asked what)
{
    struct trace_follower *follower = view->tracks[0]->follower;
    struct trace_control wanted = *current_request(follower);
    if (!can_request(follower)) {
        show_message(view, "there is no trainer to ask: this trace has ended");
        return;
    }
    view->sight.asked = what != PAUSE;
    if (what == PAUSE) {
        wanted.pause = !wanted.pause;
    } else {
        view->sight.follow = true;
        if (wanted.pause && what == ONE_TASK)
            wanted.tasks++;
        if (wanted.pause && what == ONE_STEP)
            wanted.steps++;
        wanted.pause = true;
    }
    send_request(follower, wanted);
}

static void ask_pause(struct view *view) { ask_trainer(view, PAUSE); }
static void ask_task(struct view *view) { ask_trainer(view, ONE_TASK); }
static void ask_step(struct view *view) { ask_trainer(view, ONE_STEP); }

/* ---- keys -------------------------------------------------------------------------------------------------------- */

const struct action actions[] = {
    {"left a", "move left", .move = pan, .by = -0.2},
    {"right d", "move right", .move = pan, .by = 0.2},
    {"+ =", "zoom in at the mouse (wheel)", .move = zoom, .by = 1 / 1.5},
    {"-", "zoom out (wheel)", .move = zoom, .by = 1.5},
    {"up", "rows up (shift+wheel)", .move = scroll_rows, .by = -60},
    {"down", "rows down", .move = scroll_rows, .by = 60},
    {"f", "fit the step", .act = fit_step},
    {"0 home", "fit the whole trace", .act = fit_all},
    {"pagedown", "next step", .act = go_to_next_step},
    {"pageup", "previous step", .act = go_to_previous_step},
    {"n", "next task on the lane", .move = select_neighbour, .by = 1},
    {"p", "previous task on the lane", .move = select_neighbour, .by = -1},
    {"z enter", "zoom to the selected task", .move = show_selected, .by = 3},
    {"c", "critical path of the step", .act = toggle_critical},
    {"u", "undo a move of a task", .act = undo_last_move},
    {"s", "save the list as it is now", .act = save_list},
    {"/", "search: dim all other tasks", .act = begin_search},
    {"t", "mark the time at the mouse", .act = mark_time},
    {"escape", "forget selection, search, marks", .act = forget_selection},
    {"k", "colour by kind, layer or micro-batch", .act = use_next_colour},
    {"w", "what idle lanes wait for", .act = toggle_causes},
    {"m", "hide or show memory", .act = toggle_memory},
    {"x", "fold devices (click on one)", .act = fold_all},
    {"l", "follow what runs", .act = toggle_follow},
    {"space", "pause the training, go on", .act = ask_pause},
    {".", "let it run one task", .act = ask_task},
    {">", "let it run one step", .act = ask_step},
    {"h ?", "this help", .act = toggle_help},
    {"q", "quit", .act = quit_view},
};
const size_t n_actions = COUNT(actions);

char *key_names(const struct action *action, char out[KEYS_SIZE])
{
    const char *space = strchr(action->keys, ' ');
    if (space)
        snprintf(out, KEYS_SIZE, "%.*s or %s", (int)(space - action->keys), action->keys, space + 1);
    else
        snprintf(out, KEYS_SIZE, "%s", action->keys);
    return out;
}

static const struct action *find_action(const char *key)
{
    size_t length = strlen(key);
    for (size_t i = 0; i < n_actions; i++) {
        const char *name = actions[i].keys;
        while (*name) {
            size_t n = strcspn(name, " ");
            if (n == length && strncmp(name, key, n) == 0)
                return &actions[i];
            name += n;
            if (*name == ' ')
                name++;
        }
    }
    return NULL;
}

static bool search_finds(const struct view *view)
{
    for (int i = 0; i < view->n_tracks; i++) {
        const struct trace *trace = view->tracks[i]->trace;
        for (uint32_t k = 0; k < trace->header.n_tasks; k++)
            if (strcasestr(trace->tasks[k].name, view->selection.search))
                return true;
    }
    return false;
}

static void type_key(struct view *view, const char *key)
{
    size_t n = strlen(view->selection.search);
    if (strcmp(key, "enter") == 0 || strcmp(key, "escape") == 0)
        view->selection.typing = false;
    if (strcmp(key, "escape") == 0)
        view->selection.search[0] = '\0';
    if (strcmp(key, "backspace") == 0 && n)
        view->selection.search[n - 1] = '\0';
    if (strcmp(key, "space") == 0)
        key = " ";
    if (strlen(key) == 1 && n + 1 < sizeof view->selection.search)
        snprintf(view->selection.search + n, sizeof view->selection.search - n, "%s", key);
    const char *end = view->selection.typing ? "_" : "   (Escape ends it)";
    const char *missing = search_finds(view) ? "" : "   no task has that in its name";
    show_message(view, "search: %s%s%s", view->selection.search, end, missing);
}

void press_key(struct view *view, const char *key)
{
    const struct action *action = find_action(key);
    if (!action && !view->selection.typing)
        return;
    view->message[0] = '\0';
    if (view->mouse.drag == DRAG_TASK)
        call_off(view);
    if (view->selection.typing)
        type_key(view, key);
    else if (view->help && strcmp(key, "q") != 0)
        view->help = false;
    else if (action->move)
        action->move(view, action->by);
    else
        action->act(view);
    refresh_view(view);
}

/* ---- the mouse --------------------------------------------------------------------------------------------------- */

static void drag(struct view *view, int x, int y)
{
    bool moves = x != view->mouse.x || y != view->mouse.y;
    view->mouse.moved |= moves;
    if (view->mouse.drag == DRAG_RULER)
        view->selection.region.at[1] = axis_at(view, x);
    if (view->mouse.drag == DRAG_OVERVIEW)
        go_to_step(view, step_at_overview(view, x));
    if (view->mouse.drag == DRAG_ROWS && moves) {
        pan(view, -(double)(x - view->mouse.x) / places_of(view).rows.w);
        view->sight.scroll -= y - view->mouse.y;
    }
}

void move_mouse(struct view *view, int x, int y)
{
    drag(view, x, y);
    view->mouse.x = x;
    view->mouse.y = y;
    if (view->mouse.drag != DRAG_NOTHING)
        refresh_view(view);
    view->mouse.hover = pick_at(view, x, y);
}

/* What the button does at this place, unless it moves a task. */
static enum drag drag_at(const struct places *places, int x, int y, enum shift_key shift)
{
    if (is_inside(&places->overview, x, y))
        return DRAG_OVERVIEW;
    if (shift == SHIFT_DOWN || is_inside(&places->ruler, x, y))
        return DRAG_RULER;
    return DRAG_ROWS;
}

void press_button(struct view *view, enum shift_key shift)
{
    struct places places = places_of(view);
    view->message[0] = '\0';
    view->mouse.moved = false;
    view->mouse.gesture.blocker.record = NONE;
    view->mouse.drag = drag_at(&places, view->mouse.x, view->mouse.y, shift);
    if (view->mouse.drag == DRAG_RULER)
        view->selection.region = (struct region){.kind = STRETCH, .at = {axis_at(view, view->mouse.x)}};
    struct pick pick = pick_at(view, view->mouse.x, view->mouse.y);
    if (view->mouse.drag == DRAG_ROWS && is_picked(&pick) && view->tracks[pick.track]->board) {
        view->mouse.drag = DRAG_TASK;
        take_up(view, &pick);
    }
    drag(view, view->mouse.x, view->mouse.y);
}

static void click(struct view *view, int x, int y)
{
    const struct view_row *row = row_at(view, x, y);
    if (row && row->kind == ROW_DEVICE) {
        view->tracks[row->track]->folded[row->index] ^= true;
        return;
    }
    if (row && row->kind == ROW_MEMORY) {
        double at = axis_at(view, x);
        view->selection.region =
            (struct region){.kind = PLACE, .at = {at, at}, .track = row->track, .device = row->index};
    } else if (view->selection.region.kind == PLACE) {
        view->selection.region.kind = NO_REGION;
    }
    view->selection.task = pick_at(view, x, y);
}

void release_button(struct view *view)
{
    enum drag drag = view->mouse.drag;
    if (drag == DRAG_TASK && view->mouse.moved)
        put_down(view);
    view->mouse.drag = DRAG_NOTHING;
    if ((drag == DRAG_ROWS || drag == DRAG_TASK) && !view->mouse.moved)
        click(view, view->mouse.x, view->mouse.y);
    if (drag == DRAG_RULER && view->selection.region.at[0] == view->selection.region.at[1])
        view->selection.region.kind = NO_REGION;
    refresh_view(view);
}

void turn_wheel(struct view *view, double notches, enum shift_key shift)
{
    double dots_a_notch = 40, zoom_a_notch = 1.2;
    if (shift == SHIFT_DOWN)
        scroll_rows(view, -notches * dots_a_notch);
    else
        zoom(view, pow(zoom_a_notch, -notches));
    lay_out(view);
}

/* ---- scripts ----------------------------------------------------------------------------------------------------- */

enum mouse_word { MOUSE_CLICK, MOUSE_MOVE, MOUSE_DRAG, MOUSE_HOLD, MOUSE_MEASURE, MOUSE_WHEEL, MOUSE_WORDS };

/* Parses "click:600,300" and the like: returns the word that it begins with, and fills in its numbers.  MOUSE_WORDS: it
 * begins with none of them, or its numbers are wrong. */
static enum mouse_word parse_mouse(const char *word, double at[4])
{
    static const struct {
        const char *word;
        int n; /* how many numbers follow it */
    } known[MOUSE_WORDS] = {
        [MOUSE_CLICK] = {"click:", 2}, [MOUSE_MOVE] = {"move:", 2},       [MOUSE_DRAG] = {"drag:", 4},
        [MOUSE_HOLD] = {"hold:", 4},   [MOUSE_MEASURE] = {"measure:", 4}, [MOUSE_WHEEL] = {"wheel:", 1}};
    const char *numbers = strchr(word, ':');
    char tail;
    if (!numbers)
        return MOUSE_WORDS;
    int n = sscanf(numbers, ":%lf,%lf,%lf,%lf%c", &at[0], &at[1], &at[2], &at[3], &tail);
    for (int i = 0; i < n && i < 4; i++)
        if (!(fabs(at[i]) <= 1e6))
            return MOUSE_WORDS;
    for (int i = 0; i < MOUSE_WORDS; i++)
        if (n == known[i].n && strncmp(word, known[i].word, strlen(known[i].word)) == 0)
            return (enum mouse_word)i;
    return MOUSE_WORDS;
}

/* Does what "click:600,300" and the like say; false: the word is none of them, or its numbers are wrong. */
static bool run_mouse(struct view *view, const char *word)
{
    double at[4] = {0};
    enum mouse_word which = parse_mouse(word, at);
    if (which == MOUSE_WORDS)
        return false;
    if (which == MOUSE_WHEEL) {
        turn_wheel(view, at[0], SHIFT_UP);
        return true;
    }
    move_mouse(view, (int)at[0], (int)at[1]);
    if (which == MOUSE_MOVE)
        return true;
    press_button(view, which == MOUSE_MEASURE ? SHIFT_DOWN : SHIFT_UP);
    if (which != MOUSE_CLICK)
        move_mouse(view, (int)at[2], (int)at[3]);
    if (which != MOUSE_HOLD) /* it leaves the button down */
        release_button(view);
    return true;
}

static void type_search(struct view *view, const char *text)
{
    press_key(view, "/");
    for (const char *letter = text; *letter; letter++) {
        const char key[] = {*letter, '\0'};
        press_key(view, key);
    }
    press_key(view, "enter");
}

void run_script(struct view *view, const char *script)
{
    char *words = copy_string(script);
    char *rest = words, *word;
    lay_out(view);
    while ((word = strtok_r(rest, " \t\r\n", &rest))) {
        if (word[0] == '/' && word[1]) {
            type_search(view, word + 1);
        } else if (find_action(word)) {
            press_key(view, word);
        } else if (!run_mouse(view, word)) {
            fail(EXIT_USAGE,
                 "--script has \"%s\", which is not a key, /word, click:X,Y, move:X,Y, wheel:N, drag:X,Y,X,Y, "
                 "hold:X,Y,X,Y or measure:X,Y,X,Y; `yard view --help` lists them",
                 word);
        }
    }
    free(words);
}
