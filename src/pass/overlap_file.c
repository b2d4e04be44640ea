/* overlap_file.c - a plan as text: a line for the order of the CPU's updates, and one for each layer.
 *
 *     order release            or `need`: of the updates whose gradients are there, the one that is needed first;
 *                              or `forward`: the one that is needed first, there or not
 *     layer 0 D                D: on its device; C: on the CPU
 *     other param.0 C          updates of no layer, by the parameters they write
 */
#include "overlap.h"

#include "../file/file.h"
#include "../step/words.h"

const char *const cpu_order_name[CPU_ORDERS] = {"release", "need", "forward"};

void write_plan(const char *path, const struct timing *t, const bool *on_cpu, enum cpu_order order)
{
    char *text;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    fprintf(f, "# A plan of yard --overlap plan: D, on its device; C, on the CPU.  Edit it freely.\norder %s\n",
            cpu_order_name[order]);
    for (size_t g = 0; g < t->n; g++)
        fprintf(f, "%s %c\n", t->update[g].name, on_cpu[g] ? 'C' : 'D');
    fclose(f);
    struct writer *w = open_writer(path);
    write_bytes(w, text, bytes);
    publish(w);
    free(text);
}

static size_t find_line(const struct timing *t, struct line *l)
{
    char *word = word_at(l, 1, "a layer's number, or the parameters' name");
    char *name = format_string("%s %s", l->word[0], word);
    size_t g = 0;
    while (g < t->n && strcmp(t->update[g].name, name) != 0)
        g++;
    free(name);
    if (g == t->n)
        fail_word(l, word, "a layer whose update can run on the CPU");
    return g;
}

static enum cpu_order read_order(struct line *l)
{
    const char *word = word_at(l, 1, "release, need or forward");
    enum cpu_order k = ORDER_RELEASE;
    while (k < CPU_ORDERS && strcmp(word, cpu_order_name[k]) != 0)
        k++;
    if (k == CPU_ORDERS)
        fail_word(l, word, "release, need or forward");
    check_all_used(l, "order release|need|forward");
    return k;
}

/* letter[] gets D or C for the update that the line is of. */
static void read_letter(struct line *l, const struct timing *t, char *letter)
{
    if (strcmp(l->word[0], "layer") != 0 && strcmp(l->word[0], "other") != 0)
        fail_word(l, l->word[0], "order, layer or other");
    size_t g = find_line(t, l);
    const char *word = word_at(l, 2, "D or C");
    if (strcmp(word, "D") != 0 && strcmp(word, "C") != 0)
        fail_word(l, word, "D (on its device) or C (on the CPU)");
    if (letter[g])
        fail_word(l, l->word[1], "each of them once");
    letter[g] = *word;
    check_all_used(l, "layer K D|C");
}

void read_plan(const char *path, const struct timing *t, bool *on_cpu, enum cpu_order *order)
{
    char *text = read_text(path), *rest = text, letter[MOST_UPDATES] = {0};
    struct line l = {.path = path};
    for (char *line; (line = strsep(&rest, "\n"));) {
        l.number++;
        split_line(&l, line);
        if (l.n && strcmp(l.word[0], "order") == 0)
            *order = read_order(&l);
        else if (l.n)
            read_letter(&l, t, letter);
    }
    for (size_t g = 0; g < t->n; g++) {
        const char *name = t->update[g].name;
        if (!letter[g])
            fail(EXIT_USAGE, "%s: a line `%s D` or `%s C` is missing", path, name, name);
        on_cpu[g] = letter[g] == 'C';
    }
    free(text);
}
