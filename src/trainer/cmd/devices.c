/* devices.c - yard devices */
#include "cmd.h"
#include "trainer/train/train.h"

int run_devices(int argc, char **argv)
{
    list_devices(parse_settings(CMD_DEVICES, argc, argv)->json);
    return EXIT_OK;
}
