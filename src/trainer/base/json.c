/* json.c - numbers and texts as JSON.
 *
 * It has a file of its own, since nothing else in this folder needs the library jansson.
 */
#include "json.h"

#include <math.h>

json_t *number_json(double x) { return isfinite(x) ? json_real(x) : json_null(); }

json_t *text_json(const char *text)
{
    if (!text)
        return json_null();
    json_t *value = json_string(text);
    if (value)
        return value;
    char *printable = copy_string(text);
    value = json_string(make_printable(printable, MANY_LINES));
    free(printable);
    return value;
}

char *dump_json(const json_t *value, size_t flags)
{
    CHECK(value, "no JSON");
    char *text = json_dumps(value, flags | JSON_ENCODE_ANY);
    if (!text)
        fail(EXIT_USAGE, "out of memory on the host: JSON cannot be written as text");
    return text;
}

void set_json_number(json_t *object, const char *key, double number)
{
    json_object_set_new(object, key, number_json(number));
}

void set_json_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, text_json(text));
}

void set_json_integer(json_t *object, const char *key, json_int_t number)
{
    json_object_set_new(object, key, json_integer(number));
}

void set_json_truth(json_t *object, const char *key, bool truth)
{
    json_object_set_new(object, key, json_boolean(truth));
}
