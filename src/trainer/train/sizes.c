/* sizes.c - a trainer's mesh and its batch: what the settings ask for, and whether it can be had.
 *
 *     batch            =  dp     x  micros           x  micro_batch
 *     sequences of a      ranks     micro-batches       sequences of a
 *     step                          of a rank           micro-batch
 *
 * A user who asks for numbers that do not fit together is told the nearest that do.
 */
#include "train_parts.h"
#include "trainer/settings/archive.h"

/* ---- the mesh ---------------------------------------------------------------------------------------------------- */

/* Does the command line of this run ask for the option?  If not, a value that it has comes from the resumed run,
 * which may have had another mesh. */
static bool is_asked(const struct settings *settings, const char *option)
{
    return !settings->resumed || was_given(option);
}

/* A run that goes on with another number of devices than its order is written for takes 1f1b. */
static const struct turn_order *order_for(const struct settings *settings, int pp)
{
    const struct written_turns *written = settings->turn_order->written;
    if (!written || written->devices == pp)
        return settings->turn_order;
    if (is_asked(settings, "pipeline"))
        fail(EXIT_USAGE, "--pipeline: its schedule has %d rows, one for each device of a pipeline: use --mesh pp=%d",
             written->devices, written->devices);
    return &pipeline_orders[PIPELINE_1F1B];
}

struct mesh wanted_mesh(const struct settings *settings, int devices)
{
    struct mesh mesh;
    if (settings->resumed && !settings->mesh)
        mesh = the_archive()->mesh(settings, devices);
    else
        must(parse_mesh(settings->mesh, devices, &mesh));
    mesh.zero = settings->zero;
    if (mesh.pp > 1) {
        const struct turn_order *turn_order = order_for(settings, mesh.pp);
        mesh.chunks = turn_order->chunks;
        mesh.folded = turn_order->folded;
    }
    return mesh;
}

/* Cuts the layers into stages, as --stages says. */
static void set_stages(struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    struct mesh *mesh = &trainer->mesh;
    bool asks_stages = settings->stages && is_asked(settings, "stages");
    bool asks_pipeline = settings->turn_order->chunks > 1 && is_asked(settings, "pipeline");
    if (mesh->pp == 1 && (asks_stages || asks_pipeline))
        fail(EXIT_USAGE, "--%s: there is one stage; --mesh pp=N makes N of them", asks_stages ? "stages" : "pipeline");
    if (settings->stages && !asks_stages)
        must(cut_layers_as_recorded(mesh, trainer->config.layers, settings->stages));
    else
        must(cut_layers(mesh, trainer->config.layers, settings->stages));
}

void set_mesh(struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    int devices = trainer->machine->n_devices;
    trainer->mesh = wanted_mesh(settings, devices);
    trainer->turn_order = order_for(settings, trainer->mesh.pp);
    int n = n_ranks(&trainer->mesh);
    if (n != devices) /* so --mesh was given: any other mesh is made for these devices */
        fail(EXIT_USAGE, "--mesh %s needs %d devices, %s %d: name %d with -d, or take one %d times, such as -d 0:0x%d",
             settings->mesh, n, settings->devices ? "but -d gives" : "and without -d there is", devices, n, n, n);
    set_stages(trainer);
    must(tp_problem(&trainer->config, &trainer->mesh));
}

/* ---- the batch --------------------------------------------------------------------------------------------------- */

static const double MOST_SEQUENCES = 1e6;    /* what --batch takes */
static const double MOST_LAYER_PASSES = 1e5; /* layers x micro-batches, each of some thirty tasks of the list */
static const double MOST_ELEMENTS = 2e9;     /* a tensor has fewer: kernels count them in 31 bits */

static int nearest_multiple(int n, int unit) { return MAX((n + unit / 2) / unit, 1) * unit; }

static void check_grad_groups(const struct trainer *trainer)
{
    int dp = trainer->mesh.dp, groups = trainer->settings->grad_groups;
    if (groups > 1 && dp > 1)
        fail(EXIT_USAGE, "--grad-groups %d stands for dp=%d on one device: with dp=%d give --grad-groups 1 instead",
             groups, groups, dp);
    /* The groups share the tensor of a tied head's gradient.  The last stage may begin the next group before the first
     * stage has taken the gradient of this one. */
    if (groups > 2 && trainer->mesh.pp > 1 && trainer->config.tied)
        fail(EXIT_USAGE,
             "--grad-groups %d with pp=%d: with a tied head, more than two groups need pp=1; or use --untied", groups,
             trainer->mesh.pp);
}

/* The batch must be whole micro-batches on each data-parallel rank. */
static void check_batch(const struct trainer *trainer)
{
    int dp = trainer->mesh.dp;
    int micro_batch = trainer->micro_batch;
    bool has_own_size = trainer->settings->micro_batch; /* else a rank's share is one micro-batch */
    if (trainer->batch % (dp * micro_batch) == 0)
        return;
    if (!has_own_size)
        fail(EXIT_USAGE, "--batch %d cannot be shared by dp=%d: the nearest that works is --batch %d", trainer->batch,
             dp, nearest_multiple(trainer->batch, dp));
    int near = nearest_multiple(trainer->batch, dp * micro_batch);
    if (near > MOST_SEQUENCES)
        fail(EXIT_USAGE,
             "--batch %d is not a multiple of dp=%d x --micro-batch %d: use a smaller --micro-batch, such as 1",
             trainer->batch, dp, micro_batch);
    int fitting = micro_batch; /* becomes the largest micro-batch below it that goes with the batch; 0: none does */
    while (fitting > 0 && trainer->batch % (dp * fitting) != 0)
        fitting--;
    char *other_way = fitting ? format_string(", or --micro-batch %d", fitting) : copy_string("");
    fail(EXIT_USAGE, "--batch %d is not a multiple of dp=%d x --micro-batch %d: the nearest that works is --batch %d%s",
         trainer->batch, dp, micro_batch, near, other_way);
}

/* What to try so that a rank has a multiple of `micros` micro-batches.  The caller frees the text. */
static char *advise_micros(const struct trainer *trainer, int micros)
{
    int unit = trainer->mesh.dp * micros;
    int batch = nearest_multiple(trainer->batch, unit);
    return format_string("try --batch %d --micro-batch %d", batch, batch / unit);
}

/* An order that is written down has turns for one number of micro-batches. */
static void check_written_micros(const struct trainer *trainer)
{
    const struct written_turns *written = trainer->turn_order->written;
    if (written && trainer->micros != written->micros)
        fail(EXIT_USAGE, "--pipeline: its schedule has %d micro-batches, not %d: %s", written->micros, trainer->micros,
             advise_micros(trainer, written->micros));
}

/* In a folded pipeline micro-batches go down the devices and up again, so it needs two for each device. */
static void check_folded_micros(const struct trainer *trainer)
{
    int least = 2 * trainer->mesh.pp;
    if (trainer->mesh.folded && !trainer->turn_order->written && trainer->micros < least)
        fail(EXIT_USAGE, "--pipeline %s with pp=%d needs at least %d micro-batches, not %d: %s",
             trainer->settings->pipeline, trainer->mesh.pp, least, trainer->micros, advise_micros(trainer, least));
}

/* How many micro-batches go through an interleaved pipeline in a round; 1: the pipeline has no rounds. */
static int micros_of_round(const struct trainer *trainer)
{
    bool has_rounds = trainer->mesh.chunks > 1 && !trainer->mesh.folded && !trainer->turn_order->written;
    return has_rounds ? trainer->mesh.pp : 1;
}

/* Micro-batches come in rounds of an interleaved pipeline, and in groups of the gradient: both must be whole. */
static void check_whole_rounds(const struct trainer *trainer)
{
    int groups = trainer->settings->grad_groups;
    int together = (int)common_multiple((uint64_t)micros_of_round(trainer), (uint64_t)groups);
    if (trainer->micros % together)
        fail(EXIT_USAGE, "%s needs a multiple of %d micro-batches, not %d: %s",
             groups > 1 ? "--grad-groups" : "--pipeline interleaved", together, trainer->micros,
             advise_micros(trainer, together));
}

static void check_size(const struct trainer *trainer)
{
    const struct config *config = &trainer->config;
    double tokens = (double)trainer->micro_batch * trainer->seq_len;
    if ((double)trainer->micros * trainer->mesh.dp * config->layers > MOST_LAYER_PASSES)
        fail(EXIT_USAGE, "--batch %d makes a list of millions of tasks: use a larger --micro-batch than %d",
             trainer->batch, trainer->micro_batch);
    if (tokens * MAX(4 * config->channels, config->vocab) > MOST_ELEMENTS ||
        tokens * config->heads * trainer->seq_len > MOST_ELEMENTS)
        fail(EXIT_USAGE, "--micro-batch %d with --seq-len %d makes a tensor of more than %ge9 elements: use a %s",
             trainer->micro_batch, trainer->seq_len, 1e-9 * MOST_ELEMENTS,
             trainer->micro_batch > 1 ? "smaller --micro-batch" : "smaller --seq-len");
}

void set_batch(struct trainer *trainer, unsigned wanted)
{
    const struct settings *settings = trainer->settings;
    bool samples_only = (wanted & ALL_LISTS) == LIST_SAMPLE;
    trainer->batch = samples_only ? trainer->mesh.dp : settings->batch;
    trainer->seq_len = settings->seq_len;
    trainer->micro_batch = settings->micro_batch ? settings->micro_batch : MAX(trainer->batch / trainer->mesh.dp, 1);
    check_grad_groups(trainer);
    check_batch(trainer);
    trainer->micros = trainer->batch / (trainer->mesh.dp * trainer->micro_batch);
    check_written_micros(trainer);
    check_folded_micros(trainer);
    check_whole_rounds(trainer);
    check_size(trainer);
}
