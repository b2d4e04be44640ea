/* devices.c - yard devices */
#include "../train/train.h"
#include "cmd.h"

#include <stdlib.h>

int cmd_devices(int argc, char **argv)
{
    char **words;
    int n_words;
    const struct settings *s = parse_settings(CMD_DEVICES, argc, argv, &words, &n_words);
    if (n_words)
        fail(EXIT_USAGE, "yard devices takes no '%s'; see `yard devices --help`", words[0]);
    list_devices(stdout, s->json);
    free(words);
    return EXIT_OK;
}
