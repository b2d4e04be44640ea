/* test_random.c - random numbers: the same ones for the same seed, on every machine.
 *
 * It tests random.c of src/trainer/base.  It checks that Philox gives the numbers that its authors published, and that
 * normal numbers are those of Box and Muller.  It catches a change of any bit, which would change all trainings.
 *
 * To see it fail: in random.c, exchange sine and cosine.
 */
#include "tests/support/child.h"
#include "trainer/base/base.h"

#include <math.h>

/* The known answers that come with Random123, the reference implementation (philox4x32, 10 rounds). */
TEST(philox_gives_the_published_numbers)
{
    static const struct {
        uint64_t seed, element;
        uint32_t step, stream;
        uint32_t answer[4];
    } known[] = {
        {.seed = 0, .element = 0, .step = 0, .stream = 0, .answer = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {.seed = UINT64_MAX,
         .element = UINT64_MAX,
         .step = UINT32_MAX,
         .stream = UINT32_MAX,
         .answer = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {.seed = 0x299f31d0a4093822,
         .element = 0x85a308d3243f6a88,
         .step = 0x13198a2e,
         .stream = 0x03707344,
         .answer = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        struct random4 random4 = random_words(known[i].seed, known[i].stream, known[i].step, known[i].element);
        assert_memory_equal(random4.word, known[i].answer, sizeof random4.word);
    }
}

/* The formula, written once more: the initial weights of every published run depend on these bits. */
TEST(normal_numbers_are_those_of_box_and_muller)
{
    for (uint64_t i = 0; i < 1000; i++) {
        struct random4 random4 = random_words(9, STREAM_INIT, 1, i);
        double u1 = ldexp((double)random4.word[0], -32) + ldexp((double)(random4.word[1] >> 11), -53);
        double u2 = ldexp((double)random4.word[2], -32) + ldexp((double)(random4.word[3] >> 11), -53);
        assert_close(random_uniform(9, STREAM_INIT, 1, i), u1, 0);
        assert_close(random_normal(9, STREAM_INIT, 1, i), sqrt(-2 * log(1 - u1)) * cos(2 * M_PI * u2), 1e-12);
    }
}
