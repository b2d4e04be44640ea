/* allocate.c - allocation that cannot return NULL, and strings built on it. */
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

char *format_arguments(const char *format, va_list arguments)
{
    va_list once_more;
    va_copy(once_more, arguments);
    int n = vsnprintf(NULL, 0, format, once_more);
    va_end(once_more);
    CHECK(n >= 0, "bad format \"%s\"", format);
    char *text = allocate((size_t)n + 1, 1); /* not vasprintf(): leak checkers do not report where that is called */
    vsnprintf(text, (size_t)n + 1, format, arguments);
    return text;
}

char *format_string(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = format_arguments(format, arguments);
    va_end(arguments);
    return text;
}

/* Euclid's algorithm. */
static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (a) {
        uint64_t rest = b % a;
        b = a;
        a = rest;
    }
    return b;
}

uint64_t common_multiple(uint64_t a, uint64_t b) { return a / common_divisor(a, b) * b; }
