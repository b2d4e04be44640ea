/* devices.c - yard devices: shows of each OpenCL device what matters to this program. */
#include "trainer/base/module.h"
#include "trainer/train/train.h"

static const struct {
    const char *name;
    cl_device_info info;
    bool is_text;
} properties[] = {
    {"name", CL_DEVICE_NAME, true},
    {"version", CL_DEVICE_VERSION, true},
    {"driver", CL_DRIVER_VERSION, true},
    {"memory", CL_DEVICE_GLOBAL_MEM_SIZE, false},
    {"max_allocation", CL_DEVICE_MAX_MEM_ALLOC_SIZE, false},
    {"units", CL_DEVICE_MAX_COMPUTE_UNITS, false},
    {"vector_width", CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, false},
    {"sub_devices", CL_DEVICE_PARTITION_MAX_SUB_DEVICES, false},
    {"timer_resolution_ns", CL_DEVICE_PROFILING_TIMER_RESOLUTION, false},
};

static const char *type_name(cl_device_id id)
{
    uint64_t type = device_number(id, CL_DEVICE_TYPE);
    if (type & CL_DEVICE_TYPE_GPU)
        return "GPU";
    return type & CL_DEVICE_TYPE_CPU ? "CPU" : "accelerator";
}

static json_t *device_json(cl_device_id id, unsigned platform, unsigned device)
{
    char text[128], spec[32];
    snprintf(spec, sizeof spec, "%u:%u", platform, device);
    uint64_t fp = device_number(id, CL_DEVICE_SINGLE_FP_CONFIG);
    /* Does the driver time commands believably?  A real command is asked, because some drivers answer zeros. */
    struct machine *machine = open_machine(&(struct machine_options){.devices = spec, .profiling = true});
    json_t *d = json_pack("{s:s, s:s, s:I, s:i, s:I, s:b, s:b, s:b}", "id", spec, "type", type_name(id), "budget",
                          (json_int_t)machine->devices[0].budget, "kernel_vector", (int)own_vector_width(id),
                          "alignment", (json_int_t)device_number(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8,
                          "correctly_rounded_divide_sqrt", (fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0, "fma",
                          (fp & CL_FP_FMA) != 0, "timer_valid", machine->devices[0].clock.valid);
    close_machine(machine);
    for (size_t i = 0; i < COUNT(properties); i++) {
        json_t *value;
        if (properties[i].is_text) {
            device_text(id, properties[i].info, text, sizeof text);
            value = json_string(text);
        } else
            value = json_integer((json_int_t)device_number(id, properties[i].info));
        json_object_set_new(d, properties[i].name, value);
    }
    return d;
}

static long long field(const json_t *d, const char *name) { return json_integer_value(json_object_get(d, name)); }
static const char *words(const json_t *d, const char *name) { return json_string_value(json_object_get(d, name)); }
static bool holds(const json_t *d, const char *name) { return json_is_true(json_object_get(d, name)); }

static void print_device(const json_t *d)
{
    char memory[32], budget[32], most[32];
    const char *whose = strcmp(words(d, "type"), "CPU") == 0 ? " of the host's" : "";
    format_bytes(memory, (double)field(d, "memory"));
    format_bytes(budget, (double)field(d, "budget"));
    format_bytes(most, (double)field(d, "max_allocation"));
    print_line(stdout, "  -d %-6s %s", words(d, "id"), words(d, "name"));
    print_line(stdout, "      %s, %s, driver %s", words(d, "type"), words(d, "version"), words(d, "driver"));
    print_line(
        stdout,
        "      memory %s by its driver, budget %s%s (--device-mem), one allocation at most %s, base address alignment "
        "%lld bytes",
        memory, budget, whose, most, field(d, "alignment"));
    print_line(stdout, "      %lld compute units, native vectors of %lld floats; kernels use %lld (--vector: fewer)",
               field(d, "units"), field(d, "vector_width"), field(d, "kernel_vector"));
    if (field(d, "sub_devices") > 1)
        print_line(stdout, "      can be cut: -d %s/2 up to /%lld", words(d, "id"), field(d, "sub_devices"));
    else
        print_line(stdout, "      cannot be cut; -d %sx2 makes logical devices", words(d, "id"));
    if (holds(d, "correctly_rounded_divide_sqrt"))
        print_line(stdout, "      divide and square root are correctly rounded: AdamW gives the bits of the host's%s",
                   "");
    else
        print_line(stdout,
                   "      divide and square root are NOT correctly rounded: AdamW's bits differ from the host's%s", "");
    print_line(stdout, "      times of commands: %s, resolution %lld ns",
               holds(d, "timer_valid") ? "valid" : "NOT VALID, traces use host times", field(d, "timer_resolution_ns"));
}

static json_t *platform_json(cl_platform_id id, unsigned platform)
{
    char name[128] = "", version[256] = "";
    cl_device_id ids[MOST_PER_PLATFORM];
    clGetPlatformInfo(id, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    clGetPlatformInfo(id, CL_PLATFORM_VERSION, sizeof version - 1, version, NULL);
    json_t *devices = json_array();
    cl_uint n = get_devices(id, ids);
    for (unsigned i = 0; i < n; i++)
        json_array_append_new(devices, device_json(ids[i], platform, i));
    return json_pack("{s:i, s:s, s:s, s:o}", "platform", (int)platform, "name", make_printable(name, ONE_LINE),
                     "version", make_printable(version, ONE_LINE), "devices", devices);
}

static void print_platform(const json_t *platform, const json_t *devices)
{
    print_line(stdout, "platform %lld: %s (%s)", field(platform, "platform"), words(platform, "name"),
               words(platform, "version"));
    for (size_t i = 0; i < json_array_size(devices); i++)
        print_device(json_array_get(devices, i));
}

static void list_devices(bool json)
{
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint n = get_platforms(platforms);
    size_t n_devices = 0;
    json_t *all_platforms = json_array();
    json_t *all = json_pack("{s:o}", "platforms", all_platforms);
    for (unsigned p = 0; p < n; p++) {
        json_t *platform = platform_json(platforms[p], p);
        const json_t *devices = json_object_get(platform, "devices");
        json_array_append_new(all_platforms, platform);
        n_devices += json_array_size(devices);
        if (!json)
            print_platform(platform, devices);
    }
    if (json) { /* in one line, unlike print_json(): scripts on machines without a JSON parser read it */
        json_dumpf(all, stdout, JSON_COMPACT);
        putchar('\n');
    }
    json_decref(all);
    if (n_devices == 0)
        fail_without_device(platforms, n, EXIT_NO_DEVICE);
}

static const struct page page = {
    .name = "devices",
    .takes = "[--json]",
    .examples = "\n"
                "--json\n",
    .text = "Shows the OpenCL platforms and devices, numbered as -d takes them.",
    .classes = OF_THIS,
    .also = " json ",
};

static int run_devices(int argc, char **argv)
{
    list_devices(parse_settings(&page, argc, argv)->json);
    return EXIT_OK;
}

static const struct subcommand command = {
    .help_place = 10,
    .name = "devices",
    .help = "show the OpenCL devices",
    .run = run_devices,
    .foreign = " info device clinfo gpus ",
};
const struct module module_devices = {
    .name = "devices",
    .commands = &command,
    .n_commands = 1,
};
