/* swap.h - what other folders know of --swap: the options that were given.
 *
 *     swap.c            finds the gaps, and swaps those that a fixed order names       begin here
 *     swap_auto.c       --swap auto, --recompute auto: a search says which gaps
 *     swap_choice.c     what a choice of that search does to the list: a fate for each gap
 *     swap_positions.c  between which tasks the copies of that choice come
 *     swap_report.c     what people and `plan --json` are told
 *     swap_pass.c       the pass: its options, and which of the two runs
 *
 * swap_parts.h has what these files know of one another.
 */
#ifndef SWAP_H
#define SWAP_H

enum swap { SWAP_OFF, SWAP_AUTO, SWAP_LAYER, SWAP_MICROBATCH };

struct swap_options {
    enum swap mode;
    unsigned may_leave; /* the classes of tensors that may leave: a bit per enum memory_class */
};
extern struct swap_options swap_options; /* what the options of the command line ask for */

#endif
