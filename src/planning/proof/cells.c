/* cells.c - cuts a strip of bytes (see cells.h). */
#include "cells.h"

/* The cell that begins at byte `at`; a cell that lies across this border becomes two. */
static size_t cut_cell(struct strip *strip, size_t at)
{
    size_t i;
    if (strip->n == 0) {
        struct byte_cell whole = {.end = SIZE_MAX, .writer = NONE, .reader = NONE, .iteration = NONE};
        *APPEND(strip->cells, strip->n, strip->cap) = whole;
    }
    FIND_FIRST(i, strip->n, strip->cells[i].end <= at);
    if (strip->cells[i].begin == at)
        return i;
    INSERT(strip->cells, strip->n, strip->cap, i)->end = at;
    strip->cells[i + 1].begin = at;
    return i + 1;
}

struct byte_cell *cells_of(struct strip *strip, size_t begin, size_t end, size_t *n)
{
    size_t first = cut_cell(strip, begin);
    *n = cut_cell(strip, end) - first;
    return &strip->cells[first];
}

void free_strips(struct strip *strips, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(strips[i].cells);
    free(strips);
}

uint64_t hash_pair(uint64_t first, uint64_t second)
{
    const uint64_t pair[2] = {first, second};
    return hash_bytes(pair, sizeof pair, 0);
}
