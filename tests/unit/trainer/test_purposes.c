/* test_purposes.c - lanes of their own for tasks of one purpose.
 *
 * It tests purposes.c of src/trainer/device.  It checks that each purpose gets a lane of its own while the link takes
 * more lanes, and then the last lane.  It catches a lane more than `queues=` of a step file allows, and a purpose that
 * gets two lanes.
 *
 * To see it fail: in purposes.c, take the most lanes for allowed: > in place of >= beside max_lanes.
 *
 * The device is only described, and its link up takes three lanes.
 */
#include "tests/support/child.h"
#include "trainer/device/driver.h"

static struct machine *machine_with_link(int max_lanes)
{
    struct machine *machine = new_machine(1);
    struct device *device = set_up_device(machine, 0, "gpu", 1 << 20);
    struct link *up = add_link(machine, 1e9, 0);
    up->max_lanes = max_lanes;
    device->extra.described.links[LINK_UP] = up;
    return machine;
}

TEST(a_purpose_has_a_lane_until_the_link_takes_no_more)
{
    struct machine *machine = machine_with_link(3);
    struct device *device = &machine->devices[0];
    struct lane *standard = device->lanes[LANE_UPLOAD];
    assert_int_equal(count_lanes(device, LANE_UPLOAD), 1);
    struct lane *a = lane_for(machine, device, LANE_UPLOAD, "a");
    struct lane *b = lane_for(machine, device, LANE_UPLOAD, "b");
    assert_int_equal(count_lanes(device, LANE_UPLOAD), 3);
    assert_ptr_not_equal(a, standard);
    assert_ptr_not_equal(b, standard);
    assert_ptr_not_equal(a, b);
    struct lane *c = lane_for(machine, device, LANE_UPLOAD, "c");
    assert_int_equal(count_lanes(device, LANE_UPLOAD), 3);
    assert_ptr_equal(c, b); /* the last lane, which stays b's */
    assert_string_equal(b->purpose, "b");
    close_machine(machine);
}

TEST(a_purpose_has_one_lane_however_often_it_is_asked_for)
{
    struct machine *machine = machine_with_link(3);
    struct device *device = &machine->devices[0];
    struct lane *a = lane_for(machine, device, LANE_UPLOAD, "a");
    assert_ptr_equal(lane_for(machine, device, LANE_UPLOAD, "a"), a);
    assert_int_equal(count_lanes(device, LANE_UPLOAD), 2);
    close_machine(machine);
}

TEST(a_lane_for_nothing_is_taken_by_the_first_purpose)
{
    struct machine *machine = machine_with_link(3);
    struct device *device = &machine->devices[0];
    struct lane *idle = open_lane(machine, device, LANE_UPLOAD, 1);
    set_purpose(idle, FOR_NOTHING);
    assert_ptr_equal(lane_for(machine, device, LANE_UPLOAD, "a"), idle);
    assert_string_equal(idle->purpose, "a");
    close_machine(machine);
}

/* Numbers of lanes may have gaps, as in a step file with a lane upload7. */
TEST(a_new_lane_has_a_number_that_no_other_has)
{
    struct machine *machine = machine_with_link(0); /* 0: any number of lanes */
    struct device *device = &machine->devices[0];
    open_lane(machine, device, LANE_UPLOAD, 7);
    assert_int_equal(lane_for(machine, device, LANE_UPLOAD, "a")->nth, 8);
    close_machine(machine);
}
