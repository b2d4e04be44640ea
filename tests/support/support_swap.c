/* support_swap.c - random lists, budgets and reports for the tests of swapping. */
#include "support_swap.h"

#include "support_paper.h"

double draw_kth(int seed, int k) { return random_uniform((uint64_t)seed, STREAM_TEST, 0, (uint64_t)k); }

char *random_list(const char *kind, int seed, int layers)
{
    char *command = lasting("awk -v kind=%s -v seed=%d -v layers=%d -f tests/data/lists.awk", kind, seed, layers);
    char *text = NULL;
    char line[256];
    FILE *file = popen(command, "r");
    while (file && fgets(line, sizeof line, file))
        append_text(&text, "%s", line);
    assert_non_null(text);
    assert_int_equal(pclose(file), 0);
    return text;
}

json_t *plan_file(const char *text, const char *options)
{
    json_t *plan = verified_plan("--list %s %s", write_text("plan.txt", "%s", text), options);
    json_t *pass = json_at(plan, "passes.0");
    expect_number("period", number_at(pass, "period_ms"), number_at(plan, "simulation.step_ms"));
    return pass;
}

char *list_within(size_t bytes, const char *text)
{
    return lasting("device gpu memory=%zu\n%s", bytes, strchr(text, '\n') + 1);
}

size_t budget_in(const char *refusal)
{
    static const char before[] = "enough would be ";
    const char *found = strstr(refusal, before);
    if (!found)
        test_failed("no budget that is enough in: %s\n", refusal);
    return strtoull(found + strlen(before), NULL, 10);
}

size_t refused_budget(const char *part, const char *text, const char *options)
{
    struct ran ran = expect_yard(EXIT_USAGE, part, "plan --list %s %s", write_text("plan.txt", "%s", text), options);
    return budget_in(ran.err);
}
