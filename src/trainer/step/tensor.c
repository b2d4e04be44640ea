/* tensor.c - makes tensors and views, and finds their bytes. */
#include "list.h"

const char *const memory_class_name[MEM_CLASSES + 1] = {
    [MEM_PARAMETERS] = "parameters",   [MEM_GRADIENTS] = "gradients", [MEM_OPTIMIZER] = "optimizer",
    [MEM_ACTIVATIONS] = "activations", [MEM_WORK] = "work",           [MEM_BUFFERS] = "buffers"};

/* ---- new tensors ------------------------------------------------------------------------------------------------- */

static struct tensor *add_tensor(struct pool *pool, const char *name, struct shape shape)
{
    struct tensor *tensor = allocate(1, sizeof *tensor);
    GROW(pool->tensors, pool->cap, pool->n + 1);
    tensor->id = pool->n;
    pool->tensors[pool->n++] = tensor;
    snprintf(tensor->name, sizeof tensor->name, "%s", name); /* a slice of a tensor with a long name has it cut */
    CHECK(shape.n_dims >= 1 && shape.n_dims <= MOST_DIMS, "tensor %s has %d dimensions", name, shape.n_dims);
    tensor->shape = shape;
    tensor->bytes = ELEMENT_BYTES;
    for (int i = 0; i < shape.n_dims; i++) {
        CHECK(shape.size[i] > 0, "tensor %s: dimension %d is %lld", name, i, (long long)shape.size[i]);
        tensor->bytes *= (size_t)shape.size[i];
    }
    tensor->slab = NONE;
    return tensor;
}

struct tensor *new_tensor(struct pool *pool, const struct tensor_form *form)
{
    struct tensor *tensor = add_tensor(pool, form->name, form->shape);
    tensor->device = form->device;
    tensor->class = form->class;
    tensor->type = form->type;
    tensor->storage = tensor;
    tensor->replica.of = tensor;
    return tensor;
}

struct tensor *new_work_tensor(struct pool *pool, struct device *device, const char *name, struct shape shape)
{
    const struct tensor_form form = {.device = device, .class = MEM_WORK, .name = name, .shape = shape};
    return new_tensor(pool, &form);
}

struct tensor *new_kept_work_tensor(struct pool *pool, struct device *device, const char *name, struct shape shape)
{
    struct tensor *tensor = new_work_tensor(pool, device, name, shape);
    tensor->persistent = true;
    return tensor;
}

struct tensor *tensor_like(struct pool *pool, struct device *device, const struct tensor *like)
{
    const struct tensor_form form = {
        .device = device,
        .class = like->class,
        .name = like->name,
        .type = like->type,
        .shape = like->shape,
    };
    struct tensor *tensor = new_tensor(pool, &form);
    tensor->bytes = like->bytes;
    tensor->extra.is_buffer = like->extra.is_buffer;
    return tensor;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* Makes the tensor, which is new, a view of `bytes` bytes of `base`, from byte `begin` on. */
static struct tensor *become_view(struct tensor *tensor, struct tensor *base, size_t begin, size_t bytes)
{
    tensor->device = base->device;
    tensor->class = base->class;
    tensor->type = base->type;
    tensor->persistent = base->persistent;
    tensor->storage = base->storage;
    tensor->next_view = tensor->storage->next_view;
    tensor->storage->next_view = tensor;
    tensor->offset = base->offset + begin;
    tensor->bytes = bytes;
    CHECK(tensor->offset + tensor->bytes <= base->storage->bytes, "view %s ends at byte %zu of %zu", tensor->name,
          tensor->offset + tensor->bytes, base->storage->bytes);
    return tensor;
}

struct tensor *new_view(struct pool *pool, struct tensor *base, const char *name, size_t offset, struct shape shape)
{
    struct tensor *tensor = add_tensor(pool, name, shape);
    return become_view(tensor, base, offset * ELEMENT_BYTES, tensor->bytes);
}

struct tensor *new_view_of_bytes(struct pool *pool, struct tensor *base, const char *name, struct range bytes,
                                 struct shape shape)
{
    struct tensor *tensor = add_tensor(pool, name, shape);
    return become_view(tensor, base, bytes.begin, bytes.end - bytes.begin);
}

/* ---- their bytes ------------------------------------------------------------------------------------------------- */

static struct slab *slab_of(const struct tensor *tensor)
{
    CHECK(tensor->storage->slab >= 0, "tensor %s has no address", tensor->name);
    return &tensor->device->slabs[tensor->storage->slab];
}

cl_mem tensor_buffer(struct tensor *tensor)
{
    if (!tensor->buffer)
        tensor->buffer = slab_part(slab_of(tensor), tensor->storage->address + tensor->offset, tensor->bytes);
    return tensor->buffer;
}

void *tensor_memory(const struct tensor *tensor)
{
    CHECK(tensor->device->is_host, "tensor %s is on device %s", tensor->name, tensor->device->id);
    return (char *)slab_of(tensor)->host + tensor->storage->address + tensor->offset;
}
