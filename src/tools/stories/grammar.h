/* grammar.h - what grammar.c makes of a grammar: the states of a Markov chain, and the phrases that they may say. */
#ifndef GRAMMAR_H
#define GRAMMAR_H

#include "stories.h"

enum {
    TABLES = 16,  /* the most tables of a grammar */
    NO_ROW = 255, /* no row of a table: so it has fewer */
};

struct source_line {   /* a line of the grammar, without its comment */
    int number;        /* from 1, as editors count */
    const char **word; /* [n], and NULL after them */
    size_t n;
};

struct block {                 /* a table or a scene */
    struct source_line head;   /* "hero name he" or "end hero" */
    struct source_line *lines; /* the table's rows, or the scene's choices */
    size_t n, cap;
};

struct blocks {
    struct block *items;
    size_t n, cap;
};

struct phrase {   /* what a state may say */
    char *bytes;  /* [n], and a zero byte after them; blanks and line breaks are what _ and / stood for */
    size_t n;     /* at least 1 */
    double share; /* how likely the state says this phrase: those of a state are 1 together */
    size_t next;  /* the state that follows then, by index */
};

struct state {
    const struct block *scene;
    unsigned char row[TABLES]; /* by table: the row that the state remembers, or NO_ROW */
    size_t first, end;         /* phrases [first, end) are its own */
    double visits;             /* how often a story visits this state, on average */
};

struct stories {
    const char *path;   /* the grammar's, for messages */
    char *text;         /* the grammar's, cut into words; owned */
    const char **words; /* they point into the text, and source_line.word into this array */
    struct blocks tables, scenes;
    struct phrase *phrases; /* those of a state are side by side, in the order of their bytes */
    struct state *states;   /* a story begins in the first one, and ends when it comes back there */
    size_t n_phrases, cap_phrases, n_states, cap_states;
};

#endif
