/* json.h - numbers and texts as JSON (jansson). */
#ifndef JSON_H
#define JSON_H

#include "base.h"

#include <jansson.h>

json_t *number_json(double x); /* JSON's null when x is not finite */

/* A JSON string; JSON's null when `text` is NULL.  A path need not be UTF-8, as JSON must: then the other bytes, and
 * control characters, become '?'. */
json_t *text_json(const char *text);

/* The value as text, which the caller frees.  flags: those of json_dumps(); the value may be any. */
char *dump_json(const json_t *value, size_t flags);

/* Each sets a key of an object. */
void set_json_number(json_t *object, const char *key, double number);  /* as number_json() makes it */
void set_json_text(json_t *object, const char *key, const char *text); /* as text_json() makes it */
void set_json_integer(json_t *object, const char *key, json_int_t number);
void set_json_truth(json_t *object, const char *key, bool truth);

#endif
