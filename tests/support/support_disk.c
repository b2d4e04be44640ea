/* support_disk.c - see support_disk.h. */
#include "support_disk.h"

enum { SECTOR = 512 };

static void grow_disk_file(struct disk_file *disk_file, size_t n)
{
    if (n <= disk_file->room)
        return;
    size_t room = MAX(n, 2 * disk_file->room);
    disk_file->sure = reallocate(disk_file->sure, room, 1);
    memset(disk_file->sure + disk_file->room, 0, room - disk_file->room);
    disk_file->room = room;
}

void disk_write(struct disk_file *disk_file, const void *bytes, size_t n, size_t at)
{
    disk_file->waiting =
        grow(disk_file->waiting, &disk_file->cap_waiting, disk_file->n_waiting + 1, sizeof *disk_file->waiting);
    disk_file->waiting[disk_file->n_waiting++] =
        (struct waiting_write){.at = at, .n = n, .bytes = memcpy(allocate(n, 1), bytes, n)};
    disk_file->n = MAX(disk_file->n, at + n);
    grow_disk_file(disk_file, disk_file->n);
}

void disk_sync(struct disk_file *disk_file)
{
    for (size_t i = 0; i < disk_file->n_waiting; i++)
        memcpy(disk_file->sure + disk_file->waiting[i].at, disk_file->waiting[i].bytes, disk_file->waiting[i].n);
    disk_file->sure_n = disk_file->n;
    drop_waiting(disk_file);
}

void drop_waiting(struct disk_file *disk_file)
{
    for (size_t i = 0; i < disk_file->n_waiting; i++)
        free(disk_file->waiting[i].bytes);
    disk_file->n_waiting = 0;
}

static size_t length_after_cut(const struct disk_file *disk_file, struct draws *draws)
{
    switch (draw_below(draws, 3)) {
    case 0:
        return disk_file->sure_n;
    case 1:
        return disk_file->n;
    default:
        return disk_file->sure_n + draw_below(draws, disk_file->n - disk_file->sure_n + 1);
    }
}

static void write_some_sectors(struct disk_file *disk_file, const struct waiting_write *write, struct draws *draws)
{
    for (size_t at = 0; at < write->n; at += SECTOR) {
        size_t n = MIN(SECTOR, write->n - at);
        bool is_there = draw_below(draws, 2);
        bool is_torn = draw_below(draws, 50) == 0;
        if (is_torn)
            n = draw_below(draws, n);
        if (is_there)
            memcpy(disk_file->sure + write->at + at, write->bytes + at, n);
    }
}

void cut_file(struct disk_file *disk_file, struct draws *draws)
{
    enum { NOTHING, ALL, SOME, KINDS };
    for (size_t i = 0; i < disk_file->n_waiting; i++) {
        const struct waiting_write *write = &disk_file->waiting[i];
        size_t kind = draw_below(draws, KINDS);
        if (kind == ALL)
            memcpy(disk_file->sure + write->at, write->bytes, write->n);
        else if (kind == SOME)
            write_some_sectors(disk_file, write, draws);
    }
    drop_waiting(disk_file);
    disk_file->sure_n = length_after_cut(disk_file, draws);
    disk_file->n = disk_file->sure_n;
    if (disk_file->room > disk_file->n)
        memset(disk_file->sure + disk_file->n, 0, disk_file->room - disk_file->n);
}

void empty_file(struct disk_file *disk_file)
{
    drop_waiting(disk_file);
    free(disk_file->waiting);
    free(disk_file->sure);
    *disk_file = (struct disk_file){0};
}
