/* json.c - numbers and texts as JSON. */
#include "json.h"

#include <math.h>

json_t *number_json(double x) { return isfinite(x) ? json_real(x) : json_null(); }

json_t *text_json(const char *text)
{
    char *printable = text ? copy_string(text) : NULL;
    json_t *value = text ? json_string(text) : json_null();
    if (!value)
        value = json_string(make_printable(printable, true));
    free(printable);
    return value;
}
