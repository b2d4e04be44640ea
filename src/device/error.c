/* error.c - OpenCL errors with their names, the call, the place and the likely cause. */
#include "device.h"

#include <string.h>

#define NAME(code)                                                                                                     \
    {                                                                                                                  \
        code, #code, NULL                                                                                              \
    }
static const struct {
    cl_int code;
    const char *name, *hint;
} errors[] = {
    {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND", "no device of that kind: run `yard devices`"},
    NAME(CL_DEVICE_NOT_AVAILABLE),
    NAME(CL_COMPILER_NOT_AVAILABLE),
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE",
     "the device has too little free memory: use a smaller --micro-batch or --device-mem"},
    {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES", "too little memory, or a kernel accessed memory that is not its own"},
    {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY", "the host has too little free memory"},
    NAME(CL_PROFILING_INFO_NOT_AVAILABLE),
    NAME(CL_MEM_COPY_OVERLAP),
    NAME(CL_IMAGE_FORMAT_MISMATCH),
    NAME(CL_IMAGE_FORMAT_NOT_SUPPORTED),
    NAME(CL_BUILD_PROGRAM_FAILURE),
    NAME(CL_MAP_FAILURE),
    {CL_MISALIGNED_SUB_BUFFER_OFFSET, "CL_MISALIGNED_SUB_BUFFER_OFFSET",
     "a tensor does not start on the device's base alignment"},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
     "a task that this one waits for has failed"},
    NAME(CL_COMPILE_PROGRAM_FAILURE),
    NAME(CL_LINKER_NOT_AVAILABLE),
    NAME(CL_LINK_PROGRAM_FAILURE),
    NAME(CL_DEVICE_PARTITION_FAILED),
    NAME(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
    NAME(CL_INVALID_VALUE),
    NAME(CL_INVALID_DEVICE_TYPE),
    NAME(CL_INVALID_PLATFORM),
    NAME(CL_INVALID_DEVICE),
    {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT", "objects of two contexts were mixed"},
    NAME(CL_INVALID_QUEUE_PROPERTIES),
    NAME(CL_INVALID_COMMAND_QUEUE),
    NAME(CL_INVALID_HOST_PTR),
    NAME(CL_INVALID_MEM_OBJECT),
    NAME(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
    NAME(CL_INVALID_IMAGE_SIZE),
    NAME(CL_INVALID_SAMPLER),
    NAME(CL_INVALID_BINARY),
    {CL_INVALID_BUILD_OPTIONS, "CL_INVALID_BUILD_OPTIONS", "this driver does not know a compiler option"},
    NAME(CL_INVALID_PROGRAM),
    NAME(CL_INVALID_PROGRAM_EXECUTABLE),
    {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME", "the .cl file has no kernel of that name"},
    NAME(CL_INVALID_KERNEL_DEFINITION),
    NAME(CL_INVALID_KERNEL),
    {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX", "the kernel in the .cl file has fewer arguments than the task"},
    NAME(CL_INVALID_ARG_VALUE),
    {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE", "the argument's type differs between the .cl file and the task"},
    {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS", "the kernel in the .cl file has more arguments than the task"},
    NAME(CL_INVALID_WORK_DIMENSION),
    {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE", "the device allows fewer work-items per group"},
    NAME(CL_INVALID_WORK_ITEM_SIZE),
    NAME(CL_INVALID_GLOBAL_OFFSET),
    NAME(CL_INVALID_EVENT_WAIT_LIST),
    NAME(CL_INVALID_EVENT),
    NAME(CL_INVALID_OPERATION),
    NAME(CL_INVALID_GL_OBJECT),
    NAME(CL_INVALID_BUFFER_SIZE),
    NAME(CL_INVALID_MIP_LEVEL),
    NAME(CL_INVALID_GLOBAL_WORK_SIZE),
    NAME(CL_INVALID_PROPERTY),
    NAME(CL_INVALID_IMAGE_DESCRIPTOR),
    NAME(CL_INVALID_COMPILER_OPTIONS),
    NAME(CL_INVALID_LINKER_OPTIONS),
    NAME(CL_INVALID_DEVICE_PARTITION_COUNT),
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR", "no OpenCL driver is installed: on Debian, apt-get install pocl-opencl-icd"},
    {-9999, "NVIDIA: illegal access", "a kernel read or wrote memory that is not its own: try oclgrind"},
};

const char *cl_error_name(cl_int code)
{
    for (size_t i = 0; i < COUNT(errors); i++)
        if (errors[i].code == code)
            return errors[i].name;
    return "unknown OpenCL error";
}

static const char *hint_of(cl_int code)
{
    for (size_t i = 0; i < COUNT(errors); i++)
        if (errors[i].code == code && errors[i].hint)
            return errors[i].hint;
    return NULL;
}

void cl_check(cl_int code, const char *call, const char *file, int line)
{
    if (code == CL_SUCCESS)
        return;
    const char *hint = hint_of(code);
    fail(code == -1001 ? EXIT_NO_DEVICE : EXIT_FAILED, "OpenCL error %s (%d) at %s:%d\n  in %s%s%s",
         cl_error_name(code), (int)code, file, line, call, hint ? "\n  likely cause: " : "", hint ? hint : "");
}
