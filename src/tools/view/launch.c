/* launch.c - starts the viewer on a trace that this process writes.  The viewer is a process of its own: so it stays
 * alive while a debugger stops this one. */
#include "launch.h"

#include "trainer/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

/* The viewer gets the open file as descriptor 3, so the file's name may be removed at once.  It runs in a session of
 * its own, so that a Ctrl-C meant for the training does not close the window. */
static int spawn_viewer(int fd)
{
    enum { TRACE_FD = 3 };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid;
    char *binary = own_binary();
    char *arguments[] = {"yard", "view", "/dev/fd/3", NULL};
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0); /* keep no pipe open */
    posix_spawn_file_actions_adddup2(&actions, fd, TRACE_FD);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    int error = posix_spawnp(&pid, binary ? binary : "yard", &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(binary);
    return error;
}

/* The reason why there can be no window, or NULL. */
static const char *why_no_window(void)
{
#ifndef HAVE_SDL2
    return "this yard was built without SDL2, the library of windows: install it and run `make` again";
#elif !defined __APPLE__
    if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY") && !getenv("SDL_VIDEODRIVER"))
        return "there is no display: DISPLAY and WAYLAND_DISPLAY are not set; --trace FILE keeps the trace, and `yard "
               "view FILE --png OUT` draws it";
#endif
    return NULL;
}

/* Returns 0, or an errno. */
static int open_and_spawn(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno;
    int error = spawn_viewer(fd);
    close(fd);
    return error;
}

void start_viewer(const char *path)
{
    const char *why = why_no_window();
    if (why) {
        warn("--view shows nothing: %s", why);
    } else {
        int error = open_and_spawn(path);
        if (error)
            warn("--view shows nothing: the viewer does not start: %s", strerror(error));
    }
}
