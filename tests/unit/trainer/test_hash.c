/* test_hash.c - the hash of bytes, which is xxHash's XXH64.
 *
 * It tests hash.c of src/trainer/base.  It catches a wrong answer for any of the lengths that the code treats apart: 0,
 * less than 4, 8 and 32 bytes, and more.
 *
 * To see it fail: in hash.c, let the first of the last three shifts be one by 32 instead of 33.
 */
#include "tests/support/child.h"
#include "trainer/base/base.h"

/* The answers are those of the reference implementation, libxxhash 0.8.1, over bytes 37 i + 11. */
TEST(the_hash_gives_the_published_numbers)
{
    static const struct {
        size_t n;
        uint64_t seed0, seed1;
    } known[] = {
        {0, 0xEF46DB3751D8E999u, 0xAC75FDA2929B17EFu},   {1, 0xF592C0C7639C4CB6u, 0xE7FDA85A72454615u},
        {3, 0x22C08528601D4F27u, 0x5CBB7F85404A1F73u},   {4, 0xFB1E5CF2F1AE4D95u, 0x9994339DD3CF0D91u},
        {7, 0x5613AC510496C04Eu, 0xC53CCE27AE03AD38u},   {8, 0x57CB2B7521F3E21Au, 0xCD44F16C92A699DFu},
        {12, 0x2F53B00266039E64u, 0xDCE50FF235F73A04u},  {31, 0xE4A0E629E519A4AEu, 0x9FAB920EF1FC4E09u},
        {32, 0xCC6B8AAADA790B2Du, 0x881C3285B30B5A93u},  {33, 0x35EC49850475A832u, 0x207074871E91CB01u},
        {63, 0xBF9F0BA3CF95B28Au, 0xE28C6289B8031861u},  {64, 0x155CCCE4BF32BEFCu, 0x90535F3E4EAE4016u},
        {100, 0x4826E367566EA023u, 0xD57C2EA757C17569u}, {287, 0x117A145C212453ABu, 0xA0F1F11DE8AE1653u},
    };
    unsigned char bytes[301];
    unsigned char *odd = bytes + 1; /* unaligned on purpose */
    for (int i = 0; i < 300; i++)
        odd[i] = (unsigned char)(37 * i + 11);
    for (size_t i = 0; i < COUNT(known); i++) {
        assert_int_equal(hash_bytes(odd, known[i].n, 0), known[i].seed0);
        assert_int_equal(hash_bytes(odd, known[i].n, 0x9E3779B1u), known[i].seed1);
    }
    assert_int_equal(hash_bytes(NULL, 0, 0), known[0].seed0);
}
