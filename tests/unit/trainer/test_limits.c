/* test_limits.c - how much memory the control groups of Linux leave to this process.
 *
 * It tests limits.c of src/trainer/device.  It catches a limit of an outer group that is overlooked, and a cache of
 * files that counts as memory in use, although the kernel gives it away.
 *
 * To see it fail: in limits.c, leave out inactive_file.
 *
 * The groups are folders and files that the test writes, in the form that the kernel gives them.
 */
#include "tests/support/child.h"
#include "trainer/device/driver.h"
#include "trainer/file/file.h"

/* Files of both versions below a root of our own: group job/step of version 2, and memory/a/b of version 1. */
static char *write_groups(void)
{
    static const char *const commands[] = {
        "mkdir -p job/step memory/a/b",
        "echo max >job/step/memory.max",
        "echo 5000 >job/memory.max",
        "echo 3000 >job/memory.current",
        "printf 'anon 7\\ninactive_file 600\\nactive_file 400\\n' >job/memory.stat",
        "echo 700 >memory/a/b/memory.limit_in_bytes",
        "echo 200 >memory/a/b/memory.usage_in_bytes",
    };
    char *root = temp_path("groups");
    make_folder(root);
    for (size_t i = 0; i < COUNT(commands); i++)
        assert_int_equal(system(lasting("cd '%s' && %s", root, commands[i])), 0);
    return root;
}

TEST(control_groups_leave_what_they_do_not_use)
{
    char *root = write_groups();
    const char *in_step = write_text("v2", "0::/job/step\n");
    const char *in_b = write_text("v1", "9:cpu:/\n4:memory:/a/b\n0::/\n");
    const char *elsewhere = write_text("none", "4:memory:/elsewhere\n0::/\n");
    size_t files = 600 + 400; /* bytes that the system gives up when memory is short */
    assert_int_equal(left_by_groups(in_step, root), 5000 - (3000 - files));
    assert_int_equal(left_by_groups(in_b, root), 700 - 200);
    assert_int_equal(left_by_groups(elsewhere, root), SIZE_MAX);
    assert_int_equal(left_by_groups(temp_path("missing"), root), SIZE_MAX);
}
