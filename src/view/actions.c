/* actions.c - all that changes a view: the table of keys, the mouse, scripts of both. */
#include "view.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static PRINTF_LIKE(2, 3) void say(struct view *v, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(v->message, sizeof v->message, format, arguments);
    va_end(arguments);
}

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

static void pan_left(struct view *v) { pan(v, -0.2); }
static void pan_right(struct view *v) { pan(v, 0.2); }
static void zoom_in(struct view *v) { zoom(v, 1 / 1.5); }
static void zoom_out(struct view *v) { zoom(v, 1.5); }
static void rows_up(struct view *v) { v->scroll -= 60 * v->scale; }
static void rows_down(struct view *v) { v->scroll += 60 * v->scale; }

static void go_to_step(struct view *v, uint32_t step)
{
    v->follow = false;
    look_at_step(v, step);
    if (v->critical)
        find_critical_path(v);
}

static void fit_step(struct view *v) { go_to_step(v, v->anchor); }

static void fit_all(struct view *v)
{
    v->follow = false;
    look_at_all(v);
}

static void go_by(struct view *v, int by)
{
    const struct track *k = v->track[0];
    const struct span *s = find_span(k, v->anchor), *first = k->step, *last = k->step + k->n_steps - 1;
    if (s)
        go_to_step(v, by < 0 ? s[-(s > first)].step : s[s < last].step);
}

static void next_step(struct view *v) { go_by(v, 1); }
static void previous_step(struct view *v) { go_by(v, -1); }

static void follow(struct view *v)
{
    v->follow = !v->follow;
    if (v->follow)
        look_at_end(v);
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

/* Keeps its length in sight, and the rest of the window where it was. */
static void show_selected(struct view *v)
{
    const struct track *k = v->track[v->selected.track];
    const struct trace_record *r = &v->selected.copy;
    double from = axis_of(k, r->start), to = axis_of(k, r->end), length = v->to - v->from;
    if (from < v->from || to > v->to)
        look_at(v, (from + to - length) / 2, (from + to + length) / 2);
    v->follow = false;
}

/* The first task of the step, or in sight, on the topmost lane that has one. */
static void select_first(struct view *v)
{
    double from = v->from < 0 && v->to > 0 ? 0 : v->from;
    for (size_t i = 0; i < v->n_rows && !is_picked(&v->selected); i++) {
        const struct row *row = &v->row[i];
        const struct track *k = v->track[row->track];
        size_t bar = row->kind == ROW_LANE ? first_bar_from(&k->lane[row->index], clock_of(k, from)) : 0;
        if (row->kind == ROW_LANE && bar < k->lane[row->index].n)
            v->selected = pick_of(v, row->track, (int64_t)k->lane[row->index].bar[bar].record);
    }
}

static void select_neighbour(struct view *v, int by)
{
    if (is_picked(&v->selected))
        pick_neighbour(v, &v->selected, by);
    else
        select_first(v);
    if (is_picked(&v->selected))
        show_selected(v);
}

static void next_task(struct view *v) { select_neighbour(v, 1); }
static void previous_task(struct view *v) { select_neighbour(v, -1); }

static void zoom_to_task(struct view *v)
{
    if (!is_picked(&v->selected))
        return;
    const struct track *k = v->track[v->selected.track];
    double from = axis_of(k, v->selected.copy.start), to = axis_of(k, v->selected.copy.end);
    v->follow = false;
    look_at(v, from - (to - from), to + (to - from));
}

static void critical_path(struct view *v)
{
    v->critical = !v->critical;
    if (v->critical)
        find_critical_path(v);
}

static void forget(struct view *v)
{
    v->selected.record = NOTHING;
    v->critical = v->measuring = v->help = v->typing = false;
    v->search[0] = '\0';
}

static void search(struct view *v)
{
    v->typing = true;
    v->search[0] = '\0';
}

/* ---- looks ----------------------------------------------------------------------------------------------------- */

static void next_colour(struct view *v) { v->colour = (v->colour + 1) % COLOUR_WAYS; }
static void toggle_idle(struct view *v) { v->show_idle = !v->show_idle; }
static void toggle_memory(struct view *v) { v->hide_memory = !v->hide_memory; }
static void toggle_dark(struct view *v) { v->dark = !v->dark; }
static void larger_text(struct view *v) { v->scale = v->scale % 3 + 1; }
static void toggle_help(struct view *v) { v->help = !v->help; }
static void quit(struct view *v) { v->quit = true; }

static void save_picture(struct view *v)
{
    static int number;
    char path[32];
    struct canvas *c = new_canvas(v->width, v->height);
    snprintf(path, sizeof path, "yard-view-%d.png", ++number);
    v->message[0] = '\0';
    draw_view(v, c);
    struct problem *wrong = write_png(path, c->pixels, c->width, c->height);
    say(v, "%s", wrong ? wrong->sentence : path);
    free(wrong);
    free_canvas(c);
}

/* ---- the trainer ----------------------------------------------------------------------------------------------- */

/* Is there one to ask?  Says so where there is none. */
static bool has_trainer(struct view *v)
{
    bool can = trace_can_ask(v->track[0]->follow);
    if (!can)
        say(v, "There is no trainer to ask: this trace has ended.");
    return can;
}

static void pause_trainer(struct view *v)
{
    if (has_trainer(v))
        trace_ask_pause(v->track[0]->follow, !trace_asks_pause(v->track[0]->follow));
}

static void one_task(struct view *v)
{
    if (has_trainer(v))
        trace_ask_task(v->track[0]->follow);
}

static void one_step(struct view *v)
{
    if (has_trainer(v))
        trace_ask_step(v->track[0]->follow);
}

static void change_speed(struct view *v, double factor)
{
    struct trace_follow *f = v->track[0]->follow;
    if (has_trainer(v))
        trace_ask_slow(f, fmin(fmax(trace_asks_slow(f) * factor, 1), TRACE_SLOWEST));
}

static void slower(struct view *v) { change_speed(v, 2); }
static void faster(struct view *v) { change_speed(v, 0.5); }

/* ---- keys ------------------------------------------------------------------------------------------------------ */

const struct action actions[] = {
    {"left a", "move left", pan_left},
    {"right d", "move right", pan_right},
    {"w wheel", "zoom in at the mouse", zoom_in},
    {"s wheel", "zoom out", zoom_out},
    {"up", "rows up (shift+wheel)", rows_up},
    {"down", "rows down", rows_down},
    {"f", "fit the step", fit_step},
    {"0 home", "fit the whole trace", fit_all},
    {"pagedown", "next step", next_step},
    {"pageup", "previous step", previous_step},
    {"n", "next task on the lane", next_task},
    {"p", "previous task on the lane", previous_task},
    {"z enter", "zoom to the selected task", zoom_to_task},
    {"c", "critical path of the step", critical_path},
    {"/", "search, dims the rest", search},
    {"escape", "forget selection, search, ruler", forget},
    {"k", "colour by kind, layer, ...", next_colour},
    {"e", "show lanes without tasks", toggle_idle},
    {"m", "hide or show memory", toggle_memory},
    {"t", "larger text", larger_text},
    {"b", "bright or dark", toggle_dark},
    {"i", "save the picture as a PNG", save_picture},
    {"l", "follow what runs", follow},
    {"space", "pause the training, go on", pause_trainer},
    {".", "let it run one task", one_task},
    {">", "let it run one step", one_step},
    {"[", "slow the training down", slower},
    {"]", "speed it up again", faster},
    {"h ?", "this help", toggle_help},
    {"q", "quit", quit},
};
const size_t n_actions = COUNT(actions);

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *w = words; *w;) {
        size_t n = strcspn(w, " ");
        if (n == length && strncmp(w, word, n) == 0)
            return true;
        w += n + strspn(w + n, " ");
    }
    return false;
}

static const struct action *find_action(const char *key)
{
    for (size_t i = 0; i < n_actions; i++)
        if (strcmp(key, "wheel") != 0 && has_word(actions[i].keys, key))
            return &actions[i];
    return NULL;
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
    say(v, "search: %s%s   %zu tasks of the list", v->search, v->typing ? "_" : "", count_matches(v));
}

void press_key(struct view *v, const char *key)
{
    const struct action *a = find_action(key);
    v->message[0] = '\0';
    if (v->typing)
        type_key(v, key);
    else if (v->help && a && a->run != quit)
        v->help = false;
    else if (a)
        a->run(v);
    lay_out(v);
}

/* ---- the mouse ------------------------------------------------------------------------------------------------- */

static bool is_inside(const struct box *b, int x, int y)
{
    return x >= b->x && x < b->x + b->w && y >= b->y && y < b->y + b->h;
}

static void drag(struct view *v, int x, int y)
{
    if (v->drag == DRAG_RULER)
        v->ruler[1] = axis_at(v, x);
    if (v->drag == DRAG_OVERVIEW)
        go_to_step(v, step_at_overview(v, x));
    if (v->drag == DRAG_ROWS && (x != v->mouse_x || y != v->mouse_y)) {
        pan(v, -(double)(x - v->mouse_x) / places_of(v).rows.w);
        v->scroll -= y - v->mouse_y;
        v->moved = true;
    }
}

void move_mouse(struct view *v, int x, int y)
{
    drag(v, x, y);
    v->mouse_x = x;
    v->mouse_y = y;
    lay_out(v);
    v->hover = pick_at(v, x, y);
}

void press_button(struct view *v, bool measure)
{
    struct places p = places_of(v);
    v->message[0] = '\0';
    v->moved = false;
    v->drag = is_inside(&p.overview, v->mouse_x, v->mouse_y) ? DRAG_OVERVIEW : measure ? DRAG_RULER : DRAG_ROWS;
    v->measuring |= v->drag == DRAG_RULER;
    if (v->drag == DRAG_RULER)
        v->ruler[0] = v->ruler[1] = axis_at(v, v->mouse_x);
    drag(v, v->mouse_x, v->mouse_y);
}

/* Without a movement in between it was a click. */
void release_button(struct view *v)
{
    if (v->drag == DRAG_ROWS && !v->moved)
        v->selected = pick_at(v, v->mouse_x, v->mouse_y);
    v->drag = DRAG_NOTHING;
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

static void type_word(struct view *v, const char *word)
{
    for (press_key(v, "/"); *word; word++)
        press_key(v, (char[]){*word, '\0'});
    press_key(v, "enter");
}

static void drag_mouse(struct view *v, const double at[4], bool measure)
{
    move_mouse(v, (int)at[0], (int)at[1]);
    press_button(v, measure);
    move_mouse(v, (int)at[2], (int)at[3]);
    release_button(v);
}

/* "click:600,300" and the like; false: it is none of them, or its numbers are not. */
static bool run_mouse(struct view *v, const char *word)
{
    double at[4];
    char tail;
    const char *numbers = strchr(word, ':');
    int n = numbers ? sscanf(numbers + 1, "%lf,%lf,%lf,%lf%c", &at[0], &at[1], &at[2], &at[3], &tail) : 0;
    for (int i = 0; i < n && i < 4; i++)
        if (!(fabs(at[i]) <= 1e6))
            return false;
    if (n == 2 && strncmp(word, "click:", 6) == 0)
        drag_mouse(v, (double[]){at[0], at[1], at[0], at[1]}, false);
    else if (n == 2 && strncmp(word, "move:", 5) == 0)
        move_mouse(v, (int)at[0], (int)at[1]);
    else if (n == 4 && strncmp(word, "drag:", 5) == 0)
        drag_mouse(v, at, false);
    else if (n == 4 && strncmp(word, "measure:", 8) == 0)
        drag_mouse(v, at, true);
    else if (n == 1 && strncmp(word, "wheel:", 6) == 0)
        turn_wheel(v, at[0], false);
    else
        return false;
    return true;
}

struct problem *run_script(struct view *v, const char *script)
{
    struct problem *wrong = NULL;
    char *words = copy_string(script), *rest = words, *word;
    lay_out(v);
    while (!wrong && (word = strtok_r(rest, " ", &rest))) {
        if (word[0] == '/' && word[1])
            type_word(v, word + 1);
        else if (find_action(word))
            press_key(v, word);
        else if (!run_mouse(v, word))
            wrong = new_problem(EXIT_USAGE,
                                "--script has \"%s\", which is no key, /word, click:X,Y, move:X,Y, "
                                "wheel:N, drag:X,Y,X,Y or measure:X,Y,X,Y; 'yard view --help' lists them",
                                word);
    }
    free(words);
    return wrong;
}
