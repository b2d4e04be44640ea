/* swap.h - tensors leave a device for the host while no task uses them, and come back in time.  This header has what
 * other folders know of that: the options.
 *
 *     swap.c            the technique: finds gaps, and swaps those that a fixed order names       begin here
 *     swap_auto.c       --swap auto, --recompute auto: a search says which gaps
 *     swap_choice.c     what a choice of that search does to the list: a fate for each gap
 *     swap_positions.c  between which tasks the copies of that choice come
 *     swap_report.c     what people and `plan --json` are told
 *     swap_pass.c       the pass: its options, and which of the two runs
 *
 * swap_parts.h has what these files know of one another, and swap_search.h what only the files of the search know.
 *
 * Machinery from elsewhere: the search is planning/search/search.c; planning/pass/fetch.c, guest.c and remake.c add
 * copies and repeat tasks.
 */
#ifndef SWAP_H
#define SWAP_H

enum swap { SWAP_OFF, SWAP_AUTO, SWAP_LAYER, SWAP_MICROBATCH };

struct swap_options {
    enum swap mode;
    unsigned may_leave; /* the classes of tensors that may leave: a bit per enum memory_class */
};
extern struct swap_options asked_swap; /* what the options of the command line ask for */

#endif
