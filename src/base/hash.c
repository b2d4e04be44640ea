/* hash.c - XXH64, Yann Collet's 64-bit content hash: four independent lanes of multiply-rotate, so that the processor
 * works on all four at once and the hash runs at about the speed of memory.  It finds damage; it does not stop a
 * forger.
 */
#include "base.h"

#include <string.h>

static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u,
                      P4 = 0x85EBCA77C2B2AE63u, P5 = 0x27D4EB2F165667C5u;

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static uint64_t load64(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, 8); /* the bytes may be unaligned */
    return x;
}

static uint32_t load32(const unsigned char *p)
{
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
}

static uint64_t mix(uint64_t lane, uint64_t input) { return rotate(lane + input * P2, 31) * P1; }

static uint64_t merge(uint64_t hash, uint64_t lane) { return (hash ^ mix(0, lane)) * P1 + P4; }

/* The 32-byte blocks; *p is left behind the last whole one. */
static uint64_t hash_blocks(const unsigned char **p, const unsigned char *end, uint64_t seed)
{
    uint64_t a = seed + P1 + P2, b = seed + P2, c = seed, d = seed - P1;
    for (; end - *p >= 32; *p += 32) {
        a = mix(a, load64(*p));
        b = mix(b, load64(*p + 8));
        c = mix(c, load64(*p + 16));
        d = mix(d, load64(*p + 24));
    }
    uint64_t hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
    return merge(merge(merge(merge(hash, a), b), c), d);
}

/* The fewer than 32 bytes that are left. */
static uint64_t hash_tail(uint64_t hash, const unsigned char *p, const unsigned char *end)
{
    for (; end - p >= 8; p += 8)
        hash = rotate(hash ^ mix(0, load64(p)), 27) * P1 + P4;
    if (end - p >= 4) {
        hash = rotate(hash ^ load32(p) * P1, 23) * P2 + P3;
        p += 4;
    }
    for (; p < end; p++)
        hash = rotate(hash ^ *p * P5, 11) * P1;
    return hash;
}

/* Spread every input bit over all output bits. */
static uint64_t avalanche(uint64_t hash)
{
    hash = (hash ^ hash >> 33) * P2;
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}

uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    if (n == 0) /* `bytes` may be NULL */
        return avalanche(seed + P5);
    const unsigned char *p = bytes, *end = p + n;
    uint64_t hash = n >= 32 ? hash_blocks(&p, end, seed) : seed + P5;
    return avalanche(hash_tail(hash + n, p, end));
}
