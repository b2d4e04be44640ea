/* choice_text.c - a choice as text (see choice_text.h). */
#include "choice_text.h"

#include "planning/lists/line.h"
#include "trainer/file/file.h"

#include <unistd.h>

void write_choice(const char *path, const struct choice_text *choice_text, const option_byte *choice)
{
    char *text = format_string("# %s\n", choice_text->title);
    for (size_t i = 0; i < choice_text->n; i++)
        append_text(&text, "%s %s\n", choice_text->name[i], choice_text->word[choice[i]]);
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

/* The decision of that name; choice_text->n: there is none. */
static size_t find_decision(const struct choice_text *choice_text, const char *name)
{
    size_t i = 0;
    while (i < choice_text->n && (!name || strcmp(choice_text->name[i], name) != 0))
        i++;
    return i;
}

/* A line that has words. */
static void read_choice_line(const struct line *line, const struct choice_text *choice_text, option_byte *choice,
                             bool *read)
{
    const char *word = line->words[line->n - 1];
    char *name = name_in(line);
    size_t i = find_decision(choice_text, name);
    int option = choice_number(choice_text->word, word);
    if (i == choice_text->n)
        fail_word(line, name ? name : word, "one of `%s` to `%s`, and %s after it", choice_text->name[0],
                  choice_text->name[choice_text->n - 1], choice_text->expected);
    if (read[i])
        fail_word(line, name, "each of them once");
    if (option < 0)
        fail_word(line, word, "%s", choice_text->expected);
    choice[i] = (option_byte)option;
    read[i] = true;
    free(name);
}

bool read_choice(const char *path, const struct choice_text *choice_text, option_byte *choice)
{
    if (access(path, F_OK) != 0)
        return false;
    refuse_if_folder(path, "a plan that an earlier run wrote");
    char *text = read_text(path);
    char *rest = text; /* what has not been read yet */
    char *row;
    bool *read = allocate(choice_text->n + 1, sizeof *read); /* by decision */
    struct line line = {.path = path};
    while ((row = strsep(&rest, "\n"))) {
        line.number++;
        split_line(&line, row);
        if (line.n > 0)
            read_choice_line(&line, choice_text, choice, read);
    }
    for (size_t i = 0; i < choice_text->n; i++)
        if (!read[i])
            fail(EXIT_USAGE, "%s has no line for %s; add `%s %s`, or another of %s", path, choice_text->name[i],
                 choice_text->name[i], choice_text->word[0], choice_text->expected);
    free(text);
    free(read);
    return true;
}
