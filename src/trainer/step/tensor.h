/* tensor.h - tensors, arrays that each have a name, a shape, a place and a lifetime, and the pool that owns them.
 * Implemented in tensor.c, and slots in slots.c.
 *
 * Protocol: new_pool(); new_tensor(), new_view(), while lists are built; place() gives addresses (list.h); only then
 * tensor_buffer(), tensor_memory(), write_tensor(), read_tensor(); free_pool().
 */
#ifndef TENSOR_H
#define TENSOR_H

#include "tensor_extra.h"
#include "trainer/device/device.h"

/* ---- tensors: pool.c, tensor.c, tensor_bytes.c ------------------------------------------------------------------- */

/* What a tensor holds.  No tensor is made with the class MEM_BUFFERS: reports count a tensor in this class, instead of
 * its own, if as_buffer() has marked it. */
enum memory_class { MEM_PARAMETERS, MEM_GRADIENTS, MEM_OPTIMIZER, MEM_ACTIVATIONS, MEM_WORK, MEM_BUFFERS, MEM_CLASSES };
extern const char *const memory_class_name[MEM_CLASSES + 1]; /* NULL ends them */
enum element_type { FLOAT32, INT32 };                        /* both have 4 bytes */

/* Is the float with these bits finite?  In infinities and NaNs all bits of the exponent are ones. */
static inline bool is_finite_word(uint32_t word) { return (word & 0x7F800000) != 0x7F800000; }

/* The bytes of names of lists, operations, tasks and tensors, with their ends. */
enum { LIST_NAME = 24, OP_NAME = 32, TASK_NAME = 40, TENSOR_NAME = 48 };
enum { NAME_OF_WHOLE = TENSOR_NAME - 12 }; /* how much of it a part's name has, before a sign and a number */
enum { ELEMENT_BYTES = 4, MOST_DIMS = 4, SLABS_PER_DEVICE = 256 };

struct shape {
    int n_dims;
    int64_t size[MOST_DIMS]; /* elements along each dimension, the outermost first */
};

/* A shape, from its sizes: SHAPE(rows, columns) */
#define SHAPE(...) ((struct shape){.n_dims = (int)COUNT(((int64_t[]){__VA_ARGS__})), .size = {__VA_ARGS__}})

/* Elements, or bytes, [begin, end) of a tensor; perhaps none. */
struct range {
    size_t begin, end;
};

/* Where a persistent storage gets its first bytes: all replicas of a tensor start as bytes of this one.  A storage that
 * is no replica, nor a part of one, names itself in `of`, with `begin` 0. */
struct replica_bytes {
    struct tensor *of;
    size_t begin;  /* the storage's first byte, counted in those of `of` */
    bool is_shard; /* it is one rank's part of `of`; tasks read whole copies, which are put together from such parts */
};

/* An array with a name, a shape, one place and one lifetime.  A *view* is a part of another tensor (its storage) with a
 * name and shape of its own: the weights of a layer are views of the layer's one parameter tensor. */
struct tensor {
    size_t id; /* position in the pool */
    char name[TENSOR_NAME];
    enum element_type type; /* of its elements */
    struct shape shape;
    size_t bytes;
    struct device *device;
    enum memory_class class;
    bool persistent;          /* keeps its value from step to step, and its address in all lists */
    struct tensor *storage;   /* the tensor that has the bytes: itself, unless it is a view */
    size_t offset;            /* bytes from the storage's start; 0 unless it is a view */
    struct tensor *next_view; /* a chain that begins at each storage: its views, the newest first; NULL ends it */

    struct replica_bytes replica; /* of a persistent storage */

    /* Set by place(), for storages. */
    struct list *list;           /* the list it lives in; NULL while unused or persistent */
    int held_from, held_until;   /* positions in that list between which its bytes are held */
    const struct device *copier; /* a device whose task writes it, or else one that reads it; NULL: only the host */
    int slab;                    /* index in the device's slabs; NONE: it has no address */
    size_t address;              /* bytes from the slab's start */
    cl_mem buffer;               /* the sub-buffer, which tensor_buffer() makes on first use */

    struct tensor_extra extra; /* what only a few tensors have: tensor_extra.h, which a first reading skips */
};

/* All tensors that share the arenas of a machine. */
struct pool {
    struct machine *machine;
    struct slots slots;
    struct tensor **tensors;
    size_t n, cap;
};
struct pool *new_pool(struct machine *machine);
void free_pool(struct pool *pool); /* frees the tensors, their sub-buffers and the slabs too */

/* Frees all tensors but the first n; no list may use a tensor that goes. */
void drop_tensors(struct pool *pool, size_t n);

/* The pool owns all tensors that these functions make. */

/* What a new tensor is; the fields are those of struct tensor. */
struct tensor_form {
    struct device *device;
    enum memory_class class;
    const char *name;       /* it is copied */
    enum element_type type; /* of an element; where it is left out: FLOAT32 */
    struct shape shape;
};
struct tensor *new_tensor(struct pool *pool, const struct tensor_form *form);

/* One of floats, of the class MEM_WORK. */
struct tensor *new_work_tensor(struct pool *pool, struct device *device, const char *name, struct shape shape);

/* The same, but it persists. */
struct tensor *new_kept_work_tensor(struct pool *pool, struct device *device, const char *name, struct shape shape);

/* A new tensor on that device: name, class, shape and bytes are those of `like`. */
struct tensor *tensor_like(struct pool *pool, struct device *device, const struct tensor *like);

/* A view of `base` that begins `offset` elements after the start of `base`.  Where an OpenCL kernel takes the view, its
 * offset in bytes must be a multiple of the device's alignment. */
struct tensor *new_view(struct pool *pool, struct tensor *base, const char *name, size_t offset, struct shape shape);

/* A view of these bytes of `base`, which need not be as many as the shape says. */
struct tensor *new_view_of_bytes(struct pool *pool, struct tensor *base, const char *name, struct range bytes,
                                 struct shape shape);

/* Marks the tensor as a buffer: for a while it holds a copy, or a partial sum, of another tensor.  Reports then count
 * its bytes as buffers, whatever its class: counted_as().  Returns the tensor. */
struct tensor *as_buffer(struct tensor *tensor);
enum memory_class counted_as(const struct tensor *tensor);

bool same_bytes(const struct tensor *a, const struct tensor *b);  /* are they the same part of one storage? */
bool share_bytes(const struct tensor *a, const struct tensor *b); /* are they overlapping parts of one storage? */
size_t count_elements(const struct tensor *tensor);
cl_mem tensor_buffer(struct tensor *tensor); /* the sub-buffer of an OpenCL device's tensor; call it after place() */
void *tensor_memory(const struct tensor *tensor); /* the bytes of a host tensor; call it after place() */

/* Blocking copies for set-up, checks and saving; nothing may be in flight. */
void write_tensor(struct tensor *tensor, const void *from); /* all its bytes; its mirrors are written too */
void read_tensor(struct tensor *tensor, void *into);

/* Blocking copies of n bytes of the tensor, from byte `begin` on. */
void write_bytes_of(struct tensor *tensor, size_t begin, size_t n, const void *from);
void read_bytes_of(struct tensor *tensor, size_t begin, size_t n, void *into);

/* ---- slots.c: a slot for each of a few iterations ---------------------------------------------------------------- */

/* Takes a free slot for the iteration.  Returns the slot's number, from 1; 0: none is free. */
int take_slot(struct slots *slots, uint32_t iteration);

/* The iteration gives its slot back.  durable: the slot stays taken until a later iteration's is durable. */
void return_slot(struct slots *slots, uint32_t iteration, bool durable);

int slot_of(const struct slots *slots, uint32_t iteration);  /* 0: the iteration has none */
struct tensor *tensor_in_slot(struct tensor *tensor, int k); /* given the one in slot 1, or a part of it */

/* The tensor that is meant in this iteration: the tensor itself, or, where it lies in slots, the same part in the slot
 * that the iteration has. */
struct tensor *tensor_at(struct tensor *tensor, uint32_t iteration);

#endif
