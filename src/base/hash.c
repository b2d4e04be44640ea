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

void hash_begin(struct hasher *h, uint64_t seed)
{
    *h = (struct hasher){.seed = seed, .lane = {seed + P1 + P2, seed + P2, seed, seed - P1}};
}

/* Whole 32-byte blocks; returns what is behind the last one. */
static const unsigned char *add_blocks(struct hasher *h, const unsigned char *p, const unsigned char *end)
{
    uint64_t a = h->lane[0], b = h->lane[1], c = h->lane[2], d = h->lane[3];
    for (; end - p >= 32; p += 32) {
        a = mix(a, load64(p));
        b = mix(b, load64(p + 8));
        c = mix(c, load64(p + 16));
        d = mix(d, load64(p + 24));
    }
    h->lane[0] = a, h->lane[1] = b, h->lane[2] = c, h->lane[3] = d;
    return p;
}

void hash_add(struct hasher *h, const void *bytes, size_t n)
{
    if (n == 0) /* `bytes` may be NULL */
        return;
    const unsigned char *p = bytes, *end = p + n;
    h->total += n;
    if (h->held) { /* complete the block that was begun */
        size_t more = MIN(32 - h->held, n);
        memcpy(h->block + h->held, p, more);
        h->held += more;
        p += more;
        if (h->held < 32)
            return;
        add_blocks(h, h->block, h->block + 32);
        h->held = 0;
    }
    p = add_blocks(h, p, end);
    h->held = (size_t)(end - p);
    memcpy(h->block, p, h->held);
}

uint64_t hash_end(const struct hasher *h)
{
    static const int turn[] = {1, 7, 12, 18};
    uint64_t hash = h->total >= 32 ? 0 : h->seed + P5;
    for (int i = 0; i < 4 && h->total >= 32; i++)
        hash += rotate(h->lane[i], turn[i]);
    for (int i = 0; i < 4 && h->total >= 32; i++)
        hash = (hash ^ mix(0, h->lane[i])) * P1 + P4;
    hash += h->total;
    const unsigned char *p = h->block, *end = p + h->held; /* the fewer than 32 bytes that are left */
    for (; end - p >= 8; p += 8)
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

uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    struct hasher h;
    hash_begin(&h, seed);
    hash_add(&h, bytes, n);
    return hash_end(&h);
}
