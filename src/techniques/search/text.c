/* text.c - a choice as text (see text.h). */
#include "text.h"

#include "tools/lists/words.h"
#include "trainer/file/file.h"

#include <unistd.h>

void write_choice(const char *path, const struct choice_text *t, const unsigned char *choice)
{
    char *text = format_string("# %s\n", t->head);
    for (size_t i = 0; i < t->n; i++)
        append_text(&text, "%s %s\n", t->name[i], t->word[choice[i]]);
    publish_text(path, text);
    free(text);
}

/* All words of a line but the last are a decision's name. */
bool read_choice(const char *path, const struct choice_text *t, unsigned char *choice)
{
    if (access(path, F_OK) != 0)
        return false;
    char *text = read_text(path), *rest = text;
    bool *read = allocate(t->n + 1, sizeof *read);
    struct line l = {.path = path};
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *name = NULL;
        size_t i = 0, option = 0;
        l.number++;
        split_line(&l, line);
        for (size_t k = 0; k + 1 < l.n; k++)
            append_text(&name, "%s%s", k ? " " : "", l.word[k]);
        while (i < t->n && (!name || strcmp(t->name[i], name) != 0))
            i++;
        while (l.n && option < t->n_words && strcmp(t->word[option], l.word[l.n - 1]) != 0)
            option++;
        if (l.n && i == t->n)
            fail_word(&l, l.word[0], "a line such as `%s %s`", t->name[0], t->word[0]);
        if (l.n && read[i])
            fail_word(&l, name, "each of them once");
        if (option == t->n_words)
            fail_word(&l, l.word[l.n - 1], "%s", t->expected);
        if (l.n)
            choice[i] = (unsigned char)option, read[i] = true;
        free(name);
    }
    for (size_t i = 0; i < t->n; i++)
        if (!read[i])
            fail(EXIT_USAGE, "%s: a line `%s %s` is missing, or one with another of %s", path, t->name[i], t->word[0],
                 t->expected);
    free(text), free(read);
    return true;
}
