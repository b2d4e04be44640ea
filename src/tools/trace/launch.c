/* launch.c - starting the viewer on a trace, as a process of its own: it stays alive while a debugger stops this one.
 */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

char *private_trace(void)
{
    const char *const places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    size_t i = 0;
    while (i + 1 < COUNT(places) && (!places[i] || access(places[i], W_OK | X_OK) != 0))
        i++;
    return format_string("%s/yard-%ld.trace", places[i], (long)getpid());
}

/* The open file is handed on, as descriptor 3: its name may go at once.  A session of its own, so that a Ctrl-C meant
 * for the training leaves the window. */
static int spawn_viewer(int fd)
{
    enum { TRACE_FD = 3 };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid;
    char *binary = own_binary(), *arguments[] = {"yard", "view", "/dev/fd/3", NULL};
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0); /* not `| tee`'s */
    posix_spawn_file_actions_adddup2(&actions, fd, TRACE_FD);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    int error = posix_spawnp(&pid, binary ? binary : "yard", &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(binary);
    return error;
}

void show_trace(const char *path, bool remove)
{
    const char *why = NULL;
#ifndef HAVE_SDL2
    why = "this yard was built without SDL2, the library of windows: install it and run `make` again";
#elif !defined __APPLE__
    if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY") && !getenv("SDL_VIDEODRIVER"))
        why = "there is no display: DISPLAY and WAYLAND_DISPLAY are not set; --trace FILE keeps the trace, and `yard "
              "view FILE --png OUT` draws it";
#endif
    int fd = why ? -1 : open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    int error = why ? 0 : fd < 0 ? errno : spawn_viewer(fd);
    if (why || error)
        warn("--view shows nothing: %s%s", why ? why : "the viewer does not start: ", why ? "" : strerror(error));
    if (fd >= 0)
        close(fd);
    if (remove)
        unlink(path);
}
