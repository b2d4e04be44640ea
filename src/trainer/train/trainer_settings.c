/* trainer_settings.c - what a trainer takes from its settings: devices, sizes, the learning rate, lists. */
#include "hooks.h"
#include "train_parts.h"
#include "trainer/settings/archive.h"

struct machine *open_machine_for(const struct settings *settings, bool separate)
{
    struct machine_options options = {
        .devices = settings->devices,
        .device_memory = settings->device_memory,
        .host_memory = settings->host_memory,
        .profiling = settings->demands.time_tasks,
        .separate = separate,
        .vector = (unsigned)settings->vector,
    };
    struct machine *machine = open_machine(&options);
    if (settings->demands.one_device && machine->n_devices > 1)
        fail(EXIT_USAGE, "%s runs on one device: give a single one to -d", settings->demands.one_device);
    return machine;
}

struct config config_of(const struct settings *settings)
{
    if (settings->source.path)
        return settings->source.config;
    return (struct config){
        .layers = settings->layers,
        .heads = settings->heads,
        .channels = settings->channels,
        .seq_len = settings->seq_len,
        .vocab = settings->vocab,
        .tied = !settings->untied,
    };
}

size_t lists_of(const struct trainer *trainer, struct list *all[MOST_LISTS])
{
    struct list *each[] = {trainer->train_list, trainer->eval_list, trainer->sample_list};
    size_t n = 0;
    for (size_t i = 0; i < COUNT(each); i++)
        if (each[i])
            all[n++] = each[i];
    return n;
}

void set_rate(struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    trainer->rate = (struct rate){
        .schedule = settings->schedule,
        .lr = settings->lr,
        .lr_min = settings->lr_min,
        .steps = settings->steps,
        .warmup = settings->warmup,
    };
    fill_rate(&trainer->rate);
    check_rate(&trainer->rate);
}

void set_batches_ahead(struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    if (settings->resumed)
        trainer->extra.batches_ahead =
            (int64_t)ceil_div((size_t)settings->resumed->samples, (size_t)settings->batch) - settings->resumed->step;
}
