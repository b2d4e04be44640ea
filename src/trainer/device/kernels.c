/* kernels.c - makes kernels from .cl files.
 *
 * A .cl file is read at run time, so that a student edits it and runs again without make; the copy embedded in the
 * binary serves when no folder is found.  cl/shared.h and cl/common.cl are put before each file.  `#line` directives
 * make build logs, gdb and oclgrind speak of the .cl file and its own line numbers.
 */
#include "driver.h"

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* Ends the program with the compiler's log. */
static _Noreturn void fail_to_compile(const struct device *device, cl_program program, const char *path, cl_int code)
{
    size_t bytes = 0;
    check_kernel_cache(platform_of(device), EXIT_IO);
    clGetProgramBuildInfo(program, device->cl, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *log = allocate(bytes + 1, 1);
    clGetProgramBuildInfo(program, device->cl, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    fail(EXIT_FAILED, "%s does not compile for %s (%s):\n%s", path, device->id, cl_error_name(code), log);
}

/* Compiles a program.  path: that of its .cl file, for errors. */
static cl_program compile(const struct device *device, const char *text, const char *options, const char *path)
{
    cl_program program;
    CL_MAKE(err, program = clCreateProgramWithSource(device->context->cl, 1, &text, NULL, &err));
    cl_int code = clBuildProgram(program, 0, NULL, options, NULL, NULL);
    if (code != CL_SUCCESS)
        fail_to_compile(device, program, path, code);
    return program;
}

static cl_program build_program(struct device *device, const char *file)
{
    const char *const parts[] = {"shared.h", "common.cl", file};
    char *path = NULL, *text = NULL;
    for (size_t i = 0; i < COUNT(parts); i++) {
        free(path);
        char *part = kernel_source(parts[i], &path);
        append_text(&text, "#line 1 \"%s\"\n%s\n", path, part);
        free(part);
    }
    const char *extra = getenv("YARD_BUILD_OPTIONS");
    /* -w: no warnings.  PoCL prints only their number, and newer compilers warn of loops that they unroll late. */
    char *options = format_string(
        "-cl-std=CL1.2 -w -D VEC=%u -D WG=%u -D ROWS=%u -D COLS=%u -D ON_CPU=%d%s %s", device->shape.vector,
        device->shape.work_group, device->shape.tile_rows, device->shape.tile_vectors, device->is_cpu,
        device->extra.quirks.correct_divide ? " -cl-fp32-correctly-rounded-divide-sqrt" : "", extra ? extra : "");
    struct cache_entry entry = make_cache_entry(device, options, text);
    cl_program program = load_program(device, &entry, options);
    if (!program) {
        program = compile(device, text, options, path);
        keep_program(device, &entry, program);
    }
    free(path);
    free(text);
    free(options);
    free(entry.path);
    return program;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

cl_kernel new_kernel(struct device *device, const char *file, const char *name)
{
    struct context *context = device->context; /* devices of a context are of one kind: a program serves all of them */
    size_t i = 0;
    while (i < context->n_programs && strcmp(context->programs[i].file, file) != 0)
        i++;
    if (i == context->n_programs) {
        struct program program = {copy_string(file), build_program(device, file)};
        GROW(context->programs, context->cap_programs, context->n_programs + 1);
        context->programs[context->n_programs++] = program;
    }
    cl_int code;
    cl_kernel kernel = clCreateKernel(context->programs[i].cl, name, &code);
    if (code != CL_SUCCESS)
        fail(EXIT_FAILED, "kernel %s in cl/%s: %s (%d)", name, file, cl_error_name(code), (int)code);
    return kernel;
}
