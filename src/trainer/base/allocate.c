/* allocate.c - allocation that cannot return NULL. */
#include "base.h"

static _Noreturn void out_of_memory(size_t count, size_t size)
{
    fail(EXIT_USAGE,
         "out of memory on the host: %zu items of %zu bytes could not be allocated; "
         "take a smaller model, batch or data set, or close other programs",
         count, size);
}

void *allocate(size_t count, size_t size)
{
    void *p = calloc(MAX(count, 1), MAX(size, 1)); /* calloc checks the product */
    if (!p)
        out_of_memory(count, size);
    return p;
}

void *allocate_each(int n, size_t size) { return allocate((size_t)n, size); }

void *reallocate(void *old, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        out_of_memory(count, size);
    void *p = realloc(old, MAX(count * size, 1));
    if (!p)
        out_of_memory(count, size);
    return p;
}

void *copy_bytes(const void *from, size_t n) { return n ? memcpy(allocate(n, 1), from, n) : NULL; }

char *copy_string(const char *text) { return copy_bytes(text, strlen(text) + 1); }
