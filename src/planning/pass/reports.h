/* reports.h - what passes have done: a report of each, for people and as JSON.  Implemented in reports.c. */
#ifndef REPORTS_H
#define REPORTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct forecast; /* planning/predict/forecast.h */
struct pass;     /* pass.h */

struct pass_report {
    const struct pass *pass;
    bool declined;
    char *reason;           /* a sentence on what was done, or why not; set by the pass, freed with the report */
    json_t *facts;          /* an array of further sentences on that, each a line of its own; NULL: none */
    json_t *fields;         /* what else `plan --json` shows of the pass; NULL: nothing */
    char *numbers;          /* the times that report_ms() was told, as text; NULL: none */
    char *gain;             /* a sentence on what the pass changes in bytes and time; NULL: not known */
    struct forecast *after; /* the forecast of the list as the pass leaves it; NULL: the pass has not tried it */
};

void print_reports(FILE *out, const struct pass_report *reports, size_t n);
json_t *reports_json(const struct pass_report *reports, size_t n); /* "passes" of plan --json; the caller's */
json_t *milliseconds_json(double seconds); /* the number of ms, for JSON; null for NAN and INFINITY; the caller's */

#define NOT_IN_JSON NULL
#define ONLY_IN_JSON NULL

/* Adds a time to the pass's report.  `key` names it in JSON, and may be NOT_IN_JSON.  `label` names it for people, and
 * may be ONLY_IN_JSON.  seconds: INFINITY if the list whose time it is does not fit; NAN if the time is not known. */
void report_ms(struct pass_report *report, const char *key, const char *label, double seconds);

/* Adds a sentence to the pass's report, as a line of its own.  It is the report's from now on, and freed with it. */
void report_fact(struct pass_report *report, char *fact);

void free_reports(struct pass_report *reports, size_t n);

#endif
