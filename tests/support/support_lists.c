/* support_lists.c - lists that tests read from texts, finish and prove. */
#include "support_lists.h"

#include "planning/lists/lists.h"

void expect_sound(const char *what, const struct list *list, const struct values *plain)
{
    struct problem *problem = verify_list(list, plain);
    if (problem)
        test_failed("%s: %s\n", what, problem->sentence);
}

void expect_wrong(const char *what, struct problem *problem, const char *part)
{
    if (!problem || !strstr(problem->sentence, part))
        test_failed("%s: expected \"%s\", got: %s\n", what, part, problem ? problem->sentence : "nothing wrong");
    free(problem);
}

size_t expect_waits_needed(struct list *list, size_t nth)
{
    size_t waits = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        for (struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
            if (!edge->needs_wait)
                continue;
            waits++;
            if ((waits - 1) % nth != 0)
                continue;
            edge->needs_wait = false;
            expect_wrong(task->name, verify_list(list, NULL), "nothing orders them");
            edge->needs_wait = true;
        }
    }
    return waits;
}

void finish_list(struct list *list)
{
    must(place(list->pool, &list, 1, PLACE_TO_CHECK));
    depend(list, ALL_EDGES);
}

struct list *read_list_text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text;
    assert_at_least(vasprintf(&text, format, arguments), 0);
    va_end(arguments);
    struct list *list = read_list(write_file("list.txt", text, strlen(text)));
    free(text);
    return list;
}
