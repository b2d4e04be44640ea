/* reports.c - reports of passes, made, printed and freed. */
#include "reports.h"

#include "pass.h"
#include "trainer/base/json.h"

#include <math.h>

json_t *milliseconds_json(double seconds) { return number_json(1e3 * seconds); }

void report_ms(struct pass_report *report, const char *key, const char *label, double seconds)
{
    if (!report->fields)
        report->fields = json_object();
    if (key)
        json_object_set_new(report->fields, key, milliseconds_json(seconds));
    if (!label || isnan(seconds))
        return;
    append_text(&report->numbers, report->numbers ? ", " : "");
    append_text(&report->numbers, isfinite(seconds) ? "%s %.3f ms" : "%s does not fit", label, 1e3 * seconds);
}

void report_fact(struct pass_report *report, char *fact)
{
    if (!report->facts)
        report->facts = json_array();
    json_array_append_new(report->facts, text_json(fact));
    free(fact);
}

void free_reports(struct pass_report *reports, size_t n)
{
    for (struct pass_report *report = reports; report < reports + n; report++) {
        free(report->reason);
        free(report->numbers);
        free(report->gain);
        json_decref(report->facts);
        json_decref(report->fields);
        if (report->after)
            the_forecaster()->free_forecast(report->after);
    }
    free(reports);
}

void print_reports(FILE *out, const struct pass_report *reports, size_t n)
{
    for (const struct pass_report *report = reports; report < reports + n; report++) {
        if (report->declined)
            print_line(out, "pass %s declines: %s", report->pass->name, report->reason);
        else
            print_line(out, "pass %s: %s", report->pass->name, report->reason);
        for (size_t i = 0; i < json_array_size(report->facts); i++)
            print_line(out, "    %s", json_string_value(json_array_get(report->facts, i)));
        if (report->numbers)
            print_line(out, "    %s", report->numbers);
        if (report->gain)
            print_line(out, "    %s", report->gain);
    }
}

json_t *reports_json(const struct pass_report *reports, size_t n)
{
    json_t *list = json_array();
    for (const struct pass_report *report = reports; report < reports + n; report++) {
        json_t *entry = json_object();
        set_json_text(entry, "pass", report->pass->name);
        set_json_truth(entry, "declined", report->declined);
        set_json_text(entry, "reason", report->reason); /* it may quote a path, which need not be UTF-8 */
        if (report->facts)
            json_object_set(entry, "facts", report->facts);
        json_object_update(entry, report->fields);
        json_array_append_new(list, entry);
    }
    return list;
}
