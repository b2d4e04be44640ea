/* hash.h - a number that stands for the content of bytes: hash.c. */
#ifndef HASH_H
#define HASH_H

#include <stddef.h>
#include <stdint.h>

/* 64-bit content hash (XXH64), about memory speed. */
uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed);

#endif
