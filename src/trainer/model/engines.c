/* engines.c - the engine that computes matrix products: our own kernel, or CLBlast. */
#include "model.h"

enum { CLBLAST_ITEMS = 64 }; /* work-items of a work-group of CLBlast's */

bool has_own_products(const struct device *device)
{
    return !device->extra.quirks.short_loops &&
           (device->is_cpu || device->shape.most_items < CLBLAST_ITEMS || device->shape.forced);
}

enum gemm_engine choose_engine(const struct device *device, enum gemm_engine wanted)
{
    enum gemm_engine engine = wanted;
    if (engine == GEMM_AUTO)
        engine = device->shape.one_item ? GEMM_OWN : GEMM_CLBLAST;
    if (engine == GEMM_OWN && !has_own_products(device)) {
        const char *why = "is a GPU, where --gemm own computes one work-item at a time";
        if (device->extra.quirks.short_loops)
            why = "ends a kernel's loops too soon for --gemm own";
        fail(EXIT_USAGE, "device %s, %s, %s: use --gemm clblast", device->id, device->name, why);
    }
    if (engine == GEMM_CLBLAST && device->shape.most_items && device->shape.most_items < CLBLAST_ITEMS)
        fail(EXIT_USAGE, "device %s, %s, takes work-groups of %zu work-items, and CLBlast's have %d: use --gemm own",
             device->id, device->name, device->shape.most_items, CLBLAST_ITEMS);
    return engine;
}
