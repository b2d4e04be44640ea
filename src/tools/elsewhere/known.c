/* known.c - a word that is no option here: is it one of another program, or ours but for the way it is written? */
#include "elsewhere.h"

#include <ctype.h>

enum { SHOWN_WORDS = 4 };

struct all_words {             /* of all folders */
    struct foreign_words *row; /* the caller frees them */
    size_t n, cap;
};

static struct all_words gather_words(void)
{
    struct all_words all = {NULL, 0, 0};
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_foreign; k++)
            *APPEND(all.row, all.n, all.cap) = modules[i]->foreign[k];
    return all;
}

/* As the lists have it: "--Batch_Size=8" is batch-size.  The caller frees it. */
static char *plain_word(const char *typed)
{
    typed += strspn(typed, "-");
    char *word = format_string("%.*s", (int)strcspn(typed, "="), typed);
    for (char *c = word; *c; c++)
        *c = *c == '_' || *c == '.' ? '-' : (char)tolower((unsigned char)*c);
    return word;
}

/* Is it ours but for the way it is written: weight_decay? */
static const struct option *find_plain(const struct option_table *table, unsigned command, const char *typed,
                                       const char *word)
{
    const struct option *o = find_option(table, word);
    typed += strspn(typed, "-");
    if (!o || strncmp(typed, word, strlen(word)) == 0) /* so written too: only its dashes are wrong */
        return NULL;
    return o->commands & command ? o : NULL;
}

/* NULL: there is none. */
static const struct option *option_for(const struct option_table *table, const struct foreign_words *f)
{
    const struct option *o = f->option ? find_option(table, f->option) : NULL;
    CHECK(o || !f->option, "--%s is to stand for %s, and is no option", f->option, f->words);
    return o;
}

static char *find_known(const struct option_table *table, unsigned command, const char *typed, const char *dashes)
{
    const struct all_words all = gather_words();
    char *word = plain_word(typed), *answer = NULL;
    const struct option *others = NULL; /* of another command */
    const struct option *same = find_plain(table, command, typed, word);
    if (same)
        answer = format_string("here it is called %s%s", dashes, same->name);
    for (const struct foreign_words *f = all.row; f < all.row + all.n && !answer; f++) {
        const struct option *o = option_for(table, f);
        if (!has_word(f->words, word))
            continue;
        if (o && !(o->commands & command)) {
            others = o;
            continue;
        }
        if (o)
            answer =
                format_string("here it is called %s%s%s%s", dashes, o->name, f->why ? ": " : "", f->why ? f->why : "");
        else
            answer = copy_string(f->why);
    }
    if (!answer && others)
        answer = format_string("%s%s, as it is called here, is an option of another command", dashes, others->name);
    free(word), free(all.row);
    return answer;
}

/* What other programs call them: the first few, which are the usual ones; errors know all. */
static void print_foreign(FILE *out, const struct option_table *table, unsigned command)
{
    const struct all_words all = gather_words();
    fprintf(out, "\nWords of other programs:\n");
    for (const struct foreign_words *f = all.row; f < all.row + all.n; f++) {
        const struct option *o = option_for(table, f);
        if (o && !(o->commands & command))
            continue;
        char *text = copy_string(""), *words = copy_string(f->words), *rest = words;
        char *word = strtok_r(rest, " ", &rest);
        for (int n = 0; word && n < SHOWN_WORDS; n++) {
            append_text(&text, "%s--%s", n ? " " : "", word);
            word = strtok_r(NULL, " ", &rest);
        }
        if (f->why)
            append_text(&text, ": %s", f->why);
        int at = fprintf(out, o ? "  --%s for" : "  none for", o ? o->name : "");
        print_wrapped(out, text, at);
        free(text), free(words);
    }
    free(all.row);
}

const struct other_words other_words = {find_known, print_foreign};
