/* known.c - answers for a word that is not an option here: it may be one of another program, or ours written in
 * another way. */
#include "foreign.h"

#include <ctype.h>
#include <limits.h>

enum {
    LINE_OF_WORDS = 54, /* characters of the words of one option in the help, which are a line there */
    WORDS_WITH_WHY = 3, /* words of an option that is explained further */
    WORDS_WITHOUT = 1   /* words of what has no option */
};

struct all_words { /* the foreign words of all folders */
    struct foreign_words *rows;
    size_t n, cap;
};

/* The caller frees the rows. */
static struct all_words gather_words(void)
{
    struct all_words all = {.rows = NULL};
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_foreign; k++) {
            GROW(all.rows, all.cap, all.n + 1);
            all.rows[all.n++] = modules[i]->foreign[k];
        }
    return all;
}

/* The name as the lists have it: "--Batch_Size=8" is batch-size.  The caller frees it. */
static char *plain_name(const char *typed)
{
    typed += strspn(typed, "-");
    char *name = format_string("%.*s", (int)strcspn(typed, "="), typed);
    for (char *c = name; *c; c++) {
        if (*c == '_' || *c == '.')
            *c = '-';
        *c = (char)tolower((unsigned char)*c);
    }
    return name;
}

/* Our option, if the name is ours written in another way, such as weight_decay; else NULL. */
static const struct option *find_plain(const struct option_table *table, unsigned command, const char *typed,
                                       const char *name)
{
    const struct option *option = find_option(table, name);
    typed += strspn(typed, "-");
    /* A name may be written as ours, with only the dashes before it wrong. */
    if (!option || begins_with(typed, name))
        return NULL;
    return option->classes & command ? option : NULL;
}

/* Our option that those words stand for; NULL: there is none. */
static const struct option *option_meant_by(const struct option_table *table, const struct foreign_words *words)
{
    if (!words->option)
        return NULL;
    const struct option *option = find_option(table, words->option);
    CHECK(option, "--%s is to stand for %s, and is not an option", words->option, words->words);
    return option;
}

/* The answer: what our option is called, and why; or, if `option` is NULL, why there is none. */
static char *answer_with(const struct option *option, const struct foreign_words *words, const char *dashes)
{
    if (!option)
        return copy_string(words->why);
    if (!words->why)
        return format_string("here it is called %s%s", dashes, option->name);
    return format_string("here it is called %s%s: %s", dashes, option->name, words->why);
}

static char *new_answer_among(const struct all_words *all, const struct option_table *table, unsigned command,
                              const char *name, const char *dashes)
{
    const struct option *untaken = NULL; /* an option of another command */
    for (const struct foreign_words *words = all->rows; words < all->rows + all->n; words++) {
        const struct option *option = option_meant_by(table, words);
        if (!has_word(words->words, name))
            continue;
        if (!option || (option->classes & command))
            return answer_with(option, words, dashes);
        untaken = option;
    }
    if (!untaken || find_option(table, name)) /* an option of this very name is what the user means */
        return NULL;
    return format_string("%s%s, as it is called here, is an option of %s", dashes, untaken->name,
                         taker_of(table, untaken));
}

static char *new_answer(const struct option_table *table, unsigned command, const char *typed, const char *dashes)
{
    const struct all_words all = gather_words();
    char *name = plain_name(typed);
    char *answer;
    const struct option *same = find_plain(table, command, typed, name);
    if (same)
        answer = format_string("here it is called %s%s", dashes, same->name);
    else
        answer = new_answer_among(&all, table, command, name, dashes);
    free(name);
    free(all.rows);
    return answer;
}

/* Appends the first of the words, as options: "--batch-size --bs".  There are at most `most`, and no more than fit in a
 * line. */
static void append_first(char **text, const char *list, int most)
{
    char *words = copy_string(list);
    char *rest = NULL;
    char *word = strtok_r(words, " ", &rest);
    size_t length = 0;
    for (int n = 0; word && n < most; n++) {
        length += strlen(" --") + strlen(word);
        if (n > 0 && length > LINE_OF_WORDS)
            break;
        append_text(text, "%s--%s", **text ? " " : "", word);
        word = strtok_r(NULL, " ", &rest);
    }
    free(words);
}

/* Prints "  --batch for   --batch-size ...", and why, if that must be said. */
static void print_words_for(FILE *out, const struct option *option, const struct foreign_words *words)
{
    char *label = format_string("  --%s for", option->name), *text = copy_string("");
    append_first(&text, words->words, words->why ? WORDS_WITH_WHY : INT_MAX);
    if (words->why)
        append_text(&text, ": %s", words->why);
    print_labelled(out, label, text);
    free(label);
    free(text);
}

/* Prints foreign words for the command's options, the usual ones.  Errors know all, and say why there is no option for
 * some of them. */
static void print_foreign(FILE *out, const struct option_table *table, unsigned command)
{
    const struct all_words all = gather_words();
    char *without = copy_string("");
    fprintf(out, "\nWords of other programs, and what to write here (error messages name more):\n");
    for (const struct foreign_words *words = all.rows; words < all.rows + all.n; words++) {
        const struct option *option = option_meant_by(table, words);
        if (!option)
            append_first(&without, words->words, WORDS_WITHOUT);
        else if (option->classes & command)
            print_words_for(out, option, words);
    }
    print_labelled(out, "  no option for", without);
    free(without);
    free(all.rows);
}

const struct foreign_lookup foreign_lookup = {new_answer, print_foreign};
