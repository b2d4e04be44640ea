/* tensor.c - tensors, views and the pool that owns them. */
#include "step.h"

const char *const memory_class_name[MEM_CLASSES + 1] = {"parameters",  "gradients", "optimizer",
                                                        "activations", "work",      "buffers"};

struct pool *new_pool(struct machine *m)
{
    struct pool *p = allocate(1, sizeof *p);
    p->machine = m;
    return p;
}

void drop_tensors(struct pool *p, size_t n)
{
    for (; p->n > n; p->n--) {
        struct tensor *last = p->tensors[p->n - 1];
        if (last->storage != last)
            last->storage->view = last->view;
        free(last);
    }
}

void free_pool(struct pool *p)
{
    drop_tensors(p, 0);
    for (int i = 0; i <= p->machine->n_devices; i++)
        free_slabs(p->machine, &p->machine->device[i]);
    free(p->tensors);
    free(p);
}

static struct tensor *add_tensor(struct pool *p, const char *name, struct shape shape)
{
    struct tensor *x = *APPEND(p->tensors, p->n, p->cap) = allocate(1, sizeof *x);
    x->id = (int)p->n - 1;
    snprintf(x->name, sizeof x->name, "%s", name);
    CHECK(shape.n_dims >= 1 && shape.n_dims <= MOST_DIMS, "tensor %s has %d dimensions", name, shape.n_dims);
    x->shape = shape;
    x->bytes = ELEMENT_BYTES;
    for (int i = 0; i < shape.n_dims; i++) {
        CHECK(shape.size[i] > 0, "tensor %s: dimension %d is %lld", name, i, (long long)shape.size[i]);
        x->bytes *= (size_t)shape.size[i];
    }
    x->slab = NONE;
    return x;
}

struct tensor *new_tensor(struct pool *p, const struct tensor_form *form)
{
    struct tensor *x = add_tensor(p, form->name, form->shape);
    x->device = form->device;
    x->class = form->class;
    x->element = form->element;
    x->replica.of = x->storage = x;
    return x;
}

struct tensor *new_work_tensor(struct pool *p, struct device *d, const char *name, struct shape shape)
{
    const struct tensor_form form = {.device = d, .class = MEM_WORK, .name = name, .shape = shape};
    return new_tensor(p, &form);
}

struct tensor *tensor_like(struct pool *p, struct device *d, const struct tensor *like)
{
    const struct tensor_form form = {
        .device = d,
        .class = like->class,
        .name = like->name,
        .element = like->element,
        .shape = like->shape,
    };
    struct tensor *x = new_tensor(p, &form);
    x->bytes = like->bytes;
    x->is_buffer = like->is_buffer;
    return x;
}

struct tensor *as_buffer(struct tensor *x)
{
    x->is_buffer = true;
    return x;
}

enum memory_class counted_as(const struct tensor *x) { return x->is_buffer ? MEM_BUFFERS : x->class; }

/* Makes x, which is new, a view of so many bytes of `base`, from byte `begin` on. */
static struct tensor *become_view(struct tensor *x, struct tensor *base, size_t begin, size_t bytes)
{
    x->device = base->device;
    x->class = base->class;
    x->element = base->element;
    x->persistent = base->persistent;
    x->storage = base->storage;
    x->view = x->storage->view;
    x->storage->view = x;
    x->offset = base->offset + begin;
    x->bytes = bytes;
    CHECK(x->offset + x->bytes <= base->storage->bytes, "view %s ends at byte %zu of %zu", x->name,
          x->offset + x->bytes, base->storage->bytes);
    return x;
}

struct tensor *new_view(struct pool *p, struct tensor *base, const char *name, size_t offset, struct shape shape)
{
    struct tensor *x = add_tensor(p, name, shape);
    return become_view(x, base, offset * ELEMENT_BYTES, x->bytes);
}

struct tensor *new_view_of_bytes(struct pool *p, struct tensor *base, const char *name, struct byte_range bytes,
                                 struct shape shape)
{
    struct tensor *x = add_tensor(p, name, shape);
    return become_view(x, base, bytes.begin, bytes.end - bytes.begin);
}

bool same_bytes(const struct tensor *a, const struct tensor *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->bytes == b->bytes;
}

bool share_bytes(const struct tensor *a, const struct tensor *b)
{
    return a->storage == b->storage && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

size_t count_elements(const struct tensor *x) { return x->bytes / ELEMENT_BYTES; }

static struct slab *slab_of(const struct tensor *x)
{
    CHECK(x->storage->slab >= 0, "tensor %s has no address", x->name);
    return &x->device->slabs[x->storage->slab];
}

cl_mem tensor_buffer(struct tensor *x)
{
    if (!x->buffer)
        x->buffer = slab_part(slab_of(x), x->storage->address + x->offset, x->bytes);
    return x->buffer;
}

void *tensor_memory(const struct tensor *x)
{
    CHECK(x->device->is_host, "tensor %s is on device %s", x->name, x->device->id);
    return (char *)slab_of(x)->host + x->storage->address + x->offset;
}

void write_bytes_of(struct tensor *x, size_t begin, size_t n, const void *from)
{
    size_t at = x->storage->replica.begin + x->offset + begin; /* counted in the bytes of x->storage->replica.of */
    for (struct tensor *m = x->storage->replica.of->mirror.first; m; m = m->mirror.next) {
        size_t first = MAX(m->replica.begin, at);
        size_t end = MIN(m->replica.begin + m->bytes, at + n);
        if (m->persistent && first < end)
            memcpy((char *)tensor_memory(m) + (first - m->replica.begin), (const char *)from + (first - at),
                   end - first);
    }
    if (x->device->is_host)
        memcpy((char *)tensor_memory(x) + begin, from, n);
    else
        write_buffer(x->device, tensor_buffer(x), begin, from, n);
}

void write_tensor(struct tensor *x, const void *from) { write_bytes_of(x, 0, x->bytes, from); }

void read_bytes_of(struct tensor *x, size_t begin, size_t n, void *into)
{
    if (x->device->is_host)
        memcpy(into, (char *)tensor_memory(x) + begin, n);
    else
        CL(clEnqueueReadBuffer(x->device->lane[LANE_DOWNLOAD]->queue, tensor_buffer(x), CL_TRUE, begin, n, into, 0,
                               NULL, NULL));
}

void read_tensor(struct tensor *x, void *into) { read_bytes_of(x, 0, x->bytes, into); }
