/* cells.c - cuts a strip of bytes (see cells.h). */
#include "cells.h"

/* The cell that begins at byte `at`; a cell that lies across this border becomes two. */
static size_t cut_cell(struct strip *s, size_t at)
{
    size_t i;
    if (s->n == 0) {
        struct byte_cell whole = {.end = SIZE_MAX, .writer = NONE, .reader = NONE, .iteration = NONE};
        *APPEND(s->cell, s->n, s->cap) = whole;
    }
    FIND_FIRST(i, s->n, s->cell[i].end <= at);
    if (s->cell[i].begin == at)
        return i;
    (void)APPEND(s->cell, s->n, s->cap);
    memmove(&s->cell[i + 1], &s->cell[i], (s->n - 1 - i) * sizeof *s->cell);
    s->cell[i].end = at;
    s->cell[i + 1].begin = at;
    return i + 1;
}

struct byte_cell *cells_of(struct strip *s, size_t begin, size_t end, size_t *n)
{
    size_t first = cut_cell(s, begin);
    *n = cut_cell(s, end) - first;
    return &s->cell[first];
}

void free_strips(struct strip *strips, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(strips[i].cell);
    free(strips);
}

uint64_t hash_pair(uint64_t a, uint64_t b)
{
    const uint64_t pair[2] = {a, b};
    return hash_bytes(pair, sizeof pair, 0);
}
