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
    struct tensor *t = *APPEND(p->tensors, p->n, p->cap) = allocate(1, sizeof *t);
    t->id = (int)p->n - 1;
    snprintf(t->name, sizeof t->name, "%s", name);
    CHECK(shape.n_dims >= 1 && shape.n_dims <= MAX_DIMS, "tensor %s has %d dimensions", name, shape.n_dims);
    t->shape = shape;
    t->bytes = ELEMENT_BYTES;
    for (int i = 0; i < shape.n_dims; i++) {
        CHECK(shape.size[i] > 0, "tensor %s: dimension %d is %lld", name, i, (long long)shape.size[i]);
        t->bytes *= (size_t)shape.size[i];
    }
    t->slab = NONE;
    return t;
}

struct tensor *new_tensor(struct pool *p, const struct tensor_form *form)
{
    struct tensor *t = add_tensor(p, form->name, form->shape);
    t->device = form->device;
    t->class = form->class;
    t->element = form->element;
    t->replica_of = t->storage = t;
    return t;
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
    struct tensor *t = new_tensor(p, &form);
    t->bytes = like->bytes;
    t->is_buffer = like->is_buffer;
    return t;
}

struct tensor *as_buffer(struct tensor *t)
{
    t->is_buffer = true;
    return t;
}

enum memory_class counted_as(const struct tensor *t) { return t->is_buffer ? MEM_BUFFERS : t->class; }

/* Makes t, which is new, a view of so many bytes of `base`, from byte `begin` on. */
static struct tensor *become_view(struct tensor *t, struct tensor *base, size_t begin, size_t bytes)
{
    t->device = base->device;
    t->class = base->class;
    t->element = base->element;
    t->persistent = base->persistent;
    t->storage = base->storage;
    t->view = t->storage->view;
    t->storage->view = t;
    t->offset = base->offset + begin;
    t->bytes = bytes;
    CHECK(t->offset + t->bytes <= base->storage->bytes, "view %s ends at byte %zu of %zu", t->name,
          t->offset + t->bytes, base->storage->bytes);
    return t;
}

struct tensor *new_view(struct pool *p, struct tensor *base, const char *name, size_t offset, struct shape shape)
{
    struct tensor *t = add_tensor(p, name, shape);
    return become_view(t, base, offset * ELEMENT_BYTES, t->bytes);
}

struct tensor *new_view_of_bytes(struct pool *p, struct tensor *base, const char *name, struct byte_range bytes,
                                 struct shape shape)
{
    struct tensor *t = add_tensor(p, name, shape);
    return become_view(t, base, bytes.begin, bytes.end - bytes.begin);
}

bool same_bytes(const struct tensor *a, const struct tensor *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->bytes == b->bytes;
}

bool share_bytes(const struct tensor *a, const struct tensor *b)
{
    return a->storage == b->storage && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

size_t count_elements(const struct tensor *t) { return t->bytes / ELEMENT_BYTES; }

static struct slab *slab_of(const struct tensor *t)
{
    CHECK(t->storage->slab >= 0, "tensor %s has no address", t->name);
    return &t->device->slabs[t->storage->slab];
}

cl_mem tensor_buffer(struct tensor *t)
{
    if (!t->buffer)
        t->buffer = slab_part(slab_of(t), t->storage->address + t->offset, t->bytes);
    return t->buffer;
}

void *tensor_memory(const struct tensor *t)
{
    CHECK(t->device->is_host, "tensor %s is on device %s", t->name, t->device->id);
    return (char *)slab_of(t)->host + t->storage->address + t->offset;
}

void write_bytes_of(struct tensor *t, size_t begin, size_t n, const void *from)
{
    size_t at = t->storage->replica_begin + t->offset + begin; /* counted in the bytes of t->storage->replica_of */
    for (struct tensor *m = t->storage->replica_of->first_mirror; m; m = m->next_mirror) {
        size_t first = MAX(m->replica_begin, at);
        size_t end = MIN(m->replica_begin + m->bytes, at + n);
        if (m->persistent && first < end)
            memcpy((char *)tensor_memory(m) + (first - m->replica_begin), (const char *)from + (first - at),
                   end - first);
    }
    if (t->device->is_host)
        memcpy((char *)tensor_memory(t) + begin, from, n);
    else
        write_buffer(t->device, tensor_buffer(t), begin, from, n);
}

void write_tensor(struct tensor *t, const void *from) { write_bytes_of(t, 0, t->bytes, from); }

void read_bytes_of(struct tensor *t, size_t begin, size_t n, void *into)
{
    if (t->device->is_host)
        memcpy(into, (char *)tensor_memory(t) + begin, n);
    else
        CL(clEnqueueReadBuffer(t->device->lane[LANE_DOWNLOAD]->queue, tensor_buffer(t), CL_TRUE, begin, n, into, 0,
                               NULL, NULL));
}

void read_tensor(struct tensor *t, void *into) { read_bytes_of(t, 0, t->bytes, into); }
