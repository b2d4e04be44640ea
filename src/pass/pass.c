/* pass.c - the table of passes, and running them in its order. */
#include "pass.h"

#include <stdlib.h>
#include <string.h>

const struct pass passes[] = {
    {"recompute", wants_recompute, run_recompute, {"--recompute selective", "--recompute full"}},
};
const size_t n_passes = COUNT(passes);

const struct pass *find_pass(const char *name)
{
    for (size_t i = 0; i < n_passes; i++)
        if (strcmp(passes[i].name, name) == 0)
            return &passes[i];
    return NULL;
}

char *pass_names(void)
{
    char *names = copy_string(passes[0].name);
    for (size_t i = 1; i < n_passes; i++) {
        char *more = format_string("%s, %s", names, passes[i].name);
        free(names);
        names = more;
    }
    return names;
}

struct pass_report *run_passes(struct step *s, const struct costs *c, const struct wishes *w, const char *after,
                               size_t *n)
{
    struct pass_report *reports = allocate(n_passes, sizeof *reports);
    *n = 0;
    for (size_t i = 0; i < n_passes; i++) {
        const struct pass *p = &passes[i];
        if (p->wanted(w)) {
            struct pass_report *r = &reports[(*n)++];
            r->pass = p;
            r->declined = !p->run(s, c, w, &r->reason);
        }
        if (after && strcmp(p->name, after) == 0)
            break;
    }
    return reports;
}

void free_reports(struct pass_report *reports, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(reports[i].reason);
    free(reports);
}

void print_reports(FILE *out, const struct pass_report *reports, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(out, "pass %s%s: %s\n", reports[i].pass->name, reports[i].declined ? " declines" : "",
                reports[i].reason);
}

json_t *reports_json(const struct pass_report *reports, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:b, s:s}", "pass", reports[i].pass->name, "declined",
                                              reports[i].declined, "reason", reports[i].reason));
    return list;
}
