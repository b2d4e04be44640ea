/* collective.c - one tensor to many devices, and sums over devices.
 *
 * Devices of one context copy directly, each copy on the sender's download lane.  Between contexts the bytes come down
 * to the host once, and go up from there to each receiver on an upload lane that batches do not use.  All these copies
 * are one *message*: each has its number.
 *
 * Sums are in rank order on every device, ((x0 + x1) + x2) ..., so that their bits do not depend on which device
 * computes them.
 */
#include "mesh.h"

#include "cl/shared.h"
#include "trainer/step/kernel_args.h"

enum { ALIGNED = DEVICE_ALIGNMENT / ELEMENT_BYTES }; /* elements: where a rank's part of a tensor may begin */

void add_broadcast(struct list *list, const char *name, struct tensor *const *targets, int n, struct tensor *source,
                   const char *purpose)
{
    struct tensor *staged = NULL; /* the bytes on the host, if one of the copies goes through it */
    list->extra.last_message++;
    list->extra.message = list->extra.last_message;
    for (int i = 0; i < n; i++) {
        bool direct = targets[i]->device->context == source->device->context;
        if (!direct && !staged)
            staged = add_download(list, name, source, purpose);
        add_copy_for(list, name, targets[i], direct ? source : staged, purpose);
    }
    list->extra.message = 0;
}

void add_move(struct list *list, const char *name, struct tensor *to, struct tensor *from, const char *purpose)
{
    add_broadcast(list, name, &to, 1, from, purpose);
}

void add_broadcast_from(struct list *list, const char *name, struct tensor *const *tensors, int n, int from)
{
    struct tensor **targets = allocate_each(n, sizeof *targets);
    for (int turn = 1; turn < n; turn++)
        targets[turn - 1] = tensors[(from + turn) % n];
    add_broadcast(list, name, targets, n - 1, tensors[from], FOR_MOVES);
    free(targets);
}

struct tensor *view_of_shard(struct pool *pool, struct tensor *tensor, int number, struct range shard)
{
    char name[TENSOR_NAME];
    const struct shape shape = SHAPE((int64_t)(shard.end - shard.begin));
    if (shard.begin == 0 && shard.end == count_elements(tensor))
        return tensor;
    snprintf(name, sizeof name, "%.*s/%d", NAME_OF_WHOLE, tensor->name, number);
    return new_view(pool, tensor, name, shard.begin, shape);
}

void add_into(struct list *list, const char *name, struct tensor *sum, struct tensor *addend)
{
    struct lane *lane = sum->device->lanes[LANE_COMPUTE];
    size_t elements = count_elements(sum);
    struct arg args[] = {INOUT(sum), IN(addend), ELEMENTS(elements)};
    struct kernel_call call = {.file = "elementwise.cl", .kernel = "add_to", .args = args, .n_args = COUNT(args)};
    call.grid = groups_on(sum->device, ceil_div(elements, BLOCK));
    struct task *task = add_kernel(list, lane, name, &call);
    set_elementwise(task);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Moves an addend, a part of a tensor, to the device that sums it, unless it is there; returns it there. */
static struct tensor *move_addend(struct list *list, const char *name, struct tensor *addend, struct device *device)
{
    if (addend->device == device)
        return addend;
    const struct tensor_form form = {
        .device = device,
        .class = addend->class,
        .name = JOINED(name, ".received"),
        .shape = addend->shape,
    };
    struct tensor *received = new_tensor(list->pool, &form);
    as_buffer(received);
    add_move(list, JOINED(name, ".move"), received, addend, FOR_MOVES);
    return received;
}

/* In each turn the devices receive from different senders, so that none sends to all at once. */
struct tensor **add_reduce_moves(struct list *list, const char *name, struct tensor *const *tensors, int n,
                                 size_t grain)
{
    struct tensor **parts = allocate_each(n * n, sizeof *parts);
    for (int turn = 0; turn < n; turn++)
        for (int k = 0; k < n; k++) {
            struct range mine = flat_part(count_elements(tensors[0]), grain, k, n);
            int sender = (k + turn) % n;
            if (mine.begin == mine.end)
                continue;
            struct tensor *addend = view_of_shard(list->pool, tensors[sender], k, mine);
            parts[k * n + sender] = move_addend(list, name, addend, tensors[k]->device);
        }
    return parts;
}

/* The n addends of a part are added up in rank order.  The sum is collected in one of them, the collector.  In place,
 * that is addend k, a part of tensor k itself.  Apart, it is an addend that was received.  For n = 3:
 *
 *     device 0, in place    x0 += x1    x0 += x2      x0 is a part of tensor 0
 *     device 1, in place    x1 += x0    x1 += x2      the same bits as x0 + x1
 *     device 2, in place    x0 += x1    x2 += x0
 *     device 0, apart       x1 += x0    x1 += x2      x0 may not be written: it is a part of tensor 0
 *     devices 1 and 2       x0 += x1    x0 += x2      x0 was received */
struct tensor **add_reduce_sums(struct list *list, const char *name, struct tensor *const *parts, int n,
                                enum sums_in where)
{
    bool in_place = where == SUMS_IN_PLACE;
    struct tensor **sums = allocate_each(n, sizeof *sums);
    for (int k = 0; k < n; k++) {
        struct tensor *sum = parts[k * n];
        int collector = in_place ? k : 0; /* the addend that collects the sum in the end */
        if (!in_place && k == 0)
            collector = 1;
        for (int i = 1; sum && i < n; i++) {
            struct tensor *next = parts[k * n + i];
            if (i == collector) {
                add_into(list, JOINED(name, ".add"), next, sum);
                sum = next;
            } else {
                add_into(list, JOINED(name, ".add"), sum, next);
            }
        }
        if (sum && !in_place)
            sum->extra.is_buffer = false; /* nothing else holds the sum */
        sums[k] = sum;
    }
    return sums;
}

void add_all_gather(struct list *list, const char *name, struct tensor *const *tensors, int n)
{
    struct tensor **copies = allocate_each(n, sizeof *copies);
    for (int k = 0; k < n; k++) {
        struct range part = flat_part(count_elements(tensors[k]), ALIGNED, k, n);
        if (part.begin == part.end)
            continue;
        for (int i = 0; i < n; i++)
            copies[i] = view_of_shard(list->pool, tensors[i], k, part);
        add_broadcast_from(list, JOINED(name, ".send"), copies, n, k);
    }
    free(copies);
}

void add_all_reduce(struct list *list, const char *name, struct tensor *const *tensors, int n)
{
    struct tensor **parts = add_reduce_moves(list, name, tensors, n, ALIGNED);
    struct tensor **sums = add_reduce_sums(list, name, parts, n, SUMS_IN_PLACE); /* parts of the tensors */
    add_all_gather(list, name, tensors, n);
    free(parts);
    free(sums);
}
