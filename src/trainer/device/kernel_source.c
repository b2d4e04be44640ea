/* kernel_source.c - finds the source of a kernel: a file of the folder cl, or what the program carries with it. */
#include "driver.h"
#include "trainer/base/embedded.h"
#include "trainer/file/file.h"
#include <unistd.h>

/* The path of a file in the folder cl beside the binary, for a build tree that is run from elsewhere; NULL: it is not
 * there.  The caller frees it. */
static char *path_beside_binary(const char *file)
{
    char *binary = own_binary(), *path = NULL;
    char *slash = binary ? strrchr(binary, '/') : NULL;
    if (slash)
        path = format_string("%.*s/cl/%s", (int)(slash - binary), binary, file);
    free(binary);
    if (path && access(path, F_OK) != 0) {
        free(path);
        return NULL;
    }
    return path;
}

char *kernel_source(const char *file, char **path)
{
    const char *folder = getenv("YARD_KERNELS");
    const struct embedded_file *embedded = embedded_kernels;
    *path = join_path(folder ? folder : "cl", file);
    if (!folder && access(*path, F_OK) != 0) {
        char *beside = path_beside_binary(file);
        if (beside) {
            free(*path);
            *path = beside;
        }
    }
    if (access(*path, F_OK) == 0) {
        claim_input("the kernel compiler", *path);
        return read_text(*path);
    }
    if (folder)
        fail(EXIT_IO, "YARD_KERNELS: cannot read %s; the folder needs every file of cl/", *path);
    while (embedded->name && strcmp(embedded->name, file) != 0)
        embedded++;
    if (!embedded->name)
        fail(EXIT_IO, "the kernel file %s is neither in ./cl nor in this program", file);
    return copy_string(embedded->text);
}
