/* hash.c - XXH64, Yann Collet's 64-bit content hash: four independent lanes of multiply-rotate, so that the processor
 * works on all four at once and the hash runs at about the speed of memory.  It finds damage; it does not stop a
 * forger.
 */
#include "base.h"

static const uint64_t P1 = 0x9E3779B185EBCA87u; /* five primes: the names are those of the specification */
static const uint64_t P2 = 0xC2B2AE3D27D4EB4Fu;
static const uint64_t P3 = 0x165667B19E3779F9u;
static const uint64_t P4 = 0x85EBCA77C2B2AE63u;
static const uint64_t P5 = 0x27D4EB2F165667C5u;

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static uint64_t load64(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, 8); /* the bytes may be unaligned */
    return x;
}

static uint64_t mix(uint64_t lane, uint64_t input) { return rotate(lane + input * P2, 31) * P1; }

/* The hash of whole blocks of 32 bytes: each lane takes 8 bytes of every block. */
static uint64_t hash_blocks(const unsigned char *p, size_t blocks, uint64_t seed)
{
    uint64_t lane[4] = {seed + P1 + P2, seed + P2, seed, seed - P1};
    for (size_t block = 0; block < blocks; block++) {
        lane[0] = mix(lane[0], load64(p));
        lane[1] = mix(lane[1], load64(p + 8));
        lane[2] = mix(lane[2], load64(p + 16));
        lane[3] = mix(lane[3], load64(p + 24));
        p += 32;
    }
    uint64_t hash = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (int i = 0; i < 4; i++)
        hash = (hash ^ mix(0, lane[i])) * P1 + P4;
    return hash;
}

uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    size_t left = n; /* bytes that are still to be hashed */
    uint64_t hash = seed + P5;
    if (n >= 32) {
        hash = hash_blocks(p, n / 32, seed);
        left = n % 32;
        p += n - left;
    }
    hash += n;
    for (; left >= 8; left -= 8) {
        hash = rotate(hash ^ mix(0, load64(p)), 27) * P1 + P4;
        p += 8;
    }
    if (left >= 4) {
        uint32_t word;
        memcpy(&word, p, 4);
        hash = rotate(hash ^ word * P1, 23) * P2 + P3;
        p += 4;
        left -= 4;
    }
    for (; left > 0; left--) {
        hash = rotate(hash ^ *p * P5, 11) * P1;
        p++;
    }
    hash = (hash ^ hash >> 33) * P2; /* spread every input bit over all output bits */
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}
