/* log.h - the file of --log, which has one JSON object per line: the run, then steps and evaluations.
 *
 *     trainer->extra.log = open_log(settings->log);       locks the file, so that no other run writes it
 *     begin_log(trainer->extra.log, goes_on, dataset);    writes the first line, or goes on behind those that are there
 *     write_log(trainer->extra.log, line);                adds a line; other folders may call it too
 *     if (!end_log(trainer->extra.log)) ...               some lines are missing
 *
 * Where --log is not given, the log is NULL, and these functions do nothing.
 */
#ifndef LOG_H
#define LOG_H

#include <jansson.h>
#include <stdbool.h>

struct dataset;
struct log;

/* Checks the file and locks it; what it holds stays until begin_log().  Returns NULL if `path` is NULL. */
struct log *open_log(const char *path);

/* Goes on with the log that is there, or, where there is none or goes_on is false, empties the file and writes the
 * first line: the options, and what is known of the data. */
void begin_log(struct log *log, bool goes_on, const struct dataset *dataset);

/* Adds a line, and frees the JSON. */
void write_log(struct log *log, json_t *line);

/* Closes and frees the log.  Returns false if some of its lines could not be written. */
bool end_log(struct log *log);

#endif
