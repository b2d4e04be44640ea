/* test_array.c - arrays that grow and are searched, and memory.
 *
 * It tests array.c and allocate.c of src/trainer/base.  It catches a search that ends beside its place, an item that is
 * lost when another one is inserted, and a product of sizes that wraps around to a small number.
 *
 * To see it fail: in array.c, let lower_bound() pass by a place: low = middle + 2.
 *
 * The expected places are those that a walk from the first item finds.
 */
#include "tests/support/child.h"
#include "tests/support/sorted.h"
#include "trainer/base/base.h"

/* The array has 0, 2, 4 ..., one more each time.  A search finds the place that a walk finds. */
TEST(places_in_arrays_are_found_and_made)
{
    enum { MOST = 40 };
    int *items = NULL;
    size_t cap = 0;
    size_t n = 0;
    while (n <= MOST) {
        for (int key = -1; key <= 2 * (int)n; key++) {
            size_t place = place_by_walk(items, n, key);
            assert_int_equal(lower_bound(&key, items, n, sizeof *items, is_smaller), place);
        }
        items = insert_item(items, &n, &cap, 0, sizeof *items);
        for (size_t i = 1; i < n; i++)
            items[i] += 2;
        items[0] = 0;
    }
    free(items);
}

static void reallocate_too_much(void *unused)
{
    (void)unused;
    free(reallocate(NULL, SIZE_MAX / 2, 4)); /* the product wraps around to a small number */
}

TEST(allocation_is_never_null)
{
    expect_refusal(reallocate_too_much, NULL, EXIT_USAGE, "out of memory");
    char *nothing = allocate(0, 8);
    assert_non_null(nothing);
    free(nothing);
    char *text = lasting("%d-%s", 5, "x");
    assert_string_equal(text, "5-x");
}
