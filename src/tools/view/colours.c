/* colours.c - the palette, and what a bar's colour means.
 *
 * Kinds and micro-batches take Okabe and Ito's colours, which people of every kind of colour vision tell apart.  From
 * the eighth on both have colours that a search found, by their distances, which a test checks.  Layers go along
 * viridis, from dark to light, for the same reason.  Causes of gaps are hatched, so none of them looks like a task.
 */
#include "draw.h"

#include <math.h>

/* The light of a channel is nearly proportional to its square.  On colours with more than a fifth of white's light,
 * black is easier to read than white. */
uint32_t readable_on(uint32_t colour)
{
    uint32_t red = colour >> 16 & 255;
    uint32_t green = colour >> 8 & 255;
    uint32_t blue = colour & 255;
    uint32_t light = 2126 * red * red + 7152 * green * green + 722 * blue * blue;
    return light > 10000 / 5 * 255 * 255 ? 0xff000000 : PAPER;
}

/* ---- what colours mean ------------------------------------------------------------------------------------------- */

static const uint32_t no_colour = 0xff6c7178; /* the colour of tasks without a kind, a layer, a micro-batch */
static const struct {
    const char *role;
    uint32_t colour;
} kinds[] = {{"forward", 0xff0072b2},
             {"backward", 0xffe69f00},
             {"update", 0xff009e73},
             {"send", 0xff56b4e9},
             {"broadcast", 0xffcc79a7},
             {"reduce", 0xffd55e00},
             {"norm", 0xfff0e442},
             {"swap", 0xff682808},
             {"offload", 0xffbda752},
             {"snapshot", 0xffa235fc},
             {"feed", 0xff014164},
             {"report", 0xff23000d},
             {"backward of weights", 0xff9dd5ba},
             {"upload", 0xffbdce90},
             {"download", 0xff20006f}};

/* Okabe and Ito's seven colours, and nine that a search found.  In every kind of colour vision, these differ much from
 * the seven, from each other, and from the lighter colours of the next micro-batches.  None is nearly black. */
static const uint32_t micro_batches[] = {0xff0072b2, 0xffe69f00, 0xff009e73, 0xff56b4e9, 0xffcc79a7, 0xffd55e00,
                                         0xfff0e442, 0xff8800ff, 0xffc8281e, 0xffbbff99, 0xff784682, 0xff28fabe,
                                         0xffbb55ff, 0xff88bb66, 0xffd228be, 0xff3c6e46};

uint32_t kind_colour(const char *role)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(role, kinds[i].role) == 0)
            return kinds[i].colour;
    return no_colour;
}

static uint32_t along_viridis(double share)
{
    static const uint32_t stops[] = {0xff440154, 0xff3b528b, 0xff21918c, 0xff5ec962, 0xfffde725};
    const size_t last = COUNT(stops) - 1;
    double at = fmin(fmax(share, 0), 1) * (double)last;
    size_t i = MIN((size_t)at, last - 1);
    return blend_colours(stops[i], stops[i + 1], at - (double)i);
}

void count_colours(struct view *view)
{
    enum { MOST = 1000000 }; /* layers that are told apart */
    view->n_layers = 0;
    view->n_micros = 0;
    memset(view->has_kind, 0, sizeof view->has_kind);
    memset(view->has_class, 0, sizeof view->has_class);
    memset(view->has_plain, 0, sizeof view->has_plain);
    for (int k = 0; k < view->n_tracks; k++) {
        const struct trace *trace = view->tracks[k]->trace, *first = view->tracks[0]->trace;
        for (size_t i = 0; i < trace->header.n_tasks; i++) {
            const struct trace_task *task = &trace->tasks[i];
            view->n_layers = MAX(view->n_layers, MIN(task->layer, MOST) + 1); /* they count from 0 */
            view->n_micros = MAX(view->n_micros, MIN(task->micro, MOST) + 1);
            view->has_plain[BY_LAYER] |= task->layer < 0;
            view->has_plain[BY_MICRO] |= task->micro < 0;
            size_t kind = view->tracks[k]->kind[i];
            if (strcmp(kind_name(trace, kind), kind_name(first, kind)) == 0) /* the names are the first's */
                view->has_kind[kind] = true;
        }
        for (size_t i = 0; i < trace->header.n_tensors; i++)
            view->has_class[trace->tensors[i].class] |= trace->tensors[i].bytes > 0;
    }
}

const char *const colour_way_name[COLOUR_WAYS] = {"kind", "layer", "micro-batch"};

uint32_t colour_number(const struct view *view, int64_t i)
{
    if (view->colour == BY_KIND)
        return view->tracks[0]->kind_colour[i];
    if (i < 0)
        return no_colour;
    if (view->colour == BY_LAYER)
        return along_viridis((double)i / MAX(view->n_layers - 1, 1));
    size_t n = COUNT(micro_batches); /* from the seventeenth on they come again, lighter, then darker */
    static const uint32_t towards[] = {PAPER, PAPER, 0xff000000};
    size_t round = (size_t)i / n % COUNT(towards);
    return blend_colours(micro_batches[(size_t)i % n], towards[round], round ? 0.45 : 0);
}

/* The layer or micro-batch of a task, as colours stand for the one or the other; below 0: it has none. */
static int layer_or_micro_of(const struct view *view, const struct track *track, uint32_t task)
{
    const struct trace_task *found = &track->trace->tasks[task];
    return view->colour == BY_LAYER ? found->layer : found->micro;
}

uint32_t task_colour(const struct view *view, const struct track *track, uint32_t number)
{
    if (view->colour == BY_KIND)
        return track->kind_colour[track->kind[number]];
    return colour_number(view, layer_or_micro_of(view, track, number));
}

bool is_plain(const struct view *view, const struct track *track, uint32_t number)
{
    return view->colour != BY_KIND && layer_or_micro_of(view, track, number) < 0;
}

size_t colour_stride(const struct view *view)
{
    int n = view->colour == BY_LAYER ? view->n_layers : view->n_micros;
    return view->colour == BY_KIND ? 1 : ceil_div((size_t)MAX(n, 1), MOST_NAMES);
}

size_t colour_group(const struct view *view, const struct track *track, uint32_t number)
{
    _Static_assert((int)KINDS <= (int)GROUPS, "each kind is a group");
    if (view->colour == BY_KIND)
        return track->kind[number];
    int i = layer_or_micro_of(view, track, number);
    return i < 0 ? GROUPS - 1 : MIN((size_t)i / colour_stride(view), MOST_NAMES - 1);
}

uint32_t group_colour(const struct view *view, const struct track *track, size_t group)
{
    if (view->colour == BY_KIND)
        return group < KINDS ? track->kind_colour[group] : no_colour;
    return colour_number(view, group < MOST_NAMES ? (int64_t)(group * colour_stride(view)) : NONE);
}

/* The colours in use are numbered: kinds of the first trace, layers, micro-batches. */
bool colour_name(const struct view *view, size_t i, char out[COLOUR_NAME])
{
    if (view->colour == BY_KIND) {
        if (i >= KINDS)
            return false;
        snprintf(out, 64, "%s", view->has_kind[i] ? kind_name(view->tracks[0]->trace, i) : "");
        return true;
    }
    snprintf(out, 64, "%zu", i);
    return i < (size_t)(view->colour == BY_LAYER ? view->n_layers : view->n_micros);
}

/* Most causes have the colour of a kind that they have to do with, such as that of updates for the CPU. */
uint32_t cause_colour(enum cause cause)
{
    static const uint32_t colours[CAUSES] = {
        [CAUSE_PIPELINE] = 0xff56b4e9, [CAUSE_LINK] = 0xffcc79a7,  [CAUSE_COMPUTE] = SOFT,
        [CAUSE_CPU] = 0xff009e73,      [CAUSE_DISK] = 0xffa235fc,  [CAUSE_NORM] = 0xfff0e442,
        [CAUSE_BYTES] = 0xffeeb4a7,    [CAUSE_BATCH] = 0xff014164, [CAUSE_HOST] = 0xffd55e00,
        [CAUSE_LAUNCH] = 0xffbda752,   [CAUSE_NOTHING] = RULE};
    return colours[cause];
}

/* The darkest colour is also that of the longest gaps in most lanes, so its stripes are few. */
int cause_stripes(enum cause cause) { return cause == CAUSE_COMPUTE ? SPARSE : DENSE; }

/* Classes of memory take another family of colours than bars; neighbours differ in lightness. */
uint32_t class_colour(size_t class)
{
    static const uint32_t colours[] = {0xff47699c, 0xfff2dc7e, 0xff7dbfa3, 0xffc6b3e6, 0xffb9c0ca, 0xffe3a58a};
    return colours[class % COUNT(colours)];
}
