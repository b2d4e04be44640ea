/* safetensors.h - a strict reader of safetensors files, and a writer: safetensors.c. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include "bytes.h"

#include <jansson.h>

enum dtype { DTYPE_F32, DTYPE_I32, DTYPE_F16, DTYPE_BF16, DTYPE_F64, DTYPE_OTHER };
enum { MOST_FILE_DIMS = 8 }; /* how many a tensor in a file may have; one of ours has at most MOST_DIMS */

struct st_tensor {
    char *name;
    enum dtype dtype;              /* DTYPE_OTHER: one that is not read here */
    const char *dtype_name;        /* as the file says it, "BF16" */
    int n_dims;                    /* 0: a single number */
    int64_t shape[MOST_FILE_DIMS]; /* elements along each dimension, the outermost first */
    uint64_t offset;               /* its first byte, from the start of the file */
    uint64_t bytes;                /* as many as shape and type need */
};

struct safetensors {
    struct reader *file;       /* open */
    size_t n;                  /* number of tensors */
    struct st_tensor *tensors; /* sorted by offset */
    json_t *metadata;          /* an object of texts; NULL: there is none */
};
bool fits_safetensors(const char *head, size_t n);      /* do the first n bytes of a file begin a safetensors file? */
struct safetensors *open_safetensors(const char *path); /* ends the program where the file is not one, or damaged */
void close_safetensors(struct safetensors *st);
const struct st_tensor *find_tensor(const struct safetensors *st, const char *name); /* NULL when absent */
const char *find_metadata(const struct safetensors *st, const char *key);            /* NULL when absent */
size_t st_elements(const struct st_tensor *stored);                                  /* product of the shape */

/* All elements as float (from F32, F16, BF16, F64), or as int32 (from I32).  Fails, and names the tensor, when the
 * dtype is another.  `into` has room for all elements. */
void read_floats(const struct safetensors *st, const struct st_tensor *stored, float *into);
void read_ints(const struct safetensors *st, const struct st_tensor *stored, int32_t *into);

/* Writes "[2, 16, 67]" into out; returns out. */
enum { SHAPE_TEXT = 128 };
char *format_shape(char out[SHAPE_TEXT], int n_dims, const int64_t *shape);

/* Writing: declare every tensor, call st_begin(), which writes the header, then write the bytes in the same order. */
struct st_writer;
struct st_writer *new_st_writer(const char *path);
void st_metadata(struct st_writer *writer, const char *key, const char *value);
void st_declare(struct st_writer *writer, const char *name, enum dtype dtype, int n_dims, const int64_t *shape);
uint64_t st_begin(struct st_writer *writer); /* returns the byte of the file where the data begin */
void st_write(struct st_writer *writer, const void *bytes, size_t n);
void st_publish(struct st_writer *writer); /* fails a CHECK when the bytes written are not the bytes declared */

#endif
