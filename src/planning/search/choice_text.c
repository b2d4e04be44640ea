/* choice_text.c - a choice as text (see choice_text.h). */
#include "choice_text.h"

#include "planning/lists/line.h"
#include "trainer/file/file.h"

#include <unistd.h>

void write_choice(const char *path, const struct choice_text *t, const unsigned char *choice)
{
    char *text = format_string("# %s\n", t->title);
    for (size_t i = 0; i < t->n; i++)
        append_text(&text, "%s %s\n", t->name[i], t->word[choice[i]]);
    publish_text(path, text);
    free(text);
}

/* All words of a line but the last, which are a decision's name; NULL: there is only one word.  The caller frees it. */
static char *name_in(const struct line *line)
{
    char *name = NULL;
    for (size_t k = 0; k + 1 < line->n; k++)
        append_text(&name, "%s%s", k ? " " : "", line->words[k]);
    return name;
}

/* The decision of that name; choice->n: there is none. */
static size_t find_decision(const struct choice_text *choice, const char *name)
{
    size_t i = 0;
    while (i < choice->n && (!name || strcmp(choice->name[i], name) != 0))
        i++;
    return i;
}

/* A line that has words. */
static void read_line(const struct line *line, const struct choice_text *text, unsigned char *choice, bool *read)
{
    const char *word = line->words[line->n - 1];
    char *name = name_in(line);
    size_t i = find_decision(text, name);
    int option = choice_number(text->word, word);
    if (i == text->n)
        fail_word(line, name ? name : word, "one of `%s` to `%s`, and %s after it", text->name[0],
                  text->name[text->n - 1], text->expected);
    if (read[i])
        fail_word(line, name, "each of them once");
    if (option < 0)
        fail_word(line, word, "%s", text->expected);
    choice[i] = (unsigned char)option;
    read[i] = true;
    free(name);
}

bool read_choice(const char *path, const struct choice_text *t, unsigned char *choice)
{
    if (access(path, F_OK) != 0)
        return false;
    char *text = read_text(path), *rest = text, *line;
    bool *read = allocate(t->n + 1, sizeof *read); /* by decision */
    struct line l = {.path = path};
    while ((line = strsep(&rest, "\n"))) {
        l.number++;
        split_line(&l, line);
        if (l.n > 0)
            read_line(&l, t, choice, read);
    }
    for (size_t i = 0; i < t->n; i++)
        if (!read[i])
            fail(EXIT_USAGE, "%s has no line for %s; add `%s %s`, or another of %s", path, t->name[i], t->name[i],
                 t->word[0], t->expected);
    free(text);
    free(read);
    return true;
}
