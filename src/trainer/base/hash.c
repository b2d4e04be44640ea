/* hash.c - XXH64, Yann Collet's 64-bit content hash: four independent lanes of multiply-rotate, so that the processor
 * works on all four at once and the hash runs at about the speed of memory.  It finds damage; it does not stop a
 * forger.
 */
#include "base.h"

static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u,
                      P4 = 0x85EBCA77C2B2AE63u, P5 = 0x27D4EB2F165667C5u;

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static uint64_t load64(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, 8); /* the bytes may be unaligned */
    return x;
}

static uint64_t mix(uint64_t lane, uint64_t input) { return rotate(lane + input * P2, 31) * P1; }

uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes, *end = n ? p + n : p; /* of none `bytes` may be NULL */
    uint64_t a = seed + P1 + P2, b = seed + P2, c = seed, d = seed - P1, hash = seed + P5;
    for (; end - p >= 32; p += 32) {
        a = mix(a, load64(p));
        b = mix(b, load64(p + 8));
        c = mix(c, load64(p + 16));
        d = mix(d, load64(p + 24));
    }
    if (n >= 32) {
        const uint64_t lane[] = {a, b, c, d};
        hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
        for (int i = 0; i < 4; i++)
            hash = (hash ^ mix(0, lane[i])) * P1 + P4;
    }
    hash += n;
    for (; end - p >= 8; p += 8) /* the fewer than 32 bytes that are left */
        hash = rotate(hash ^ mix(0, load64(p)), 27) * P1 + P4;
    if (end - p >= 4) {
        uint32_t word;
        memcpy(&word, p, 4);
        hash = rotate(hash ^ word * P1, 23) * P2 + P3;
        p += 4;
    }
    for (; p < end; p++)
        hash = rotate(hash ^ *p * P5, 11) * P1;
    hash = (hash ^ hash >> 33) * P2; /* spread every input bit over all output bits */
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}
