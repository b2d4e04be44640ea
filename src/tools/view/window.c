/* window.c - a view in a window.  It is the only file that uses SDL2.
 *
 * The canvas is the window's own surface, so that a window shows what a PNG does, and nothing is copied on the way.  It
 * is drawn again only when something has changed.  The trainer's ring is polled five times a second, which also renews
 * a pause (see trace/follow.h).  The training comes first: this process has a lower priority.
 */
#ifdef HAVE_SDL2 /* else view.c has the sentence */
#define SDL_MAIN_HANDLED
#include <SDL.h>

#include "act.h"
#include "draw.h"

#include <ctype.h>
#include <sys/resource.h>

enum { POLL_MS = 200, NICE = 10, FINE_DPI = 168 };

struct view_window {
    struct view *view;
    SDL_Window *window;
    SDL_Surface *surface; /* the window's surface */
    SDL_Surface *drawn;   /* the surface that is drawn on: the window's, if its pixels have the canvas's format */
    double ratio;         /* pixels per unit of the mouse */
};

/* ---- opening --------------------------------------------------------------------------------------------------- */

/* Finds the window's surface again when the window's size has changed.  Returns false where there is none. */
static bool find_surface(struct view_window *w)
{
    int units;
    SDL_GetWindowSize(w->window, &units, NULL);
    if (w->drawn != w->surface)
        SDL_FreeSurface(w->drawn);
    w->surface = SDL_GetWindowSurface(w->window);
    w->drawn = w->surface;
    if (!w->surface)
        return false;
    int width = w->surface->w, height = w->surface->h;
    if (w->surface->format->format != SDL_PIXELFORMAT_RGB888 || w->surface->pitch != 4 * width)
        w->drawn = SDL_CreateRGBSurfaceWithFormat(0, width, height, 32, SDL_PIXELFORMAT_RGB888);
    w->ratio = units > 0 ? (double)width / units : 1;
    w->view->width = width;
    w->view->height = height;
    return w->drawn;
}

static bool open_window(struct view_window *w)
{
    struct view *v = w->view;
    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
    SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
    SDL_SetHint(SDL_HINT_FRAMEBUFFER_ACCELERATION, "0"); /* plain pixels: OpenGL without a GPU costs far more */
    if (SDL_Init(SDL_INIT_VIDEO) != 0)
        return false;
    if (!getenv("SDL_VIDEODRIVER") && strcmp(SDL_GetCurrentVideoDriver(), "offscreen") == 0) {
        SDL_SetError("there is no display"); /* else SDL would draw where nobody can see it */
        return false;
    }
    float dpi = 0; /* where pixels are small and the system does not scale, the view does */
    int times = 1;
    if (SDL_GetDisplayDPI(0, NULL, &dpi, NULL) == 0 && dpi >= FINE_DPI)
        times = 2;
    char *title = format_string("yard view: %s", v->track[0]->trace->header.model);
    w->window = SDL_CreateWindow(title, SDL_WINDOWPOS_UNDEFINED, SDL_WINDOWPOS_UNDEFINED, v->width * times,
                                 v->height * times, SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI);
    free(title);
    if (!w->window || !find_surface(w))
        return false;
    SDL_SetWindowMinimumSize(w->window, LEAST_WIDTH, LEAST_HEIGHT);
    v->scale = times == 2 || w->ratio >= 1.5 ? 2 : 1;
    SDL_StartTextInput();
    return true;
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* The name of a key that types no character, or NULL.  The other keys come as text, in the user's keyboard layout. */
static const char *name_of_key(SDL_Keycode key, char name[32])
{
    size_t n = 0;
    for (const char *c = SDL_GetKeyName(key); *c && n < 31; c++)
        name[n++] = (char)tolower((unsigned char)*c);
    name[n] = '\0';
    if (key == SDLK_RETURN || key == SDLK_KP_ENTER)
        return "enter";
    bool types = n <= 1 || key == SDLK_SPACE || strncmp(name, "keypad", 6) == 0;
    return types ? NULL : name;
}

static void take_window_event(struct view_window *w, const SDL_WindowEvent *e)
{
    if (e->event == SDL_WINDOWEVENT_SIZE_CHANGED)
        find_surface(w);
    else if (e->event == SDL_WINDOWEVENT_LEAVE && w->view->mouse.drag == DRAG_NOTHING)
        move_mouse(w->view, OFF_WINDOW, OFF_WINDOW);
}

static void take_event(struct view_window *w, const SDL_Event *e)
{
    char text[32];
    const char *name = e->type == SDL_KEYDOWN ? name_of_key(e->key.keysym.sym, text) : NULL;
    const bool shift = SDL_GetModState() & KMOD_SHIFT;
    if (e->type == SDL_QUIT)
        w->view->quit = true;
    else if (name)
        press_key(w->view, name);
    else if (e->type == SDL_TEXTINPUT)
        press_key(w->view, strcmp(e->text.text, " ") == 0 ? "space" : e->text.text);
    else if (e->type == SDL_WINDOWEVENT)
        take_window_event(w, &e->window);
    else if (e->type == SDL_MOUSEMOTION && (e->motion.xrel || e->motion.yrel)) /* not when the window opens there */
        move_mouse(w->view, (int)(e->motion.x * w->ratio), (int)(e->motion.y * w->ratio));
    else if (e->type == SDL_MOUSEBUTTONDOWN && e->button.button == SDL_BUTTON_LEFT)
        press_button(w->view, shift);
    else if (e->type == SDL_MOUSEBUTTONUP && e->button.button == SDL_BUTTON_LEFT)
        release_button(w->view);
    else if (e->type == SDL_MOUSEWHEEL)
        turn_wheel(w->view, e->wheel.y, shift);
}

/* ---- drawing --------------------------------------------------------------------------------------------------- */

static void draw_window(struct view_window *w)
{
    struct canvas c = {w->drawn->w, w->drawn->h, w->drawn->pixels};
    draw_view(w->view, &c);
    if (w->drawn != w->surface)
        SDL_BlitSurface(w->drawn, NULL, w->surface, NULL);
    SDL_UpdateWindowSurface(w->window);
}

static void run_window(struct view_window *w)
{
    uint64_t polled = 0;
    bool changed = true;
    while (!w->view->quit) {
        if (changed)
            draw_window(w);
        SDL_Event e;
        changed = SDL_WaitEventTimeout(&e, POLL_MS);
        for (bool more = changed; more; more = SDL_PollEvent(&e)) /* all that have come */
            take_event(w, &e);
        if (now_ns() - polled >= POLL_MS * UINT64_C(1000000)) {
            changed |= poll_view(w->view);
            polled = now_ns();
        }
    }
}

void show_window(struct view *v)
{
    struct view_window w = {.view = v};
    if (!open_window(&w))
        fail(EXIT_IO, "cannot open a window: %s; yard view FILE --png OUT.png writes a picture instead",
             SDL_GetError());
    setpriority(PRIO_PROCESS, 0, NICE);
    run_window(&w);
    if (w.drawn != w.surface)
        SDL_FreeSurface(w.drawn);
    SDL_DestroyWindow(w.window);
    SDL_Quit();
}
#endif
