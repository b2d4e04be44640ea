/* base.h - what all other folders use, in one line.  Nothing in this folder calls OpenCL or trains.  Only the
 * random streams (random.h), and what folders register (module.h, additions.h), know of other folders.
 *
 *     error.h       a sentence and an exit code        error.c
 *     process.h     signals, this process              process.c
 *     clock.h       the time                           clock.c
 *     screen.h      lines on a terminal                screen.c
 *     random.h      random numbers                     random.c
 *     hash.h        hashes                             hash.c
 *     allocate.h    memory                             allocate.c
 *     arithmetic.h  minimum, multiples                 arithmetic.c
 *     array.h       growing, sorting, searching        array.c
 *     text.h        texts, numbers as text, UTF-8      text.c, utf8.c
 *     options.h     words of the command line          options.c, options_help.c
 *
 * These are included where they are used:
 *
 *     json.h        numbers and texts as JSON          json.c
 *     module.h      how folders register themselves    module.c
 *     additions.h   what they add to the trainer       additions.c
 *     embedded.h    files inside the program           build/embedded.c, which make writes
 *     lane.h        the kinds of lanes
 *
 * The first word of a function that makes something says what becomes of it:
 *
 *     new_X()       returns a pointer to a new X, which free_X() frees, unless its comment names an owner
 *     make_X()      returns a struct, or fills in one that is there already
 *     add_X()       appends to what it is given, which owns the new X
 *     open_X()      returns something behind which a file, a device or the like is open; close_X() closes it
 */
#ifndef BASE_H
#define BASE_H

#include "allocate.h"   /* brings: allocate, allocate_each, copy_string, copy_bytes */
#include "arithmetic.h" /* brings: MIN, MAX, round_up, ceil_div */
#include "array.h"      /* brings: GROW, COUNT, NONE, SORT, COMPARE, lower_bound() */
#include "clock.h"      /* brings: now_ns */
#include "error.h"      /* brings: fail, warn, inform, say, must, attempt, problem, cleanup, CHECK */
#include "hash.h"       /* brings: hash_bytes */
#include "options.h"    /* brings: option, option_table */
#include "process.h"    /* brings: interrupted, live_in_child */
#include "random.h"     /* brings: random_words, random_uniform, random_normal, and the streams */
#include "screen.h"     /* brings: write_over, show_busy */
#include "text.h"       /* brings: format_string, append_text, format_number, JOINED, text_stream, PRINTF_LIKE */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define YARD_VERSION "0.2" /* also written into saved files, so that each says which version made it */

#endif
