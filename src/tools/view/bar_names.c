/* bar_names.c - the form of a task's name for which its bar has room. */
#include "draw.h"

#include <ctype.h>

/* Where bars are coloured by micro-batch, the number beside a name is that of the micro-batch. */
static bool counts_micros(const struct view *view, const struct trace_task *task)
{
    return view->colour == BY_MICRO && task->micro >= 0;
}

/* The number beside a task's name; below 0: it has none. */
static int number_beside(const struct view *view, const struct trace_task *task)
{
    return counts_micros(view, task) ? task->micro : task->layer;
}

/* Writes the letter of a task's kind, or of a name that is a letter, and the number; or the number alone. */
static void put_letter_and_number(char out[BAR_NAME], const struct trace *trace, const struct trace_task *task,
                                  int number)
{
    size_t kind = kind_of_task(trace, task);
    char letter = kind_name(trace, kind)[0];
    if (kind == KIND_WEIGHTS)
        letter = 'W';
    if (!task->name[1])
        letter = task->name[0];
    else if (kind < TRACE_ROLES && has_role(trace, task, "other"))
        letter = '\0';
    if (letter)
        snprintf(out, 128, "%c%d", toupper((unsigned char)letter), number);
    else
        snprintf(out, 128, "%d", number);
}

/* The forms of a task's name, the first that fits being the best:
 *
 *     of "mlp.fc.dx"     "mlp.fc.dx L3", "fc.dx L3", "fc.dx"
 *     of "send"          "send L3 → stage1", "send L3", "S3"
 *     of "W"             "W3", "W"
 *
 * The letter is that of the task's kind, as its colour is: B of "backward", and W of a backward of weights.  A task
 * without a kind has the number alone.  A letter does not tell the many kernels of a layer apart, but it is enough for
 * copies.
 *
 * A task without a layer has its name alone.  Where bars are coloured by micro-batch, the number is that of the
 * micro-batch, without L. */
enum name_form { TO_DEVICE, NAME_AND_NUMBER, LAST_PART_AND_NUMBER, LETTER_AND_NUMBER, NAME_ALONE, NAME_FORMS };

/* Writes a form of the task's name.  Returns whether the task has this form. */
static bool name_bar(const struct view *view, const struct track *track, uint32_t task, enum name_form form,
                     char out[BAR_NAME])
{
    const struct trace *trace = track->trace;
    const struct trace_task *named = &trace->tasks[task];
    int64_t device = track->receiver[task];
    int number = number_beside(view, named);
    const char *name = named->name, *point = strchr(name, '.');
    const char *letter = counts_micros(view, named) ? "" : "L";
    bool is_letter = !name[1];
    switch (form) {
    case TO_DEVICE:
        snprintf(out, 128, "%s %s%d → %s", name, letter, number, device != NONE ? trace->devices[device].id : "");
        return number >= 0 && device != NONE && !is_letter;
    case NAME_AND_NUMBER:
        snprintf(out, 128, "%s %s%d", name, letter, number);
        return number >= 0 && !is_letter;
    case LAST_PART_AND_NUMBER:
        snprintf(out, 128, "%s %s%d", point ? point + 1 : "", letter, number);
        return number >= 0 && point;
    case LETTER_AND_NUMBER:
        put_letter_and_number(out, trace, named, number);
        return number >= 0 && (!point || trace->lanes[named->lane].kind != LANE_COMPUTE);
    default:
        snprintf(out, 128, "%s", point && number >= 0 ? point + 1 : name);
        return number < 0 || is_letter || point;
    }
}

/* A letter, with a number or without, needs less room beside it than a name, but as much as the widest letter of most
 * lists: D, or W where there are backwards of weights.  So all bars of one width have it, or none. */
bool fit_name(const struct view *view, const struct track *track, uint32_t task, int width, enum font font,
              char out[BAR_NAME])
{
    int dot = view->scale;
    char widest[BAR_NAME];
    for (enum name_form form = TO_DEVICE; form < NAME_FORMS; form++) {
        if (!name_bar(view, track, task, form, out))
            continue;
        bool is_letter = form == LETTER_AND_NUMBER || !out[1];
        snprintf(widest, sizeof widest, "%s", out);
        if (is_letter && isupper((unsigned char)out[0]))
            widest[0] = view->has_kind[KIND_WEIGHTS] ? 'W' : 'D';
        int wide = MAX(text_width(font, out), text_width(font, widest));
        if (wide <= width - (is_letter ? 1 : 6) * dot)
            return true;
    }
    return false;
}

bool has_number(const struct view *view, const struct track *track, uint32_t task, const char *text)
{
    return text[1] || number_beside(view, &track->trace->tasks[task]) < 0;
}
