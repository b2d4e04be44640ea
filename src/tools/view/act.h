/* act.h - what changes a view: keys, the mouse, a window that hands both on. */
#ifndef ACT_H
#define ACT_H

#include "pick.h"

/* ---- actions.c --------------------------------------------------------------------------------------------------- */

struct action {
    const char *keys; /* one name or two, with a space between: "f", "left a" */
    const char *help;
    void (*move)(struct view *view, double by); /* moves something by that amount; NULL: the key calls act() */
    double by;
    void (*act)(struct view *view);
};
extern const struct action actions[];
extern const size_t n_actions;
enum { KEYS_SIZE = 24 };
char *key_names(const struct action *action, char out[KEYS_SIZE]); /* "f", "left or a" */

/* Presses a key by its name: a character, or "left", "enter", ...; while a search is typed, characters go there. */
void press_key(struct view *view, const char *key);
void move_mouse(struct view *view, int x, int y);
enum shift_key { SHIFT_UP, SHIFT_DOWN };
void press_button(struct view *view, enum shift_key shift); /* at the mouse's place; SHIFT_DOWN: measures */
void release_button(struct view *view); /* it was a click if the mouse has not moved since press_button() */

/* Zooms at the mouse; SHIFT_DOWN: moves the rows. */
void turn_wheel(struct view *view, double notches, enum shift_key shift);

/* Presses keys and moves the mouse as a text says: "f k /mlp enter click:600,300". */
void run_script(struct view *view, const char *script);

/* ---- move.c: on a track with a board ----------------------------------------------------------------------------- */

/* A task is dragged: take_up(), carry_task() each time the view is drawn, then put_down() or call_off().
 *
 *     take_up()       begins to drag the picked task
 *     carry_task()    moves the task to the mouse; the list is simulated again if the place has changed.  It does
 *                     nothing unless a task is dragged
 *     put_down()      keeps the move, unless it was refused
 *     call_off()      puts the task back where it was */
void take_up(struct view *view, const struct pick *pick);
void carry_task(struct view *view);
void put_down(struct view *view);
void call_off(struct view *view);

/* Keys u and s: take back the last move that was kept, and write the list to a file.  The view's message says what came
 * of it. */
void undo_last_move(struct view *view);
void save_list(struct view *view);

/* ---- window.c ---------------------------------------------------------------------------------------------------- */

/* Shows the view until it is quit, with letters of a size that suits the screen. */
void show_window(struct view *view);

#endif
