/* devices.c - yard devices */
#include "../train/train.h"
#include "cmd.h"

int cmd_devices(int argc, char **argv)
{
    list_devices(parse_settings(CMD_DEVICES, argc, argv)->json);
    return EXIT_OK;
}
