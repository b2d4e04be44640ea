/* actions.c - all that changes a view: the table of keys, the mouse, scripts of both. */
#include "view.h"

#include <inttypes.h>
#include <math.h>

/* ---- moving ---------------------------------------------------------------------------------------------------- */

static void pan(struct view *v, double share)
{
    double by = share * (v->to - v->from);
    v->follow = false;
    look_at(v, v->from + by, v->to + by);
}

/* What is at the mouse stays there; without one, the middle. */
static void zoom(struct view *v, double factor)
{
    struct box rows = places_of(v).rows;
    bool inside = v->mouse_x >= rows.x && v->mouse_x < rows.x + rows.w;
    double at = inside ? axis_at(v, v->mouse_x) : (v->from + v->to) / 2;
    v->zoomed = true;
    if ((v->to - v->from) * factor >= 100)
        look_at(v, at + (v->from - at) * factor, at + (v->to - at) * factor);
    if (v->follow)
        look_at_end(v);
}

static void scroll_rows(struct view *v, double dots) { v->scroll += (int)(dots * v->scale); }

static void go_to_step(struct view *v, uint32_t step)
{
    v->follow = false;
    look_at_step(v, step);
}

static void go_by(struct view *v, double by)
{
    const struct trace_step_list *steps = v->track[0]->steps;
    const struct trace_step *s = find_step(v->track[0], v->anchor);
    if (s)
        s += by < 0 ? -(s > steps->step) : by > 0 ? s + 1 < steps->step + steps->n : 0;
    go_to_step(v, s ? s->step : v->anchor);
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

/* With so many times its own length in sight; 0: with the window's length, which stays where it is if it can. */
static void show_selected(struct view *v, double times)
{
    if (!is_picked(&v->selected))
        return;
    const struct track *k = v->track[v->selected.track];
    double from = axis_of(k, v->selected.copy.start), to = axis_of(k, v->selected.copy.end);
    double length = times > 0 ? times * (to - from) : v->to - v->from;
    if (times > 0 || from < v->from || to > v->to)
        look_at(v, (from + to - length) / 2, (from + to + length) / 2);
    v->follow = false;
}

/* Along the lane; from nothing to the first task of the step, or in sight, on the topmost lane that has one. */
static void select_neighbour(struct view *v, double by)
{
    double from = v->from < 0 && v->to > 0 ? 0 : v->from;
    if (is_picked(&v->selected))
        pick_neighbour(v, &v->selected, (int)by);
    for (const struct row *row = v->row; row < v->row + v->n_rows && !is_picked(&v->selected); row++) {
        const struct track *k = v->track[row->track];
        const struct bars *b = &k->trace->bars[row->index];
        size_t bar = row->kind == ROW_LANE ? first_bar_from(b, clock_of(k, from)) : 0;
        if (row->kind == ROW_LANE && bar < b->n)
            v->selected = pick_of(v, row->track, (int64_t)b->bar[bar].record);
    }
    show_selected(v, 0);
}

/* ---- looks ----------------------------------------------------------------------------------------------------- */

static void toggle(struct view *v, double offset)
{
    bool *flag = (bool *)((char *)v + (size_t)offset);
    *flag = !*flag;
}

/* All devices, or none when all are. */
static void fold_all(struct view *v)
{
    bool all = true;
    for (const struct row *r = v->row; r < v->row + v->n_rows; r++)
        all &= r->kind != ROW_DEVICE || v->track[r->track]->folded[r->index];
    for (int i = 0; i < v->n_tracks; i++)
        memset(v->track[i]->folded, !all, v->track[i]->trace->header.n_devices);
}

enum act { FIT_ALL, FOLLOW, COLOUR, FOLD, SEARCH, FORGET };
static void act(struct view *v, double what)
{
    if (what == FIT_ALL) {
        v->follow = false;
        look_at_all(v);
    } else if (what == FOLLOW) {
        v->follow = !v->follow;
        if (v->follow)
            look_at_end(v);
    } else if (what == COLOUR) {
        v->colour = (v->colour + 1) % COLOUR_WAYS;
    } else if (what == FOLD) {
        fold_all(v);
    } else if (what == SEARCH) {
        v->search[0] = '\0';
        v->typing = true;
        SAY(v, "search: _");
    } else {
        v->search[0] = '\0';
        v->selected.record = NOTHING;
        v->region.kind = NO_REGION;
        v->critical = v->help = false;
    }
}

/* ---- the trainer ----------------------------------------------------------------------------------------------- */

enum wish { PAUSE, ONE_TASK, ONE_STEP };
static void ask(struct view *v, double wish)
{
    struct trace_follow *f = v->track[0]->follow;
    struct trace_control wanted = *trace_asks(f);
    if (!trace_can_ask(f)) {
        SAY(v, "There is no trainer to ask: this trace has ended.");
        return;
    }
    wanted.tasks += wish == ONE_TASK && wanted.pause;
    wanted.steps += wish == ONE_STEP && wanted.pause;
    v->steps = wish != PAUSE;
    v->follow |= v->steps;
    wanted.pause = wish == PAUSE ? !wanted.pause : wanted.pause || wish == ONE_TASK || wish == ONE_STEP;
    trace_ask(f, wanted);
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

#define TOGGLE(flag) toggle, offsetof(struct view, flag)
const struct action actions[] = {
    {"left a", "move left", pan, -0.2},
    {"right d", "move right", pan, 0.2},
    {"+ =", "zoom in at the mouse (wheel)", zoom, 1 / 1.5},
    {"-", "zoom out (wheel)", zoom, 1.5},
    {"up", "rows up (shift+wheel)", scroll_rows, -60},
    {"down", "rows down", scroll_rows, 60},
    {"f", "fit the step", go_by, 0},
    {"0 home", "fit the whole trace", act, FIT_ALL},
    {"pagedown", "next step", go_by, 1},
    {"pageup", "previous step", go_by, -1},
    {"n", "next task on the lane", select_neighbour, 1},
    {"p", "previous task on the lane", select_neighbour, -1},
    {"z enter", "zoom to the selected task", show_selected, 3},
    {"c", "critical path of the step", TOGGLE(critical)},
    {"u", "undo a move of a task", change_list, UNDO},
    {"s", "save the list as it is now", change_list, SAVE},
    {"/", "search, dims the rest", act, SEARCH},
    {"escape", "forget selection, search, ruler", act, FORGET},
    {"k", "colour by kind, layer, ...", act, COLOUR},
    {"w", "what idle lanes wait for", TOGGLE(show_causes)},
    {"m", "hide or show memory", TOGGLE(hide_memory)},
    {"x", "fold devices (click on one)", act, FOLD},
    {"l", "follow what runs", act, FOLLOW},
    {"space", "pause the training, go on", ask, PAUSE},
    {".", "let it run one task", ask, ONE_TASK},
    {">", "let it run one step", ask, ONE_STEP},
    {"h ?", "this help", TOGGLE(help)},
    {"q", "quit", TOGGLE(quit)},
};
const size_t n_actions = COUNT(actions);

static const struct action *find_action(const char *key)
{
    for (size_t i = 0; i < n_actions; i++)
        for (const char *word = actions[i].keys; *word; word += strcspn(word, " "), word += *word == ' ')
            if (strcspn(word, " ") == strlen(key) && strncmp(word, key, strlen(key)) == 0)
                return &actions[i];
    return NULL;
}

static bool search_finds(const struct view *v)
{
    for (int i = 0; i < v->n_tracks; i++)
        for (uint32_t k = 0; k < v->track[i]->trace->header.n_tasks; k++)
            if (strcasestr(v->track[i]->trace->tasks[k].name, v->search))
                return true;
    return false;
}

static void type_key(struct view *v, const char *key)
{
    size_t n = strlen(v->search);
    if (strcmp(key, "enter") == 0 || strcmp(key, "escape") == 0)
        v->typing = false;
    if (strcmp(key, "escape") == 0)
        v->search[0] = '\0';
    if (strcmp(key, "backspace") == 0 && n)
        v->search[n - 1] = '\0';
    if (strcmp(key, "space") == 0)
        key = " ";
    if (strlen(key) == 1 && n + 1 < sizeof v->search)
        snprintf(v->search + n, sizeof v->search - n, "%s", key);
    SAY(v, "search: %s%s%s", v->search, v->typing ? "_" : "   (Escape ends it)",
        search_finds(v) ? "" : "   no task has that in its name");
}

void press_key(struct view *v, const char *key)
{
    const struct action *a = find_action(key);
    if (!a && !v->typing)
        return;
    v->message[0] = '\0';
    if (v->drag == DRAG_TASK)
        call_off(v);
    if (v->typing)
        type_key(v, key);
    else if (v->help && strcmp(key, "q") != 0)
        v->help = false;
    else
        a->run(v, a->by);
    refresh(v);
}

/* ---- the mouse ------------------------------------------------------------------------------------------------- */

static void drag(struct view *v, int x, int y)
{
    bool moves = x != v->mouse_x || y != v->mouse_y;
    v->moved |= moves;
    if (v->drag == DRAG_RULER)
        v->region.at[1] = axis_at(v, x);
    if (v->drag == DRAG_OVERVIEW)
        go_to_step(v, step_at_overview(v, x));
    if (v->drag == DRAG_ROWS && moves) {
        pan(v, -(double)(x - v->mouse_x) / places_of(v).rows.w);
        v->scroll -= y - v->mouse_y;
    }
}

void move_mouse(struct view *v, int x, int y)
{
    drag(v, x, y);
    v->mouse_x = x;
    v->mouse_y = y;
    if (v->drag != DRAG_NOTHING)
        refresh(v);
    v->hover = pick_at(v, x, y);
}

void press_button(struct view *v, bool measure)
{
    struct box strip = places_of(v).overview, ruler = places_of(v).ruler;
    v->message[0] = '\0';
    v->moved = false;
    v->gesture.blocker.record = NOTHING;
    measure |= is_inside(&ruler, v->mouse_x, v->mouse_y);
    v->drag = is_inside(&strip, v->mouse_x, v->mouse_y) ? DRAG_OVERVIEW : measure ? DRAG_RULER : DRAG_ROWS;
    if (v->drag == DRAG_RULER)
        v->region = (struct region){.kind = STRETCH, .at = {axis_at(v, v->mouse_x)}};
    struct pick p = pick_at(v, v->mouse_x, v->mouse_y);
    if (v->drag == DRAG_ROWS && is_picked(&p) && v->track[p.track]->board) {
        v->drag = DRAG_TASK;
        take_up(v, &p);
    }
    drag(v, v->mouse_x, v->mouse_y);
}

static void click(struct view *v, int x, int y)
{
    const struct row *row = row_at(v, x, y);
    if (row && row->kind == ROW_DEVICE) {
        v->track[row->track]->folded[row->index] ^= true;
        return;
    }
    if (row && row->kind == ROW_MEMORY)
        v->region = (struct region){PLACE, {axis_at(v, x), axis_at(v, x)}, row->track, row->index};
    else if (v->region.kind == PLACE)
        v->region.kind = NO_REGION;
    v->selected = pick_at(v, x, y);
}

/* Without a movement in between it was a click. */
void release_button(struct view *v)
{
    enum drag drag = v->drag;
    if (drag == DRAG_TASK && v->moved)
        put_down(v);
    v->drag = DRAG_NOTHING;
    if ((drag == DRAG_ROWS || drag == DRAG_TASK) && !v->moved)
        click(v, v->mouse_x, v->mouse_y);
    if (drag == DRAG_RULER && v->region.at[0] == v->region.at[1])
        v->region.kind = NO_REGION;
    refresh(v);
}

void turn_wheel(struct view *v, double notches, bool scroll)
{
    if (scroll)
        v->scroll -= (int)(notches * 40 * v->scale);
    else
        zoom(v, pow(1.2, -notches));
    lay_out(v);
}

/* ---- scripts --------------------------------------------------------------------------------------------------- */

/* "click:600,300" and the like; false: it is none of them, or its numbers are not. */
static bool run_mouse(struct view *v, const char *word)
{
    static const struct {
        const char *word;
        int numbers;
    } known[] = {{"click:", 2}, {"move:", 2}, {"drag:", 4}, {"hold:", 4}, {"measure:", 4}, {"wheel:", 1}};
    double at[4] = {0};
    char tail;
    const char *numbers = strchr(word, ':');
    int n = numbers ? sscanf(numbers, ":%lf,%lf,%lf,%lf%c", &at[0], &at[1], &at[2], &at[3], &tail) : 0;
    bool is_known = false;
    for (size_t i = 0; i < COUNT(known); i++)
        is_known |= n == known[i].numbers && strncmp(word, known[i].word, strlen(known[i].word)) == 0;
    for (int i = 0; i < n && i < 4; i++)
        is_known &= fabs(at[i]) <= 1e6;
    if (!is_known)
        return false;
    if (n == 1) {
        turn_wheel(v, at[0], false);
        return true;
    }
    move_mouse(v, (int)at[0], (int)at[1]);
    if (strncmp(word, "move", 4) == 0)
        return true;
    press_button(v, word[0] == 'm');
    if (n == 4)
        move_mouse(v, (int)at[2], (int)at[3]);
    if (word[0] != 'h') /* else the button stays down */
        release_button(v);
    return true;
}

void run_script(struct view *v, const char *script)
{
    char *words = copy_string(script), *rest = words, *word;
    lay_out(v);
    while ((word = strtok_r(rest, " \t\r\n", &rest))) {
        if (word[0] == '/' && word[1]) {
            press_key(v, "/");
            for (const char *letter = word + 1; *letter; letter++)
                press_key(v, (char[]){*letter, '\0'});
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
