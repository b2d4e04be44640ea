/* screen.h - lines on a terminal that are drawn over: screen.c. */
#ifndef SCREEN_H
#define SCREEN_H

#include <stdbool.h>
#include <stdint.h>

bool is_screen(int fd);   /* a terminal that can write over a line */
int screen_width(int fd); /* the terminal's columns; 80 when it does not say */

/* Draws a line on the terminal `fd`, over the line that was drawn last, and cut to the terminal's width.  A line
 * that STAYS is not drawn over: the next line begins below it. */
enum drawn_line { IS_DRAWN_OVER, STAYS };
void write_over(int fd, const char *text, enum drawn_line fate);

bool may_redraw(void); /* true ten times a second; asked before a line is made that does not stay */
void erase_line(void); /* erases the last drawn line, unless it stays; may be called in a signal's handler */

/* Say on stderr how far long work, "validating", has come since the time `begun`.  Only a terminal is told, and only
 * after the first second; the caller calls erase_line() at the end.  share: the part that is done, 0 to 1. */
void show_busy(const char *activity, uint64_t begun, double share);

#endif
