/* support_disk.h - a file on a disk that may lose its power: what was written and not synced is then there, in part, or
 * not.
 *
 *     struct disk_file f = {0};
 *     disk_write(&f, bytes, n, at);     the write waits
 *     disk_sync(&f);                    all that waits is on the disk for sure
 *     disk_write(&f, more, n, at);
 *     cut_file(&f, &draws);             the power goes: of `more` the disk has what chance draws
 *     empty_file(&f);
 *
 * Nothing is written anywhere: the bytes are f.sure[0] to f.sure[f.sure_n - 1].  Names of files are not its business.
 */
#ifndef SUPPORT_DISK_H
#define SUPPORT_DISK_H

#include "support.h"

struct waiting_write {
    size_t at, n;
    char *bytes;
};
struct disk_file {
    char *sure;    /* what the disk has; zeros where nothing was written */
    size_t sure_n; /* its length, on the disk */
    size_t n;      /* its length, as programs see it */
    size_t room;   /* `sure` has so many bytes */
    struct waiting_write *waiting;
    size_t n_waiting, cap_waiting;
};

void disk_write(struct disk_file *f, const void *bytes, size_t n, size_t at);
void disk_sync(struct disk_file *f);

/* Writes that wait are lost: no sync brings them to the disk. */
void drop_waiting(struct disk_file *f);

/* The disk has nothing, all, or some sectors of each write that waits, and one of these may be torn.  The file is as
 * long as it was, as it was to be, or between. */
void cut_file(struct disk_file *f, struct draws *draws);

/* The file is new again, and holds no memory. */
void empty_file(struct disk_file *f);

#endif
