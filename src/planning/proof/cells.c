/* cells.c - cuts a strip of bytes (see cells.h). */
#include "cells.h"

static bool ends_up_to(const void *item, const void *key)
{
    const struct byte_cell *cell = item;
    const size_t *at = key;
    return cell->end <= *at;
}

/* The cell that begins at byte `at`; a cell that lies across this border becomes two. */
static size_t cut_cell(struct strip *strip, size_t at)
{
    if (strip->n == 0) {
        GROW(strip->cells, strip->cap, strip->n + 1);
        strip->cells[strip->n++] = strip->whole;
    }
    size_t i = lower_bound(&at, strip->cells, strip->n, sizeof *strip->cells, ends_up_to);
    if (strip->cells[i].begin == at)
        return i;
    strip->cells = insert_item(strip->cells, &strip->n, &strip->cap, i, sizeof *strip->cells);
    strip->cells[i].end = at;
    strip->cells[i + 1].begin = at;
    return i + 1;
}

struct byte_cell *cells_of(struct strip *strip, size_t begin, size_t end, size_t *n)
{
    size_t first = cut_cell(strip, begin);
    *n = cut_cell(strip, end) - first;
    return &strip->cells[first];
}

struct strip *new_strips(size_t n, struct byte_cell whole)
{
    struct strip *strips = allocate(n, sizeof *strips);
    whole.begin = 0;
    whole.end = SIZE_MAX;
    for (size_t i = 0; i < n; i++)
        strips[i].whole = whole;
    return strips;
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
