/* json.h - numbers and texts as JSON (jansson). */
#ifndef JSON_H
#define JSON_H

#include "base.h"

#include <jansson.h>

json_t *number_json(double x); /* null: it is not finite */
/* A string, or null for NULL.  JSON is UTF-8, a path need not be: what is none becomes '?'. */
json_t *text_json(const char *text);

#endif
