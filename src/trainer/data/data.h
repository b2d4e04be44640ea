/* data.h - from files to windows of tokens.
 *
 *     tokens     text to tokens and back                                      tokens.h: tokens.c
 *     data       opens a data set                                             data.c, with data_parts.h:
 *                  the files that --data names                                  data_paths.c
 *                  the texts in them                                            texts.c
 *                  their training and validation parts, in tokens               splits.c
 *     windows    the sequences of a step, and of the validation part          windows.c
 *
 * Everything here is a pure function of (files, options, seed, step, sample): no position is kept between calls, so a
 * resumed run, or one on another number of devices, sees the same windows.
 *
 *     struct dataset *dataset = open_dataset(&options);
 *     dataset_window(dataset, &window, tokens, targets);        for each sequence of each step
 *     validation_window(dataset, i, seq_len, tokens, targets);  for i below validation_windows()
 *     close_dataset(dataset);
 */
#ifndef DATA_H
#define DATA_H

#include "tokens.h"

/* ---- data_paths.c: what --data names ----------------------------------------------------------------------------- */

/* A folder that makes texts whose best possible loss is known (struct training_parts, base/additions.h). */
struct text_maker {
    const char *name; /* --data NAME: its own text; --data NAME:FILE: the text that this file describes */
    void *(*open)(const char *file);             /* file NULL: its own text.  Ends the program if the file is wrong */
    char *(*make)(const void *opened, size_t n); /* n bytes, the same ones every time; the caller frees them */
    double (*nats_per_byte)(const void *opened); /* the text's information, in nats per byte */
    /* Mean loss, in nats per byte, of the best model on windows of `seq_len` bytes side by side in (n) bytes of the
     * text: it is told the first byte and predicts those after it, as validation does.  Each bytes[i] is below 256. */
    double (*floor)(const void *opened, const uint16_t *bytes, size_t n, int seq_len);
    void (*close)(void *opened);
};
const char *default_data(void); /* the data to train on without --data */

/* The file that --data `given` reads, as a path or pattern; NULL: it reads none. */
const char *file_of_data(const char *given);

/* ---- data.c: data sets ------------------------------------------------------------------------------------------- */

enum window_order { ORDER_SHUFFLE, ORDER_FILE };

struct data_options {
    const char *path;     /* "self", a made text, a file, folder or glob; NULL: default_data() */
    const char *val_data; /* as for `path`; NULL: val_share of the data */
    double val_share;     /* 0 to 1; 0: no validation */
    const char *tokens;   /* what a token of text is: a word of --tokens; NULL: a byte */
    enum window_order window_order;
    int batch, seq_len;         /* data that are too short for them are refused */
    struct tokenizer tokenizer; /* the loaded model's, which is taken over; without tokens: it is made from the data */
    int vocab;                  /* the loaded model's; 0: it follows from the data */
};

struct split {
    uint16_t *tokens; /* (n) */
    size_t n;
    bool shares_memory; /* the tokens follow those of `train`, which owns the memory */
    int used;           /* every token is below this number */
    uint64_t hash;      /* a hash of the tokens, once checkpoint/ has asked for it; 0: not yet */
};

struct dataset {
    struct tokenizer tokenizer;
    int vocab;               /* every token is below this number: that of the model if there is one, else tokenizer.n */
    struct split train, val; /* val.n is 0 without validation */
    char *own_path[2];      /* the two files of nanoGPT's folder, to train and to validate; NULL: not read from there */
    double bytes_per_token; /* mean of `val`, or of `train` where there is no `val`; NAN: not known */
    double nats_per_byte;   /* a made text's information, in nats per byte; NAN: not known */
    double floor;           /* the lowest possible loss on `val`, in nats per token; NAN: not known */
};

/* Opens the files that the given options name, or makes a text where they name none, and makes tokens of texts.  A file
 * that cannot be trained on ends the program (EXIT_USAGE, EXIT_IO). */
struct dataset *open_dataset(const struct data_options *given);
void close_dataset(struct dataset *dataset);

/* A loss in nats per token, as bits per byte, by which losses of different tokenizers can be compared.  NAN: not
 * known. */
double bits_per_byte(const struct dataset *dataset, double loss);

/* ---- windows.c: windows ------------------------------------------------------------------------------------------ */

/* Which window of the training text, in which order. */
struct window {
    enum window_order window_order;
    uint64_t seed;
    int64_t step;       /* from 0 */
    int sample;         /* the sequence of the step: 0 to batch - 1 */
    int batch, seq_len; /* sequences of a step; tokens of a window */
};

/* Fills in the window's tokens (seq_len), and its targets (seq_len), each of them one token later.
 *   ORDER_FILE     consecutive windows from the start of the data, back to the start when fewer than
 *                  batch * seq_len + 1 tokens are left: the batches of llm.c
 *   ORDER_SHUFFLE  a random offset for each value of the global sample counter, step * batch + sample; within an epoch
 *                  the windows lie side by side, so every token is seen about once */
void dataset_window(const struct dataset *dataset, const struct window *window, int32_t *tokens, int32_t *targets);

/* Validation goes once over the whole split: every token but the first is a target exactly once.  The last window would
 * stick out; it is moved back so that it ends with the split, and only its last `count` positions, those that no window
 * before had, count.  They see more context than a shorter window would give them, never less. */
size_t validation_windows(const struct dataset *dataset, int seq_len);

/* Positions of window i that count, the last ones of the window: seq_len in every window but the last. */
int validation_count(const struct dataset *dataset, size_t i, int seq_len);

/* Fills in window i, as dataset_window does; returns its validation_count(). */
int validation_window(const struct dataset *dataset, size_t i, int seq_len, int32_t *tokens, int32_t *targets);

/* Sorts positions by their token, for the gradient of the embedding: by_token[start[v]] ... by_token[start[v+1]-1] are
 * those of token v, ascending.  So each row is summed by one worker, in a fixed order.  by_token: (n), start:
 * (vocab + 1). */
void sort_positions(const int32_t *tokens, int n, int vocab, int32_t *by_token, int32_t *start);

#endif
