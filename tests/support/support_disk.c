/* support_disk.c - see support_disk.h. */
#include "support_disk.h"

enum { SECTOR = 512 };

static void make_room(struct disk_file *f, size_t n)
{
    if (n <= f->room)
        return;
    size_t room = MAX(n, 2 * f->room);
    f->sure = reallocate(f->sure, room, 1);
    memset(f->sure + f->room, 0, room - f->room);
    f->room = room;
}

void disk_write(struct disk_file *f, const void *bytes, size_t n, size_t at)
{
    struct waiting_write *w = APPEND(f->waiting, f->n_waiting, f->cap_waiting);
    w->at = at;
    w->n = n;
    w->bytes = memcpy(allocate(n, 1), bytes, n);
    f->n = MAX(f->n, at + n);
    make_room(f, f->n);
}

void disk_sync(struct disk_file *f)
{
    for (size_t i = 0; i < f->n_waiting; i++)
        memcpy(f->sure + f->waiting[i].at, f->waiting[i].bytes, f->waiting[i].n);
    f->sure_n = f->n;
    drop_waiting(f);
}

void drop_waiting(struct disk_file *f)
{
    for (size_t i = 0; i < f->n_waiting; i++)
        free(f->waiting[i].bytes);
    f->n_waiting = 0;
}

static size_t length_after_cut(const struct disk_file *f, struct draws *draws)
{
    switch (draw_below(draws, 3)) {
    case 0:
        return f->sure_n;
    case 1:
        return f->n;
    default:
        return f->sure_n + draw_below(draws, f->n - f->sure_n + 1);
    }
}

static void write_some_sectors(struct disk_file *f, const struct waiting_write *w, struct draws *draws)
{
    for (size_t at = 0; at < w->n; at += SECTOR) {
        size_t n = MIN(SECTOR, w->n - at);
        bool is_there = draw_below(draws, 2);
        bool is_torn = draw_below(draws, 50) == 0;
        if (is_torn)
            n = draw_below(draws, n);
        if (is_there)
            memcpy(f->sure + w->at + at, w->bytes + at, n);
    }
}

void cut_file(struct disk_file *f, struct draws *draws)
{
    enum { NOTHING, ALL, SOME, KINDS };
    for (size_t i = 0; i < f->n_waiting; i++) {
        const struct waiting_write *w = &f->waiting[i];
        size_t kind = draw_below(draws, KINDS);
        if (kind == ALL)
            memcpy(f->sure + w->at, w->bytes, w->n);
        else if (kind == SOME)
            write_some_sectors(f, w, draws);
    }
    drop_waiting(f);
    f->sure_n = length_after_cut(f, draws);
    f->n = f->sure_n;
    if (f->room > f->n)
        memset(f->sure + f->n, 0, f->room - f->n);
}

void empty_file(struct disk_file *f)
{
    drop_waiting(f);
    free(f->waiting);
    free(f->sure);
    *f = (struct disk_file){0};
}
