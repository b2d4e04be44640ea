/* loss.c - the loss of each step, read from the log that training writes (yard train --log), which may still grow. */
#include "view.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_STEPS = 10000000, LONGEST_LINE = 65536 };

struct curve {
    const char *path;
    FILE *file;   /* NULL until there is one: training begins with the trace */
    double *loss; /* [n] by step; not a number: not known */
    size_t n, cap;
    char line[LONGEST_LINE]; /* what has been read of the next line */
    size_t length;
};

/* Lines without a step and its loss (settings, validation) are passed over. */
static void take_line(struct curve *c)
{
    json_t *line = json_loadb(c->line, c->length, 0, NULL);
    json_int_t step = json_integer_value(json_object_get(line, "step"));
    json_t *loss = json_object_get(line, "loss");
    if (json_is_number(loss) && step > 0 && step <= MOST_STEPS) {
        while (c->n <= (size_t)step)
            *APPEND(c->loss, c->n, c->cap) = NAN;
        c->loss[step] = json_number_value(loss);
    }
    json_decref(line);
}

bool poll_curve(struct curve *c)
{
    bool any = false;
    if (!c->file && !(c->file = fopen(c->path, "r")))
        return false;
    clearerr(c->file);
    for (int character; (character = getc(c->file)) != EOF;) {
        if (character == '\n') {
            take_line(c);
            c->length = 0;
            any = true;
        } else if (c->length < sizeof c->line) {
            c->line[c->length++] = (char)character;
        }
    }
    return any;
}

struct curve *open_curve(const char *path)
{
    struct curve *c = allocate(1, sizeof *c);
    c->path = path;
    poll_curve(c);
    return c;
}

void close_curve(struct curve *c)
{
    if (c->file)
        fclose(c->file);
    free(c->loss);
    free(c);
}

bool curve_exists(const struct curve *c) { return c->file; }

double loss_at(const struct curve *c, uint32_t step) { return step < c->n ? c->loss[step] : NAN; }
