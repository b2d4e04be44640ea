/* window.c - a view in a window: SDL2's part, and nobody else's.
 *
 * The canvas is the window: a streaming texture that is copied as it is, by SDL's software renderer, so that a window
 * shows what a PNG does.  Drawn again only when something has changed; while the trainer lives its ring is polled ten
 * times a second, which also renews a pause (see trace/follow.h).
 */
#define SDL_MAIN_HANDLED
#include <SDL.h>

#include "view.h"

#include <stdlib.h>
#include <string.h>

enum { POLL_MS = 100, FINE_DPI = 168 };

struct window {
    struct view *view;
    SDL_Window *window;
    SDL_Renderer *renderer;
    SDL_Texture *texture; /* of the canvas's size */
    struct canvas *canvas;
    double ratio; /* pixels per unit of the mouse */
};

/* ---- opening --------------------------------------------------------------------------------------------------- */

/* Small pixels, but the system does not scale: then we do. */
static bool has_fine_pixels(void)
{
    float dpi = 0;
    return SDL_GetDisplayDPI(0, NULL, &dpi, NULL) == 0 && dpi >= FINE_DPI;
}

static bool make_canvas(struct window *w)
{
    int width, height, units;
    SDL_GetWindowSize(w->window, &units, NULL);
    if (SDL_GetRendererOutputSize(w->renderer, &width, &height) != 0 || width < 1 || height < 1)
        return false;
    if (w->canvas)
        free_canvas(w->canvas);
    if (w->texture)
        SDL_DestroyTexture(w->texture);
    w->canvas = new_canvas(width, height);
    w->texture = SDL_CreateTexture(w->renderer, SDL_PIXELFORMAT_ARGB8888, SDL_TEXTUREACCESS_STREAMING, width, height);
    w->ratio = units > 0 ? (double)width / units : 1;
    w->view->width = width;
    w->view->height = height;
    return w->texture;
}

static bool open_window(struct window *w, bool choose_scale)
{
    struct view *v = w->view;
    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
    SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
    if (SDL_Init(SDL_INIT_VIDEO) != 0)
        return false;
    if (!getenv("SDL_VIDEODRIVER") && strcmp(SDL_GetCurrentVideoDriver(), "offscreen") == 0) {
        SDL_SetError("there is no display"); /* SDL would draw for nobody */
        return false;
    }
    int times = choose_scale && has_fine_pixels() ? 2 : 1;
    char *title = format_string("yard view: %s", v->track[0]->trace->header.model);
    w->window = SDL_CreateWindow(title, SDL_WINDOWPOS_UNDEFINED, SDL_WINDOWPOS_UNDEFINED, v->width * times,
                                 v->height * times, SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI);
    free(title);
    w->renderer = w->window ? SDL_CreateRenderer(w->window, -1, SDL_RENDERER_SOFTWARE) : NULL;
    if (!w->renderer || !make_canvas(w))
        return false;
    SDL_SetWindowMinimumSize(w->window, LEAST_WIDTH, LEAST_HEIGHT);
    if (choose_scale)
        v->scale = times == 2 || w->ratio >= 1.5 ? 2 : 1;
    SDL_StartTextInput();
    return true;
}

static void close_window(struct window *w)
{
    if (w->canvas)
        free_canvas(w->canvas);
    SDL_DestroyTexture(w->texture);
    SDL_DestroyRenderer(w->renderer);
    SDL_DestroyWindow(w->window);
    SDL_Quit();
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* Keys that type no character; the others come as text, as the user's keyboard has them. */
static const char *name_of_key(SDL_Keycode key)
{
    static const struct {
        SDL_Keycode key;
        const char *name;
    } names[] = {{SDLK_LEFT, "left"},         {SDLK_RIGHT, "right"},        {SDLK_UP, "up"},
                 {SDLK_DOWN, "down"},         {SDLK_HOME, "home"},          {SDLK_PAGEUP, "pageup"},
                 {SDLK_RETURN, "enter"},      {SDLK_KP_ENTER, "enter"},     {SDLK_ESCAPE, "escape"},
                 {SDLK_PAGEDOWN, "pagedown"}, {SDLK_BACKSPACE, "backspace"}};
    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i].key == key)
            return names[i].name;
    return NULL;
}

static void take_mouse(struct window *w, const SDL_Event *e)
{
    bool shift = SDL_GetModState() & KMOD_SHIFT;
    if (e->type == SDL_MOUSEMOTION)
        move_mouse(w->view, (int)(e->motion.x * w->ratio), (int)(e->motion.y * w->ratio));
    else if (e->type == SDL_MOUSEBUTTONDOWN && e->button.button == SDL_BUTTON_LEFT)
        press_button(w->view, shift);
    else if (e->type == SDL_MOUSEBUTTONUP && e->button.button == SDL_BUTTON_LEFT)
        release_button(w->view);
    else if (e->type == SDL_MOUSEWHEEL)
        turn_wheel(w->view, e->wheel.y, shift);
}

static void take_event(struct window *w, const SDL_Event *e)
{
    const char *name = e->type == SDL_KEYDOWN ? name_of_key(e->key.keysym.sym) : NULL;
    if (e->type == SDL_QUIT)
        w->view->quit = true;
    else if (name)
        press_key(w->view, name);
    else if (e->type == SDL_TEXTINPUT)
        press_key(w->view, strcmp(e->text.text, " ") == 0 ? "space" : e->text.text);
    else if (e->type == SDL_WINDOWEVENT && e->window.event == SDL_WINDOWEVENT_SIZE_CHANGED)
        make_canvas(w);
    else
        take_mouse(w, e);
}

/* Waits for an event, or for the next poll while there is something to follow; takes all that have come. */
static bool take_events(struct window *w, bool followed)
{
    SDL_Event e;
    bool any = followed ? SDL_WaitEventTimeout(&e, POLL_MS) : SDL_WaitEvent(&e);
    if (any)
        do
            take_event(w, &e);
        while (SDL_PollEvent(&e));
    return any;
}

/* ---- drawing --------------------------------------------------------------------------------------------------- */

static void show(struct window *w)
{
    draw_view(w->view, w->canvas);
    SDL_UpdateTexture(w->texture, NULL, w->canvas->pixels, w->canvas->width * (int)sizeof *w->canvas->pixels);
    SDL_RenderCopy(w->renderer, w->texture, NULL, NULL);
    SDL_RenderPresent(w->renderer);
}

struct problem *show_window(struct view *v, bool choose_scale)
{
    struct window w = {.view = v};
    struct problem *wrong = NULL;
    if (open_window(&w, choose_scale)) {
        uint64_t polled = 0;
        bool followed = true;
        show(&w);
        while (!v->quit) {
            bool changed = take_events(&w, followed);
            if (followed && now_ns() - polled >= POLL_MS * UINT64_C(1000000)) {
                followed = is_followed(v); /* before the poll, which so takes the last that there is */
                changed |= poll_view(v);
                polled = now_ns();
            }
            if (changed)
                show(&w);
        }
    } else {
        wrong = new_problem(EXIT_IO, "cannot open a window: %s; yard view FILE --png OUT.png writes a picture instead",
                            SDL_GetError());
    }
    close_window(&w);
    return wrong;
}
