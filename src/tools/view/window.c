/* window.c - a view in a window.  It is the only file that uses SDL2.
 *
 * The canvas is the window's own surface, so that a window shows what a PNG does, and nothing is copied on the way.  It
 * is drawn again only when something has changed.  The trainer's ring is polled five times a second, which also renews
 * a pause (see trace/follow.h).  The training comes first: this process has a lower priority.
 */
#include "act.h"
#include "draw.h"

#ifdef HAVE_SDL2
#define SDL_MAIN_HANDLED
#include <SDL.h>
#include <ctype.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { POLL_MS = 200, NICE = 10, FINE_DPI = 168 };

struct view_window {
    struct view *view;
    SDL_Window *window;
    SDL_Surface *surface; /* the window's surface */
    SDL_Surface *drawn;   /* the surface that is drawn on: the window's, if its pixels have the canvas's format */
    double ratio;         /* pixels per unit of the mouse */
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Finds the window's surface again when the window's size has changed.  Returns false where there is none. */
static bool renew_surface(struct view_window *window)
{
    int units;
    SDL_GetWindowSize(window->window, &units, NULL);
    if (window->drawn != window->surface)
        SDL_FreeSurface(window->drawn);
    window->surface = SDL_GetWindowSurface(window->window);
    window->drawn = window->surface;
    if (!window->surface)
        return false;
    int width = window->surface->w, height = window->surface->h;
    if (window->surface->format->format != SDL_PIXELFORMAT_RGB888 || window->surface->pitch != 4 * width)
        window->drawn = SDL_CreateRGBSurfaceWithFormat(0, width, height, 32, SDL_PIXELFORMAT_RGB888);
    window->ratio = units > 0 ? (double)width / units : 1;
    window->view->width = width;
    window->view->height = height;
    return window->drawn;
}

/* Libraries below SDL tell stderr what they miss; SDL_GetError() has it too, and the caller says it. */
static bool start_sdl(void)
{
    int terminal = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool is_quiet = terminal >= 0 && nowhere >= 0;
    if (is_quiet)
        dup2(nowhere, STDERR_FILENO);
    bool started = SDL_Init(SDL_INIT_VIDEO) == 0;
    if (is_quiet)
        dup2(terminal, STDERR_FILENO);
    if (terminal >= 0)
        close(terminal);
    if (nowhere >= 0)
        close(nowhere);
    return started;
}

static bool open_window(struct view_window *window)
{
    struct view *view = window->view;
    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
    SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
    SDL_SetHint(SDL_HINT_FRAMEBUFFER_ACCELERATION, "0"); /* plain pixels: OpenGL without a GPU costs far more */
    if (!start_sdl())
        return false;
    if (!getenv("SDL_VIDEODRIVER") && strcmp(SDL_GetCurrentVideoDriver(), "offscreen") == 0) {
        SDL_SetError("there is no display"); /* else SDL would draw where nobody can see it */
        return false;
    }
    float dpi = 0; /* where pixels are small and the system does not scale, the view does */
    int times = 1;
    if (SDL_GetDisplayDPI(0, NULL, &dpi, NULL) == 0 && dpi >= FINE_DPI)
        times = 2;
    char *title = format_string("yard view: %s", view->tracks[0]->trace->header.model);
    window->window = SDL_CreateWindow(title, SDL_WINDOWPOS_UNDEFINED, SDL_WINDOWPOS_UNDEFINED, view->width * times,
                                      view->height * times, SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI);
    free(title);
    if (!window->window || !renew_surface(window))
        return false;
    SDL_SetWindowMinimumSize(window->window, LEAST_WIDTH, LEAST_HEIGHT);
    view->scale = times == 2 || window->ratio >= 1.5 ? 2 : 1;
    SDL_StartTextInput();
    return true;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* The name of a key that types no character, or NULL.  The other keys come as text, in the user's keyboard layout. */
static const char *name_of_key(SDL_Keycode key, char name[32])
{
    size_t n = 0;
    for (const char *character = SDL_GetKeyName(key); *character && n < 31; character++)
        name[n++] = (char)tolower((unsigned char)*character);
    name[n] = '\0';
    if (key == SDLK_RETURN || key == SDLK_KP_ENTER)
        return "enter";
    bool types = n <= 1 || key == SDLK_SPACE || strncmp(name, "keypad", 6) == 0;
    return types ? NULL : name;
}

static void take_window_event(struct view_window *window, const SDL_WindowEvent *event)
{
    if (event->event == SDL_WINDOWEVENT_SIZE_CHANGED)
        renew_surface(window);
    else if (event->event == SDL_WINDOWEVENT_LEAVE && window->view->mouse.drag == DRAG_NOTHING)
        move_mouse(window->view, OFF_WINDOW, OFF_WINDOW);
}

static void take_event(struct view_window *window, const SDL_Event *event)
{
    char text[32];
    const char *name = event->type == SDL_KEYDOWN ? name_of_key(event->key.keysym.sym, text) : NULL;
    enum shift_key shift = SDL_GetModState() & KMOD_SHIFT ? SHIFT_DOWN : SHIFT_UP;
    if (event->type == SDL_QUIT)
        window->view->quit = true;
    else if (name)
        press_key(window->view, name);
    else if (event->type == SDL_TEXTINPUT)
        press_key(window->view, strcmp(event->text.text, " ") == 0 ? "space" : event->text.text);
    else if (event->type == SDL_WINDOWEVENT)
        take_window_event(window, &event->window);
    else if (event->type == SDL_MOUSEMOTION && (event->motion.xrel || event->motion.yrel))
        /* SDL tells of a motion of no pixels when the window opens under the mouse. */
        move_mouse(window->view, (int)(event->motion.x * window->ratio), (int)(event->motion.y * window->ratio));
    else if (event->type == SDL_MOUSEBUTTONDOWN && event->button.button == SDL_BUTTON_LEFT)
        press_button(window->view, shift);
    else if (event->type == SDL_MOUSEBUTTONUP && event->button.button == SDL_BUTTON_LEFT)
        release_button(window->view);
    else if (event->type == SDL_MOUSEWHEEL)
        turn_wheel(window->view, event->wheel.y, shift);
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static void draw_window(struct view_window *window)
{
    struct canvas canvas = {window->drawn->w, window->drawn->h, window->drawn->pixels};
    draw_view(window->view, &canvas);
    if (window->drawn != window->surface)
        SDL_BlitSurface(window->drawn, NULL, window->surface, NULL);
    SDL_UpdateWindowSurface(window->window);
}

static void run_window(struct view_window *window)
{
    uint64_t polled = 0;
    bool changed = true;
    while (!window->view->quit) {
        if (changed)
            draw_window(window);
        SDL_Event event;
        changed = SDL_WaitEventTimeout(&event, POLL_MS);
        for (bool more = changed; more; more = SDL_PollEvent(&event)) /* all that have come */
            take_event(window, &event);
        if (now_ns() - polled >= POLL_MS * UINT64_C(1000000)) {
            changed |= poll_view(window->view);
            polled = now_ns();
        }
    }
}

void show_window(struct view *view)
{
    struct view_window window = {.view = view};
    if (!open_window(&window))
        fail(EXIT_IO, "cannot open a window: %s; `yard view FILE --png OUT.png` writes a picture instead",
             SDL_GetError());
    setpriority(PRIO_PROCESS, 0, NICE);
    run_window(&window);
    if (window.drawn != window.surface)
        SDL_FreeSurface(window.drawn);
    SDL_DestroyWindow(window.window);
    SDL_Quit();
}

#else

void show_window(struct view *view)
{
    (void)view;
    fail(EXIT_USAGE, "this yard was built without SDL2, so it opens no window: install SDL2 (Debian: libsdl2-dev) and "
                     "build again, or write a picture with `yard view FILE --png OUT.png`");
}

#endif
