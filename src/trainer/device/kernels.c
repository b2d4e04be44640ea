/* kernels.c - .cl files become kernels.
 *
 * A .cl file is read at run time, so that a student edits it and runs again without make; the copy embedded in the
 * binary serves when no folder is found.  cl/shared.h and cl/common.cl are put before each file.  `#line` directives
 * make build logs, gdb and oclgrind speak of the .cl file and its own line numbers.
 */
#include "device.h"

#include "trainer/base/embedded.h"
#include "trainer/file/file.h"

#include <unistd.h>

/* ---- finding the source ---------------------------------------------------------------------------------------- */

/* The text of cl/<file> and, in *path, where it came from (the caller frees both): of a folder that was asked for, or
 * else of ./cl, or of that beside the binary, for a build tree that is run from elsewhere. */
static char *kernel_source(const char *file, char **path)
{
    const char *folder = getenv("YARD_KERNELS");
    const struct embedded_file *embedded = embedded_kernels;
    char *binary = own_binary(), *slash = binary ? strrchr(binary, '/') : NULL;
    *path = format_string("%s/%s", folder ? folder : "cl", file);
    if (!folder && access(*path, F_OK) != 0 && slash) {
        char *beside = format_string("%.*s/cl/%s", (int)(slash - binary), binary, file);
        if (access(beside, F_OK) == 0) {
            free(*path);
            *path = beside;
        } else
            free(beside);
    }
    free(binary);
    if (access(*path, F_OK) == 0) {
        claim_input("the kernel compiler", *path);
        return read_text(*path);
    }
    if (folder)
        fail(EXIT_IO, "YARD_KERNELS: cannot read %s; the folder needs every file of cl/", *path);
    while (embedded->name && strcmp(embedded->name, file) != 0)
        embedded++;
    if (!embedded->name)
        fail(EXIT_IO, "no kernel file %s in ./cl, nor in the binary", file);
    return copy_string(embedded->text);
}

/* ---- building -------------------------------------------------------------------------------------------------- */

static cl_program build_program(struct device *d, const char *file)
{
    const char *const parts[] = {"shared.h", "common.cl", file}; /* each under its own name */
    char options[512], *path = NULL, *text = NULL;
    for (size_t i = 0; i < COUNT(parts); i++) {
        free(path);
        char *part = kernel_source(parts[i], &path);
        append_text(&text, "#line 1 \"%s\"\n%s\n", path, part);
        free(part);
    }
    const char *extra = getenv("YARD_BUILD_OPTIONS");
    /* No warnings (-w): PoCL prints how many there are and not which, and newer compilers warn of each loop that they
     * unroll later than asked. */
    snprintf(options, sizeof options, "-cl-std=CL1.2 -w -D VEC=%u -D WG=%u -D ROWS=%u -D COLS=%u -D ON_CPU=%d%s %s",
             d->vector, d->work_group, d->tile_rows, d->tile_vectors, d->is_cpu,
             d->correct_divide ? " -cl-fp32-correctly-rounded-divide-sqrt" : "", extra ? extra : "");
    char *entry = cache_entry(d, options, text);
    cl_program program = load_program(d, entry, options);
    if (!program) {
        CL_MAKE(program = clCreateProgramWithSource(d->context->cl, 1, (const char *[]){text}, NULL, &err));
        cl_int code = clBuildProgram(program, 0, NULL, options, NULL, NULL);
        if (code != CL_SUCCESS) {
            check_kernel_cache(platform_of(d), EXIT_IO);
            size_t bytes = 0;
            clGetProgramBuildInfo(program, d->cl, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
            char *log = allocate(bytes + 1, 1);
            clGetProgramBuildInfo(program, d->cl, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
            fail(EXIT_FAILED, "%s does not compile for %s (%s):\n%s", path, d->id, cl_error_name(code), log);
        }
        keep_program(d, entry, program);
    }
    free(path), free(text), free(entry);
    return program;
}

cl_kernel make_kernel(struct device *d, const char *file, const char *kernel)
{
    struct context *c = d->context; /* its devices are of one kind, so a program built for all of them serves each */
    size_t i = 0;
    while (i < c->n_programs && strcmp(c->programs[i].file, file) != 0)
        i++;
    if (i == c->n_programs) {
        struct program p = {copy_string(file), build_program(d, file)};
        *APPEND(c->programs, c->n_programs, c->cap_programs) = p;
    }
    cl_int code;
    cl_kernel k = clCreateKernel(c->programs[i].cl, kernel, &code);
    if (code != CL_SUCCESS)
        fail(EXIT_FAILED, "kernel %s in cl/%s: %s (%d)", kernel, file, cl_error_name(code), (int)code);
    return k;
}
