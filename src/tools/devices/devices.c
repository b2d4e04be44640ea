/* devices.c - yard devices: shows of each OpenCL device what matters to this program. */
#include "trainer/base/json.h"
#include "trainer/base/module.h"
#include "trainer/device/driver.h"
#include "trainer/train/train.h"

struct device_facts {
    char id[32]; /* as -d takes it, "0:1" */
    const char *type;
    char name[128], version[128], driver[128];
    unsigned long long memory, max_allocation, budget; /* bytes */
    unsigned long long alignment;                      /* of a tensor's address: bytes */
    unsigned long long units, sub_devices;
    unsigned long long vector_width; /* the device's own: floats */
    unsigned kernel_vector;          /* what kernels use: floats */
    bool rounds_correctly;           /* divide and square root are correctly rounded */
    bool fma;
    bool timer_valid; /* the driver's times of commands can be believed */
    unsigned long long timer_resolution_ns;
};

static const char *type_name(cl_device_id id)
{
    uint64_t type = device_number(id, CL_DEVICE_TYPE);
    if (type & CL_DEVICE_TYPE_GPU)
        return "GPU";
    return type & CL_DEVICE_TYPE_CPU ? "CPU" : "accelerator";
}

/* A machine is opened to learn the budget, and whether the driver's times can be believed: for that it times a real
 * command, because some drivers answer zeros. */
static void learn_budget(struct device_facts *facts)
{
    struct machine *machine = open_machine(&(struct machine_options){.devices = facts->id, .profiling = true});
    facts->budget = machine->devices[0].budget;
    facts->timer_valid = machine->devices[0].extra.clock.valid;
    close_machine(machine);
}

static struct device_facts ask_device(cl_device_id id, unsigned platform, unsigned device)
{
    uint64_t fp = device_number(id, CL_DEVICE_SINGLE_FP_CONFIG);
    struct device_facts facts = {
        .type = type_name(id),
        .memory = device_number(id, CL_DEVICE_GLOBAL_MEM_SIZE),
        .max_allocation = device_number(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        .alignment = device_number(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8,
        .units = device_number(id, CL_DEVICE_MAX_COMPUTE_UNITS),
        .sub_devices = device_number(id, CL_DEVICE_PARTITION_MAX_SUB_DEVICES),
        .vector_width = device_number(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT),
        .kernel_vector = own_vector_width(id),
        .rounds_correctly = fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT,
        .fma = fp & CL_FP_FMA,
        .timer_resolution_ns = device_number(id, CL_DEVICE_PROFILING_TIMER_RESOLUTION),
    };
    snprintf(facts.id, sizeof facts.id, "%u:%u", platform, device);
    device_text(id, CL_DEVICE_NAME, facts.name, sizeof facts.name);
    device_text(id, CL_DEVICE_VERSION, facts.version, sizeof facts.version);
    device_text(id, CL_DRIVER_VERSION, facts.driver, sizeof facts.driver);
    learn_budget(&facts);
    return facts;
}

static json_t *device_json(const struct device_facts *facts)
{
    json_t *json = json_pack("{s:s, s:s}", "id", facts->id, "type", facts->type);
    set_json_integer(json, "budget", (json_int_t)facts->budget);
    set_json_integer(json, "kernel_vector", (json_int_t)facts->kernel_vector);
    set_json_integer(json, "alignment", (json_int_t)facts->alignment);
    set_json_truth(json, "correctly_rounded_divide_sqrt", facts->rounds_correctly);
    set_json_truth(json, "fma", facts->fma);
    set_json_truth(json, "timer_valid", facts->timer_valid);
    set_json_text(json, "name", facts->name);
    set_json_text(json, "version", facts->version);
    set_json_text(json, "driver", facts->driver);
    set_json_integer(json, "memory", (json_int_t)facts->memory);
    set_json_integer(json, "max_allocation", (json_int_t)facts->max_allocation);
    set_json_integer(json, "units", (json_int_t)facts->units);
    set_json_integer(json, "vector_width", (json_int_t)facts->vector_width);
    set_json_integer(json, "sub_devices", (json_int_t)facts->sub_devices);
    set_json_integer(json, "timer_resolution_ns", (json_int_t)facts->timer_resolution_ns);
    return json;
}

static void print_device(const struct device_facts *facts)
{
    char memory[NUMBER_TEXT], budget[NUMBER_TEXT], most[NUMBER_TEXT];
    const char *whose = strcmp(facts->type, "CPU") == 0 ? " of the host's" : "";
    format_bytes(memory, (double)facts->memory);
    format_bytes(budget, (double)facts->budget);
    format_bytes(most, (double)facts->max_allocation);
    print_line(stdout, "  -d %-6s %s", facts->id, facts->name);
    print_line(stdout, "      %s, %s, driver %s", facts->type, facts->version, facts->driver);
    print_line(stdout,
               "      memory %s by its driver, budget %s%s (--device-mem), one allocation at most %s, base address "
               "alignment %llu bytes",
               memory, budget, whose, most, facts->alignment);
    print_line(stdout, "      %llu compute units, native vectors of %llu floats; kernels use %u (--vector: fewer)",
               facts->units, facts->vector_width, facts->kernel_vector);
    if (facts->sub_devices > 1)
        print_line(stdout, "      can be cut: -d %s/2 up to /%llu", facts->id, facts->sub_devices);
    else
        print_line(stdout, "      cannot be cut; -d %sx2 makes logical devices", facts->id);
    if (facts->rounds_correctly)
        print_line(stdout, "      divide and square root are correctly rounded: AdamW gives the bits of the host's");
    else
        print_line(stdout,
                   "      divide and square root are NOT correctly rounded: AdamW's bits differ from the host's");
    print_line(stdout, "      times of commands: %s, resolution %llu ns",
               facts->timer_valid ? "valid" : "NOT VALID, traces use host times", facts->timer_resolution_ns);
}

struct platform_facts {
    unsigned number;
    char name[128], version[256];
    struct device_facts devices[MOST_PER_PLATFORM];
    unsigned n; /* how many devices it has */
};

static void ask_platform(struct platform_facts *facts, cl_platform_id id, unsigned number)
{
    cl_device_id ids[MOST_PER_PLATFORM];
    *facts = (struct platform_facts){.number = number, .n = get_devices(id, ids)};
    platform_text(id, CL_PLATFORM_NAME, facts->name, sizeof facts->name);
    platform_text(id, CL_PLATFORM_VERSION, facts->version, sizeof facts->version);
    for (unsigned i = 0; i < facts->n; i++)
        facts->devices[i] = ask_device(ids[i], number, i);
}

static json_t *platform_json(const struct platform_facts *facts)
{
    json_t *devices = json_array();
    for (unsigned i = 0; i < facts->n; i++)
        json_array_append_new(devices, device_json(&facts->devices[i]));
    json_t *json = json_object();
    set_json_integer(json, "platform", (json_int_t)facts->number);
    set_json_text(json, "name", facts->name);
    set_json_text(json, "version", facts->version);
    json_object_set_new(json, "devices", devices);
    return json;
}

static void print_platform(const struct platform_facts *facts)
{
    print_line(stdout, "platform %u: %s (%s)", facts->number, facts->name, facts->version);
    for (unsigned i = 0; i < facts->n; i++)
        print_device(&facts->devices[i]);
}

static void list_devices(bool json)
{
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint n = load_platforms(platforms);
    size_t n_devices = 0;
    json_t *array = json_array();
    for (unsigned p = 0; p < n; p++) {
        struct platform_facts facts;
        ask_platform(&facts, platforms[p], p);
        n_devices += facts.n;
        if (json)
            json_array_append_new(array, platform_json(&facts));
        else
            print_platform(&facts);
    }
    json_t *all = json_pack("{s:o}", "platforms", array);
    if (json) { /* in one line, unlike print_json(): scripts on machines without a JSON parser read it */
        json_dumpf(all, stdout, JSON_COMPACT);
        putchar('\n');
    }
    json_decref(all);
    if (n_devices == 0)
        fail_without_device(platforms, n, EXIT_NO_DEVICE);
}

static const struct usage usage = {
    .name = "devices",
    .takes = "[--json]",
    .examples = "\n"
                "--json\n",
    .text = "Shows the OpenCL platforms and devices, numbered as -d takes them.",
    .classes = OF_THIS,
    .also = "json",
};

static enum exit_code run_devices(int argc, char **argv)
{
    list_devices(parse_settings(&usage, argc, argv)->json);
    return EXIT_OK;
}

static const struct subcommand command = {
    .help_place = 10,
    .name = "devices",
    .help = "show the OpenCL devices",
    .run = run_devices,
    .foreign = "info device clinfo gpus",
};
const struct module module_devices = {
    .name = "devices",
    .commands = &command,
    .n_commands = 1,
};
