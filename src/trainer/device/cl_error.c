/* cl_error.c - reports an OpenCL error by its name, with the call, its place in the source, and the likely cause. */
#include "driver.h"

/* clang-format off */
static const char *const names[] = { /* [n]: the name of code -n */
    [1] = "CL_DEVICE_NOT_FOUND", "CL_DEVICE_NOT_AVAILABLE", "CL_COMPILER_NOT_AVAILABLE",
    "CL_MEM_OBJECT_ALLOCATION_FAILURE", "CL_OUT_OF_RESOURCES", "CL_OUT_OF_HOST_MEMORY",
    "CL_PROFILING_INFO_NOT_AVAILABLE", "CL_MEM_COPY_OVERLAP", "CL_IMAGE_FORMAT_MISMATCH",
    "CL_IMAGE_FORMAT_NOT_SUPPORTED", "CL_BUILD_PROGRAM_FAILURE", "CL_MAP_FAILURE", "CL_MISALIGNED_SUB_BUFFER_OFFSET",
    "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", "CL_COMPILE_PROGRAM_FAILURE", "CL_LINKER_NOT_AVAILABLE",
    "CL_LINK_PROGRAM_FAILURE", "CL_DEVICE_PARTITION_FAILED", "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
    [30] = "CL_INVALID_VALUE", "CL_INVALID_DEVICE_TYPE", "CL_INVALID_PLATFORM", "CL_INVALID_DEVICE",
    "CL_INVALID_CONTEXT", "CL_INVALID_QUEUE_PROPERTIES", "CL_INVALID_COMMAND_QUEUE", "CL_INVALID_HOST_PTR",
    "CL_INVALID_MEM_OBJECT", "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR", "CL_INVALID_IMAGE_SIZE", "CL_INVALID_SAMPLER",
    "CL_INVALID_BINARY", "CL_INVALID_BUILD_OPTIONS", "CL_INVALID_PROGRAM", "CL_INVALID_PROGRAM_EXECUTABLE",
    "CL_INVALID_KERNEL_NAME", "CL_INVALID_KERNEL_DEFINITION", "CL_INVALID_KERNEL", "CL_INVALID_ARG_INDEX",
    "CL_INVALID_ARG_VALUE", "CL_INVALID_ARG_SIZE", "CL_INVALID_KERNEL_ARGS", "CL_INVALID_WORK_DIMENSION",
    "CL_INVALID_WORK_GROUP_SIZE", "CL_INVALID_WORK_ITEM_SIZE", "CL_INVALID_GLOBAL_OFFSET",
    "CL_INVALID_EVENT_WAIT_LIST", "CL_INVALID_EVENT", "CL_INVALID_OPERATION", "CL_INVALID_GL_OBJECT",
    "CL_INVALID_BUFFER_SIZE", "CL_INVALID_MIP_LEVEL", "CL_INVALID_GLOBAL_WORK_SIZE", "CL_INVALID_PROPERTY",
    "CL_INVALID_IMAGE_DESCRIPTOR", "CL_INVALID_COMPILER_OPTIONS", "CL_INVALID_LINKER_OPTIONS",
    "CL_INVALID_DEVICE_PARTITION_COUNT",
};

/* clang-format on */
/* Codes that OpenCL's own header does not have. */
enum {
    NO_PLATFORM = -1001, /* the loader's CL_PLATFORM_NOT_FOUND_KHR */
    BAD_ACCESS = -9999,  /* NVIDIA's driver returns it, and has no name for it */
};

static const struct {
    cl_int code;
    const char *text;
} likely_causes[] = {
    {CL_MEM_OBJECT_ALLOCATION_FAILURE,
     "the device has too little free memory: use a smaller --micro-batch or --device-mem"},
    {CL_OUT_OF_RESOURCES, "too little memory, or a kernel accessed memory that is not its own"},
    {CL_INVALID_KERNEL_NAME, "the .cl file has no kernel of that name"},
    {CL_INVALID_ARG_INDEX, "the kernel in the .cl file has fewer arguments than the task"},
    {CL_INVALID_ARG_SIZE, "the argument's type differs between the .cl file and the task"},
    {CL_INVALID_KERNEL_ARGS, "the kernel in the .cl file has more arguments than the task"},
    {NO_PLATFORM, "no OpenCL driver is installed: on Debian, apt-get install pocl-opencl-icd"},
    {BAD_ACCESS, "a kernel read or wrote memory that is not its own: try oclgrind"},
};

const char *cl_error_name(cl_int code)
{
    if (code == NO_PLATFORM)
        return "CL_PLATFORM_NOT_FOUND_KHR";
    bool known = code < 0 && code > -(cl_int)COUNT(names) && names[-code];
    return known ? names[-code] : "unknown OpenCL error";
}

void cl_check(cl_int code, const char *call, const char *file, int line)
{
    const char *cause = "";
    if (code == CL_SUCCESS)
        return;
    for (size_t i = 0; i < COUNT(likely_causes); i++)
        if (likely_causes[i].code == code)
            cause = likely_causes[i].text;
    fail(code == NO_PLATFORM ? EXIT_NO_DEVICE : EXIT_FAILED, "OpenCL error %s (%d) at %s:%d\n  in %s%s%s",
         cl_error_name(code), (int)code, file, line, call, *cause ? "\n  likely cause: " : "", cause);
}
