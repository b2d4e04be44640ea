/* reports.c - reports of passes, made, printed and freed. */
#include "reports.h"

#include "pass.h"
#include "trainer/base/json.h"

#include <math.h>

json_t *milliseconds(double seconds) { return number_json(1e3 * seconds); }

void report_ms(struct pass_report *r, const char *key, const char *label, double seconds)
{
    if (!r->fields)
        r->fields = json_object();
    if (key)
        json_object_set_new(r->fields, key, milliseconds(seconds));
    if (!label || isnan(seconds))
        return;
    append_text(&r->numbers, r->numbers ? ", " : "");
    append_text(&r->numbers, isfinite(seconds) ? "%s %.3f ms" : "%s does not fit", label, 1e3 * seconds);
}

void free_reports(struct pass_report *reports, size_t n)
{
    for (struct pass_report *r = reports; r < reports + n; r++) {
        free(r->reason);
        free(r->numbers);
        free(r->gain);
        json_decref(r->fields);
        if (r->after)
            the_forecaster()->free_forecast(r->after);
    }
    free(reports);
}

void print_reports(FILE *out, const struct pass_report *reports, size_t n)
{
    for (const struct pass_report *r = reports; r < reports + n; r++) {
        print_line(out, "pass %s%s: %s", r->pass->name, r->declined ? " declines" : "", r->reason);
        if (r->numbers)
            print_line(out, "    %s", r->numbers);
        if (r->gain)
            print_line(out, "    %s", r->gain);
    }
}

json_t *reports_json(const struct pass_report *reports, size_t n)
{
    json_t *list = json_array();
    for (const struct pass_report *r = reports; r < reports + n; r++) {
        json_t *entry =
            json_pack("{s:s, s:b, s:s}", "pass", r->pass->name, "declined", r->declined, "reason", r->reason);
        json_object_update(entry, r->fields);
        json_array_append_new(list, entry);
    }
    return list;
}
