/* ranges.c - tensors of bytes, which have no shape, and tensors that are ranges of others. */
#include "edit.h"

struct tensor *new_bytes_tensor(struct pool *pool, struct device *device, enum memory_class class, const char *name,
                                size_t bytes)
{
    const struct shape shape = SHAPE((int64_t)ceil_div(bytes, ELEMENT_BYTES));
    const struct tensor_form form = {.device = device, .class = class, .name = name, .shape = shape};
    struct tensor *tensor = new_tensor(pool, &form);
    tensor->bytes = bytes;
    return tensor;
}

struct tensor *new_range(struct pool *pool, struct tensor *base, const char *name, size_t begin, size_t end)
{
    const struct shape shape = SHAPE((int64_t)ceil_div(end - begin, ELEMENT_BYTES));
    return new_view_of_bytes(pool, base, name, (struct range){begin, end}, shape);
}

struct tensor *same_part(struct pool *pool, struct tensor *base, const struct tensor *view)
{
    CHECK(base->bytes == view->storage->bytes, "%s of %s is not a part of %s", view->name, view->storage->name,
          base->name);
    const struct range bytes = {view->offset, view->offset + view->bytes};
    return new_view_of_bytes(pool, base, view->name, bytes, view->shape);
}
