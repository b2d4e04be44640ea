/* list.c - what `yard devices` shows: what matters to this program about each device. */
#include "device.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void text_info(cl_device_id id, cl_device_info what, char *out, size_t bytes)
{
    memset(out, 0, bytes);
    clGetDeviceInfo(id, what, bytes - 1, out, NULL);
    make_printable(out, false);
}

static uint64_t number_info(cl_device_id id, cl_device_info what)
{
    union {
        cl_uint u;
        cl_ulong ul;
        size_t s;
    } value = {.ul = 0};
    size_t bytes = 0;
    clGetDeviceInfo(id, what, sizeof value, &value, &bytes);
    return bytes == sizeof(cl_uint) ? value.u : value.ul;
}

static const char *type_name(cl_device_id id)
{
    uint64_t type = number_info(id, CL_DEVICE_TYPE);
    return type & CL_DEVICE_TYPE_GPU ? "GPU" : type & CL_DEVICE_TYPE_CPU ? "CPU" : "accelerator";
}

/* Does the driver time commands believably?  Asked of a real command, because some drivers answer zeros. */
static bool has_good_timer(unsigned platform, unsigned device)
{
    char spec[32];
    snprintf(spec, sizeof spec, "%u:%u", platform, device);
    struct machine *m = open_machine(&(struct machine_options){.devices = spec, .profiling = true});
    bool good = m->device[0].clock_valid;
    close_machine(m);
    return good;
}

static json_t *device_json(cl_device_id id, unsigned platform, unsigned device)
{
    char name[128], version[128], driver[64], spec[32];
    text_info(id, CL_DEVICE_NAME, name, sizeof name);
    text_info(id, CL_DEVICE_VERSION, version, sizeof version);
    text_info(id, CL_DRIVER_VERSION, driver, sizeof driver);
    snprintf(spec, sizeof spec, "%u:%u", platform, device);
    uint64_t fp = number_info(id, CL_DEVICE_SINGLE_FP_CONFIG);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:I, s:I, s:b, s:b, s:b, s:I}", "id", spec,
                     "name", name, "type", type_name(id), "version", version, "driver", driver, "memory",
                     (json_int_t)number_info(id, CL_DEVICE_GLOBAL_MEM_SIZE), "max_allocation",
                     (json_int_t)number_info(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE), "units",
                     (json_int_t)number_info(id, CL_DEVICE_MAX_COMPUTE_UNITS), "vector_width",
                     (json_int_t)number_info(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT), "kernel_vector",
                     (int)own_vector_width(id), "alignment",
                     (json_int_t)number_info(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, "sub_devices",
                     (json_int_t)number_info(id, CL_DEVICE_PARTITION_MAX_SUB_DEVICES), "correctly_rounded_divide_sqrt",
                     (fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0, "fma", (fp & CL_FP_FMA) != 0, "timer_valid",
                     has_good_timer(platform, device), "timer_resolution_ns",
                     (json_int_t)number_info(id, CL_DEVICE_PROFILING_TIMER_RESOLUTION));
}

static json_int_t field(const json_t *d, const char *name) { return json_integer_value(json_object_get(d, name)); }
static void print_device(FILE *out, const json_t *d)
{
    char memory[32], most[32];
    fprintf(out, "  -d %-6s %s\n", json_string_value(json_object_get(d, "id")),
            json_string_value(json_object_get(d, "name")));
    fprintf(out, "      %s, %s, driver %s\n", json_string_value(json_object_get(d, "type")),
            json_string_value(json_object_get(d, "version")), json_string_value(json_object_get(d, "driver")));
    fprintf(out, "      memory %s, one allocation at most %s, base address alignment %lld bytes\n",
            format_bytes(memory, (double)field(d, "memory")), format_bytes(most, (double)field(d, "max_allocation")),
            (long long)field(d, "alignment"));
    fprintf(out, "      %lld compute units, native vectors of %lld floats; kernels use %lld (--vector: fewer)\n      ",
            (long long)field(d, "units"), (long long)field(d, "vector_width"), (long long)field(d, "kernel_vector"));
    if (field(d, "sub_devices") > 1)
        fprintf(out, "can be cut: -d %s/2 up to /%lld\n", json_string_value(json_object_get(d, "id")),
                (long long)field(d, "sub_devices"));
    else
        fprintf(out, "cannot be cut; -d %sx2 makes logical devices\n", json_string_value(json_object_get(d, "id")));
    fprintf(out, "      divide and square root are %s\n",
            json_is_true(json_object_get(d, "correctly_rounded_divide_sqrt"))
                ? "correctly rounded: AdamW gives the bits of the host's"
                : "NOT correctly rounded: AdamW's bits differ from the host's");
    fprintf(out, "      times of commands: %s, resolution %lld ns\n",
            json_is_true(json_object_get(d, "timer_valid")) ? "valid" : "NOT VALID, traces use host times",
            (long long)field(d, "timer_resolution_ns"));
}

static json_t *platform_json(cl_platform_id id, unsigned number)
{
    char name[128] = "", version[256] = "";
    cl_device_id devices[32];
    cl_uint n = 0;
    clGetPlatformInfo(id, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    clGetPlatformInfo(id, CL_PLATFORM_VERSION, sizeof version - 1, version, NULL);
    clGetDeviceIDs(id, CL_DEVICE_TYPE_ALL, COUNT(devices), devices, &n);
    make_printable(name, false);
    make_printable(version, false);
    json_t *list = json_array();
    for (unsigned i = 0; i < n && i < COUNT(devices); i++)
        json_array_append_new(list, device_json(devices[i], number, i));
    return json_pack("{s:i, s:s, s:s, s:o}", "platform", (int)number, "name", name, "version", version, "devices",
                     list);
}

void list_devices(FILE *out, bool json)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint n = get_platforms(platforms);
    size_t devices = 0;
    json_t *list = json_array();
    for (unsigned p = 0; p < n; p++)
        json_array_append_new(list, platform_json(platforms[p], p));
    json_t *all = json_pack("{s:o}", "platforms", list), *platform, *device;
    size_t i, k;
    json_array_foreach(list, i, platform) devices += json_array_size(json_object_get(platform, "devices"));
    if (json) {
        json_dumpf(all, out, JSON_COMPACT);
        fputc('\n', out);
    } else
        json_array_foreach(list, i, platform)
        {
            fprintf(out, "platform %zu: %s (%s)\n", i, json_string_value(json_object_get(platform, "name")),
                    json_string_value(json_object_get(platform, "version")));
            json_array_foreach(json_object_get(platform, "devices"), k, device) print_device(out, device);
        }
    json_decref(all);
    if (devices == 0)
        fail_without_device(platforms, n, EXIT_NO_DEVICE);
}
