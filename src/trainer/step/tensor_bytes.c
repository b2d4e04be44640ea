/* tensor_bytes.c - what passes and commands ask of a tensor, and how they read and write its bytes. */
#include "list.h"

/* ---- what passes and commands ask -------------------------------------------------------------------------------- */

struct tensor *as_buffer(struct tensor *tensor)
{
    tensor->extra.is_buffer = true;
    return tensor;
}

enum memory_class counted_as(const struct tensor *tensor)
{
    return tensor->extra.is_buffer ? MEM_BUFFERS : tensor->class;
}

bool same_bytes(const struct tensor *a, const struct tensor *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->bytes == b->bytes;
}

bool share_bytes(const struct tensor *a, const struct tensor *b)
{
    return a->storage == b->storage && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

size_t count_elements(const struct tensor *tensor) { return tensor->bytes / ELEMENT_BYTES; }

/* ---- reading and writing ----------------------------------------------------------------------------------------- */

void write_bytes_of(struct tensor *tensor, size_t begin, size_t n, const void *from)
{
    /* Tensors of the host that mirror these bytes get the new ones too.  Such a tensor may mirror another part of the
     * parameter: so `at`, `first` and `end` are counted in the bytes of replica.of, in which all of them lie. */
    size_t at = tensor->storage->replica.begin + tensor->offset + begin;
    for (struct tensor *other = tensor->storage->replica.of->extra.mirror.first; other;
         other = other->extra.mirror.next) {
        size_t first = MAX(other->replica.begin, at);
        size_t end = MIN(other->replica.begin + other->bytes, at + n);
        if (other->persistent && first < end)
            memcpy((char *)tensor_memory(other) + (first - other->replica.begin), (const char *)from + (first - at),
                   end - first);
    }
    if (tensor->device->is_host)
        memcpy((char *)tensor_memory(tensor) + begin, from, n);
    else
        write_buffer(tensor->device, tensor_buffer(tensor), begin, from, n);
}

void write_tensor(struct tensor *tensor, const void *from) { write_bytes_of(tensor, 0, tensor->bytes, from); }

void read_bytes_of(struct tensor *tensor, size_t begin, size_t n, void *into)
{
    if (tensor->device->is_host)
        memcpy(into, (char *)tensor_memory(tensor) + begin, n);
    else
        read_buffer(tensor->device, tensor_buffer(tensor), begin, into, n);
}

void read_tensor(struct tensor *tensor, void *into) { read_bytes_of(tensor, 0, tensor->bytes, into); }
