/* overlap_file.c - a plan as text: a line for the order of the CPU's updates, and one for each layer.
 *
 *     order release            or `need`: of the updates whose gradients are there, the one that is needed first;
 *                              or `forward`: the one that is needed first, there or not
 *     layer 0 D                D: on its device; C: on the CPU
 *     other param.0 C          updates of no layer, by the parameters they write
 */
#include "overlap_list.h"

#include "../file/file.h"
#include "../step/words.h"

#include <stdlib.h>
#include <string.h>

const char *const cpu_order_name[CPU_ORDERS] = {"release", "need", "forward"};

static char *name_of(const struct group *g)
{
    return g->layer < 0 ? format_string("other %s", g->name) : format_string("layer %d", g->layer);
}

void write_plan(const char *path, const struct offloads *o, const bool *on_cpu, enum cpu_order order)
{
    char *text = format_string("# A plan of yard --overlap plan: D, on its device; C, on the CPU.  Edit it freely.\n"
                               "order %s\n",
                               cpu_order_name[order]);
    for (size_t g = 0; g < o->n; g++) {
        char *name = name_of(&o->group[g]);
        char *more = format_string("%s%s %c\n", text, name, on_cpu[g] ? 'C' : 'D');
        free(name), free(text);
        text = more;
    }
    struct writer *w = open_writer(path);
    write_bytes(w, text, strlen(text));
    publish(w);
    free(text);
}

static size_t find_group(const struct offloads *o, struct line *l)
{
    char *word = word_at(l, 1, "a layer's number, or the parameters' name"),
         *what = format_string("%s %s", l->word[0], word);
    size_t g = 0;
    for (bool same = false; g < o->n; g++) {
        char *name = name_of(&o->group[g]);
        same = strcmp(name, what) == 0;
        free(name);
        if (same)
            break;
    }
    if (g == o->n)
        fail_word(l, word, "a layer whose update can run on the CPU");
    free(what);
    return g;
}

static void read_line(struct line *l, const struct offloads *o, bool *on_cpu, bool *seen, enum cpu_order *order)
{
    if (strcmp(l->word[0], "order") == 0) {
        const char *word = word_at(l, 1, "release, need or forward");
        int k = 0;
        while (k < CPU_ORDERS && strcmp(word, cpu_order_name[k]) != 0)
            k++;
        if (k == CPU_ORDERS)
            fail_word(l, word, "release, need or forward");
        *order = (enum cpu_order)k;
        check_all_used(l, "order release|need|forward");
        return;
    }
    if (strcmp(l->word[0], "layer") != 0 && strcmp(l->word[0], "other") != 0)
        fail_word(l, l->word[0], "order, layer or other");
    size_t g = find_group(o, l);
    const char *letter = word_at(l, 2, "D or C");
    if (strcmp(letter, "D") != 0 && strcmp(letter, "C") != 0)
        fail_word(l, letter, "D (on its device) or C (on the CPU)");
    if (seen[g])
        fail_word(l, l->word[1], "each of them once");
    seen[g] = true;
    on_cpu[g] = *letter == 'C';
    check_all_used(l, "layer K D|C");
}

void read_plan(const char *path, const struct offloads *o, bool *on_cpu, enum cpu_order *order)
{
    char *text = read_text(path), *rest = text;
    struct line l = {.path = path};
    bool *seen = allocate(o->n, sizeof *seen);
    for (char *line; (line = strsep(&rest, "\n"));) {
        l.number++;
        split_line(&l, line);
        if (l.n)
            read_line(&l, o, on_cpu, seen, order);
    }
    for (size_t g = 0; g < o->n; g++)
        if (!seen[g])
            fail(EXIT_USAGE, "%s: a line `%s D` or `%s C` is missing", path, name_of(&o->group[g]),
                 name_of(&o->group[g]));
    free(seen), free(text);
}
