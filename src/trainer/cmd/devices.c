/* devices.c - yard devices */
#include "cmd.h"
#include "trainer/train/train.h"

static const struct page page = {
    "devices", "[--json]", "Shows the OpenCL platforms and devices, numbered as -d takes them.", OF_DEVICES, NULL,
    NULL,      false};

int run_devices(int argc, char **argv)
{
    list_devices(parse_settings(&page, argc, argv)->json);
    return EXIT_OK;
}
