/* actions.c - all that changes a view: the table of keys, the mouse, scripts of both. */
#include "act.h"
#include "draw.h"

#include <math.h>

/* ---- moving ---------------------------------------------------------------------------------------------------- */

static void pan(struct view *v, double share)
{
    double by = share * (v->sight.to - v->sight.from);
    v->sight.follow = false;
    look_at(v, v->sight.from + by, v->sight.to + by);
}

/* The time at the mouse stays where it is; when the mouse is not there, that in the middle. */
static void zoom(struct view *v, double factor)
{
    struct box rows = places_of(v).rows;
    bool inside = v->mouse.x >= rows.x && v->mouse.x < rows.x + rows.w;
    double at = inside ? axis_at(v, v->mouse.x) : (v->sight.from + v->sight.to) / 2;
    v->sight.zoomed = true;
    if ((v->sight.to - v->sight.from) * factor >= 100)
        look_at(v, at + (v->sight.from - at) * factor, at + (v->sight.to - at) * factor);
    if (v->sight.follow)
        look_at_end(v);
}

static void scroll_rows(struct view *v, double dots) { v->sight.scroll += (int)(dots * v->scale); }

static void go_to_step(struct view *v, uint32_t step)
{
    v->sight.follow = false;
    look_at_step(v, step);
}

/* by: -1, 0 or 1 steps. */
static void go_by(struct view *v, double by)
{
    const struct trace_step_list *steps = v->track[0]->steps;
    const struct trace_step *s = find_step(v->track[0], v->sight.anchor);
    if (!s) {
        go_to_step(v, v->sight.anchor);
        return;
    }
    if (by < 0 && s > steps->step)
        s--;
    if (by > 0 && s + 1 < steps->step + steps->n)
        s++;
    go_to_step(v, s->step);
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

/* Shows the selected task with `times` its own length in sight.  0: the length in sight stays, and the picture too if
 * the task is in it. */
static void show_selected(struct view *v, double times)
{
    if (!is_picked(&v->selection.task))
        return;
    const struct track *track = v->track[v->selection.task.track];
    double from = axis_of(track, v->selection.task.copy.start);
    double to = axis_of(track, v->selection.task.copy.end);
    double length = times > 0 ? times * (to - from) : v->sight.to - v->sight.from;
    if (times > 0 || from < v->sight.from || to > v->sight.to)
        look_at(v, (from + to - length) / 2, (from + to + length) / 2);
    v->sight.follow = false;
}

/* The first task of the anchor step, or if that is out of sight the first in sight, on the topmost lane with one. */
static struct pick first_in_sight(const struct view *v)
{
    double from = v->sight.from < 0 && v->sight.to > 0 ? 0 : v->sight.from;
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        const struct view_row *row = &v->layout.row[i];
        const struct track *track = v->track[row->track];
        if (row->kind != ROW_LANE)
            continue;
        const struct bars *b = &track->trace->bars[row->index];
        size_t bar = first_bar_from(b, clock_of(track, from));
        if (bar < b->n)
            return pick_of(v, row->track, (int64_t)b->bar[bar].record);
    }
    return pick_of(v, 0, NONE);
}

/* Goes along the lane of the selected task; by: -1 or 1. */
static void select_neighbour(struct view *v, double by)
{
    if (is_picked(&v->selection.task))
        pick_neighbour(v, &v->selection.task, (int)by);
    else
        v->selection.task = first_in_sight(v);
    show_selected(v, 0);
}

/* ---- looks ----------------------------------------------------------------------------------------------------- */

static void fit_all(struct view *v)
{
    v->sight.follow = false;
    look_at_all(v);
}

static void use_next_colour(struct view *v) { v->colour = (v->colour + 1) % COLOUR_WAYS; }
static void toggle_critical(struct view *v) { v->selection.critical = !v->selection.critical; }
static void toggle_causes(struct view *v) { v->show_causes = !v->show_causes; }
static void toggle_memory(struct view *v) { v->hide_memory = !v->hide_memory; }
static void toggle_help(struct view *v) { v->help = !v->help; }
static void toggle_quit(struct view *v) { v->quit = !v->quit; }

/* Folds all devices, or if all are folded unfolds them. */
static void fold_all(struct view *v)
{
    bool all = true;
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        const struct view_row *row = &v->layout.row[i];
        if (row->kind == ROW_DEVICE && !v->track[row->track]->folded[row->index])
            all = false;
    }
    for (int i = 0; i < v->n_tracks; i++)
        memset(v->track[i]->folded, !all, v->track[i]->trace->header.n_devices);
}

static void toggle_follow(struct view *v)
{
    v->sight.follow = !v->sight.follow;
    if (v->sight.follow)
        look_at_end(v);
}

static void begin_search(struct view *v)
{
    v->selection.search[0] = '\0';
    v->selection.typing = true;
    SAY(v, "search: _");
}

/* Marks the time at the mouse.  There are two marks at most: a third one replaces the oldest. */
static void mark_time(struct view *v)
{
    const struct box rows = places_of(v).rows;
    struct view_selection *s = &v->selection;
    if (v->mouse.x < rows.x || v->mouse.x >= rows.x + rows.w) {
        SAY(v, "Put the mouse at the time that t is to mark.");
        return;
    }
    if (s->n_marks == MOST_MARKS) {
        s->mark[0] = s->mark[1];
        s->n_marks--;
    }
    s->mark[s->n_marks++] = axis_at(v, v->mouse.x);
}

static void forget_selection(struct view *v)
{
    v->selection.search[0] = '\0';
    v->selection.n_marks = 0;
    v->selection.task.record = NONE;
    v->selection.region.kind = NO_REGION;
    v->selection.critical = false;
    v->help = false;
}

/* ---- the trainer ----------------------------------------------------------------------------------------------- */

enum asked { PAUSE, ONE_TASK, ONE_STEP };

/* ONE_TASK and ONE_STEP pause a trainer that runs. */
static void ask_trainer(struct view *v, enum asked what)
{
    struct trace_follow *f = v->track[0]->follow;
    struct trace_control wanted = *trace_asks(f);
    if (!trace_can_ask(f)) {
        SAY(v, "There is no trainer to ask: this trace has ended.");
        return;
    }
    v->sight.steps = what != PAUSE;
    if (what == PAUSE) {
        wanted.pause = !wanted.pause;
    } else {
        v->sight.follow = true;
        if (wanted.pause && what == ONE_TASK)
            wanted.tasks++;
        if (wanted.pause && what == ONE_STEP)
            wanted.steps++;
        wanted.pause = true;
    }
    trace_ask(f, wanted);
}

static void ask_pause(struct view *v) { ask_trainer(v, PAUSE); }
static void ask_task(struct view *v) { ask_trainer(v, ONE_TASK); }
static void ask_step(struct view *v) { ask_trainer(v, ONE_STEP); }

/* ---- keys ------------------------------------------------------------------------------------------------------ */

const struct action actions[] = {
    {"left a", "move left", .run = pan, .by = -0.2},
    {"right d", "move right", .run = pan, .by = 0.2},
    {"+ =", "zoom in at the mouse (wheel)", .run = zoom, .by = 1 / 1.5},
    {"-", "zoom out (wheel)", .run = zoom, .by = 1.5},
    {"up", "rows up (shift+wheel)", .run = scroll_rows, .by = -60},
    {"down", "rows down", .run = scroll_rows, .by = 60},
    {"f", "fit the step", .run = go_by, .by = 0},
    {"0 home", "fit the whole trace", .act = fit_all},
    {"pagedown", "next step", .run = go_by, .by = 1},
    {"pageup", "previous step", .run = go_by, .by = -1},
    {"n", "next task on the lane", .run = select_neighbour, .by = 1},
    {"p", "previous task on the lane", .run = select_neighbour, .by = -1},
    {"z enter", "zoom to the selected task", .run = show_selected, .by = 3},
    {"c", "critical path of the step", .act = toggle_critical},
    {"u", "undo a move of a task", .act = undo_last_move},
    {"s", "save the list as it is now", .act = save_list},
    {"/", "search, dims the rest", .act = begin_search},
    {"t", "mark the time at the mouse (two)", .act = mark_time},
    {"escape", "forget selection, search, marks", .act = forget_selection},
    {"k", "colour by kind, layer, ...", .act = use_next_colour},
    {"w", "what idle lanes wait for", .act = toggle_causes},
    {"m", "hide or show memory", .act = toggle_memory},
    {"x", "fold devices (click on one)", .act = fold_all},
    {"l", "follow what runs", .act = toggle_follow},
    {"space", "pause the training, go on", .act = ask_pause},
    {".", "let it run one task", .act = ask_task},
    {">", "let it run one step", .act = ask_step},
    {"h ?", "this help", .act = toggle_help},
    {"q", "quit", .act = toggle_quit},
};
const size_t n_actions = COUNT(actions);

static const struct action *find_action(const char *key)
{
    const size_t length = strlen(key);
    for (size_t i = 0; i < n_actions; i++) {
        const char *word = actions[i].keys;
        while (*word) {
            size_t n = strcspn(word, " ");
            if (n == length && strncmp(word, key, n) == 0)
                return &actions[i];
            word += n;
            if (*word == ' ')
                word++;
        }
    }
    return NULL;
}

static bool search_finds(const struct view *v)
{
    for (int i = 0; i < v->n_tracks; i++) {
        const struct trace *t = v->track[i]->trace;
        for (uint32_t k = 0; k < t->header.n_tasks; k++)
            if (strcasestr(t->tasks[k].name, v->selection.search))
                return true;
    }
    return false;
}

static void type_key(struct view *v, const char *key)
{
    size_t n = strlen(v->selection.search);
    if (strcmp(key, "enter") == 0 || strcmp(key, "escape") == 0)
        v->selection.typing = false;
    if (strcmp(key, "escape") == 0)
        v->selection.search[0] = '\0';
    if (strcmp(key, "backspace") == 0 && n)
        v->selection.search[n - 1] = '\0';
    if (strcmp(key, "space") == 0)
        key = " ";
    if (strlen(key) == 1 && n + 1 < sizeof v->selection.search)
        snprintf(v->selection.search + n, sizeof v->selection.search - n, "%s", key);
    const char *end = v->selection.typing ? "_" : "   (Escape ends it)";
    const char *missing = search_finds(v) ? "" : "   no task has that in its name";
    SAY(v, "search: %s%s%s", v->selection.search, end, missing);
}

void press_key(struct view *v, const char *key)
{
    const struct action *a = find_action(key);
    if (!a && !v->selection.typing)
        return;
    v->message[0] = '\0';
    if (v->mouse.drag == DRAG_TASK)
        call_off(v);
    if (v->selection.typing)
        type_key(v, key);
    else if (v->help && strcmp(key, "q") != 0)
        v->help = false;
    else if (a->run)
        a->run(v, a->by);
    else
        a->act(v);
    refresh(v);
}

/* ---- the mouse ------------------------------------------------------------------------------------------------- */

static void drag(struct view *v, int x, int y)
{
    bool moves = x != v->mouse.x || y != v->mouse.y;
    v->mouse.moved |= moves;
    if (v->mouse.drag == DRAG_RULER)
        v->selection.region.at[1] = axis_at(v, x);
    if (v->mouse.drag == DRAG_OVERVIEW)
        go_to_step(v, step_at_overview(v, x));
    if (v->mouse.drag == DRAG_ROWS && moves) {
        pan(v, -(double)(x - v->mouse.x) / places_of(v).rows.w);
        v->sight.scroll -= y - v->mouse.y;
    }
}

void move_mouse(struct view *v, int x, int y)
{
    drag(v, x, y);
    v->mouse.x = x;
    v->mouse.y = y;
    if (v->mouse.drag != DRAG_NOTHING)
        refresh(v);
    v->mouse.hover = pick_at(v, x, y);
}

/* What the button does at this place, unless it moves a task. */
static enum drag drag_at(const struct places *p, int x, int y, bool measure)
{
    if (is_inside(&p->overview, x, y))
        return DRAG_OVERVIEW;
    if (measure || is_inside(&p->ruler, x, y))
        return DRAG_RULER;
    return DRAG_ROWS;
}

void press_button(struct view *v, bool measure)
{
    struct places places = places_of(v);
    v->message[0] = '\0';
    v->mouse.moved = false;
    v->mouse.gesture.blocker.record = NONE;
    v->mouse.drag = drag_at(&places, v->mouse.x, v->mouse.y, measure);
    if (v->mouse.drag == DRAG_RULER)
        v->selection.region = (struct region){.kind = STRETCH, .at = {axis_at(v, v->mouse.x)}};
    struct pick p = pick_at(v, v->mouse.x, v->mouse.y);
    if (v->mouse.drag == DRAG_ROWS && is_picked(&p) && v->track[p.track]->board) {
        v->mouse.drag = DRAG_TASK;
        take_up(v, &p);
    }
    drag(v, v->mouse.x, v->mouse.y);
}

static void click(struct view *v, int x, int y)
{
    const struct view_row *row = row_at(v, x, y);
    if (row && row->kind == ROW_DEVICE) {
        v->track[row->track]->folded[row->index] ^= true;
        return;
    }
    if (row && row->kind == ROW_MEMORY) {
        const double at = axis_at(v, x);
        v->selection.region = (struct region){.kind = PLACE, .at = {at, at}, .track = row->track, .device = row->index};
    } else if (v->selection.region.kind == PLACE) {
        v->selection.region.kind = NO_REGION;
    }
    v->selection.task = pick_at(v, x, y);
}

/* If the mouse has not moved since the button went down, it was a click. */
void release_button(struct view *v)
{
    enum drag drag = v->mouse.drag;
    if (drag == DRAG_TASK && v->mouse.moved)
        put_down(v);
    v->mouse.drag = DRAG_NOTHING;
    if ((drag == DRAG_ROWS || drag == DRAG_TASK) && !v->mouse.moved)
        click(v, v->mouse.x, v->mouse.y);
    if (drag == DRAG_RULER && v->selection.region.at[0] == v->selection.region.at[1])
        v->selection.region.kind = NO_REGION;
    refresh(v);
}

void turn_wheel(struct view *v, double notches, bool scroll)
{
    if (scroll)
        v->sight.scroll -= (int)(notches * 40 * v->scale);
    else
        zoom(v, pow(1.2, -notches));
    lay_out(v);
}

/* ---- scripts --------------------------------------------------------------------------------------------------- */

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
static bool run_mouse(struct view *v, const char *word)
{
    double at[4] = {0};
    enum mouse_word which = parse_mouse(word, at);
    if (which == MOUSE_WORDS)
        return false;
    if (which == MOUSE_WHEEL) {
        turn_wheel(v, at[0], false);
        return true;
    }
    move_mouse(v, (int)at[0], (int)at[1]);
    if (which == MOUSE_MOVE)
        return true;
    press_button(v, which == MOUSE_MEASURE);
    if (which != MOUSE_CLICK)
        move_mouse(v, (int)at[2], (int)at[3]);
    if (which != MOUSE_HOLD) /* it leaves the button down */
        release_button(v);
    return true;
}

void run_script(struct view *v, const char *script)
{
    char *words = copy_string(script);
    char *rest = words, *word;
    lay_out(v);
    while ((word = strtok_r(rest, " \t\r\n", &rest))) {
        if (word[0] == '/' && word[1]) {
            press_key(v, "/");
            for (const char *letter = word + 1; *letter; letter++) {
                const char key[] = {*letter, '\0'};
                press_key(v, key);
            }
            press_key(v, "enter");
        } else if (find_action(word))
            press_key(v, word);
        else if (!run_mouse(v, word))
            fail(EXIT_USAGE,
                 "--script has \"%s\", which is no key, /word, click:X,Y, move:X,Y, wheel:N, drag:X,Y,X,Y, "
                 "hold:X,Y,X,Y or measure:X,Y,X,Y; 'yard view --help' lists them",
                 word);
    }
    free(words);
}
