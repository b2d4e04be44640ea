/* json.h - numbers and texts as JSON (jansson). */
#ifndef JSON_H
#define JSON_H

#include "base.h"

#include <jansson.h>

json_t *number_json(double x); /* JSON's null when x is not finite */

/* A JSON string; JSON's null when `text` is NULL.  A path need not be UTF-8, as JSON must: then the other bytes, and
 * control characters, become '?'. */
json_t *text_json(const char *text);

#endif
