/* sizes.c - a trainer's mesh and its batch: what the settings ask for, and whether it can be had.
 *
 *     batch            =  dp     x  micros           x  micro_batch
 *     sequences of a      ranks     micro-batches       sequences of a
 *     step                          of a rank           micro-batch
 *
 * A user who asks for numbers that do not fit together is told the nearest that do.
 */
#include "hooks.h"

/* ---- the mesh --------------------------------------------------------------------------------------------------- */

/* Does this command ask for the option?  Else the run that it goes on from did, whose mesh may have been another. */
static bool is_asked(const struct settings *s, const char *option) { return !s->resumed || was_given(option); }

/* A run that goes on with another number of devices than its order is written for takes 1f1b. */
static const struct turn_order *order_for(const struct settings *s, int pp)
{
    const struct written_turns *written = s->order->written;
    if (!written || written->devices == pp)
        return s->order;
    if (is_asked(s, "pipeline"))
        fail(EXIT_USAGE, "--pipeline: its schedule has %d rows, one for each device of a pipeline: use --mesh pp=%d",
             written->devices, written->devices);
    return &pipeline_orders[PIPELINE_1F1B];
}

struct mesh wanted_mesh(const struct settings *s, int devices)
{
    struct mesh mesh;
    if (s->resumed && !s->mesh)
        mesh = the_archive()->mesh(s, devices);
    else
        must(parse_mesh(s->mesh, devices, &mesh));
    mesh.zero = s->zero;
    if (mesh.pp > 1) {
        const struct turn_order *order = order_for(s, mesh.pp);
        mesh.chunks = order->chunks;
        mesh.folded = order->folded;
    }
    return mesh;
}

/* Cuts the layers into stages, as --stages says. */
static void set_stages(struct trainer *t)
{
    const struct settings *s = t->settings;
    struct mesh *mesh = &t->mesh;
    bool asks_stages = s->stages && is_asked(s, "stages");
    bool asks_pipeline = s->order->chunks > 1 && is_asked(s, "pipeline");
    if (mesh->pp == 1 && (asks_stages || asks_pipeline))
        fail(EXIT_USAGE, "--%s: there is one stage; --mesh pp=N makes N of them", asks_stages ? "stages" : "pipeline");
    struct problem *p = cut_layers(mesh, t->config.layers, s->stages);
    if (p && s->stages && !asks_stages) { /* the stages are recorded, of another mesh */
        free(p);
        free_mesh(mesh);
        p = cut_layers(mesh, t->config.layers, NULL);
    }
    must(p);
}

void set_mesh(struct trainer *t)
{
    const struct settings *s = t->settings;
    int devices = t->machine->n_devices;
    t->mesh = wanted_mesh(s, devices);
    t->order = order_for(s, t->mesh.pp);
    int n = n_ranks(&t->mesh);
    if (n != devices) /* a mesh was given */
        fail(EXIT_USAGE, "--mesh %s needs %d devices, -d gives %d: name %d there, or use one as %d, such as -d 0:0x%d",
             s->mesh, n, devices, n, n, n);
    set_stages(t);
    must(check_tp_ranks(&t->config, &t->mesh));
}

/* ---- the batch -------------------------------------------------------------------------------------------------- */

static const double most_sequences = 1e6;    /* what --batch takes */
static const double most_layer_passes = 1e5; /* layers x micro-batches, each of some thirty tasks of the list */
static const double most_elements = 2e9;     /* of a tensor: kernels count them in 31 bits */

static int nearest_multiple(int n, int unit) { return MAX((n + unit / 2) / unit, 1) * unit; }

static void check_groups(const struct trainer *t)
{
    const int dp = t->mesh.dp, groups = t->settings->grad_groups;
    if (groups > 1 && dp > 1)
        fail(EXIT_USAGE, "--grad-groups %d stands for dp=%d on one device: with dp=%d add --grad-groups 1", groups,
             groups, dp);
    /* The groups share the tensor of a tied head's gradient.  The last stage may begin the next group before the first
     * stage has taken the gradient of this one. */
    if (groups > 2 && t->mesh.pp > 1 && t->config.tied)
        fail(EXIT_USAGE, "--grad-groups %d with pp=%d: from three groups on a tied head wants pp=1, or use --untied",
             groups, t->mesh.pp);
}

static void check_batch(const struct trainer *t)
{
    const int dp = t->mesh.dp;
    const int near = nearest_multiple(t->batch, dp * t->micro_batch);
    if (t->batch % (dp * t->micro_batch) == 0)
        return;
    if (near > most_sequences)
        fail(EXIT_USAGE,
             "--batch %d is not a multiple of dp=%d x --micro-batch %d: use a smaller --micro-batch, such as 1",
             t->batch, dp, t->micro_batch);
    fail(EXIT_USAGE, "--batch %d is not a multiple of dp=%d x --micro-batch %d: the nearest that works is %d", t->batch,
         dp, t->micro_batch, near);
}

/* What to try so that a rank has a multiple of so many micro-batches.  The caller frees the text. */
static char *advise_micros(const struct trainer *t, int micros)
{
    const int unit = t->mesh.dp * micros;
    const int batch = nearest_multiple(t->batch, unit);
    return format_string("try --batch %d --micro-batch %d", batch, batch / unit);
}

/* An order that is written down has turns for one number of micro-batches. */
static void check_written_micros(const struct trainer *t)
{
    const struct written_turns *written = t->order->written;
    if (written && t->micros != written->micros)
        fail(EXIT_USAGE, "--pipeline: its schedule has %d micro-batches, not %d: %s", written->micros, t->micros,
             advise_micros(t, written->micros));
}

/* In a folded pipeline micro-batches go down the devices and up again, so it needs two for each device. */
static void check_folded_micros(const struct trainer *t)
{
    const int least = 2 * t->mesh.pp;
    if (t->mesh.folded && !t->order->written && t->micros < least)
        fail(EXIT_USAGE, "--pipeline %s with pp=%d wants at least %d micro-batches, not %d: %s", t->settings->pipeline,
             t->mesh.pp, least, t->micros, advise_micros(t, least));
}

/* How many micro-batches go through an interleaved pipeline in a round; 1: the pipeline has no rounds. */
static int micros_of_round(const struct trainer *t)
{
    const bool has_rounds = t->mesh.chunks > 1 && !t->mesh.folded && !t->order->written;
    return has_rounds ? t->mesh.pp : 1;
}

static int least_common_multiple(int a, int b)
{
    int multiple = a;
    while (multiple % b)
        multiple += a;
    return multiple;
}

/* Micro-batches come in rounds of an interleaved pipeline, and in groups of the gradient: both must be whole. */
static void check_whole_rounds(const struct trainer *t)
{
    const int groups = t->settings->grad_groups;
    const int together = least_common_multiple(micros_of_round(t), groups);
    if (t->micros % together)
        fail(EXIT_USAGE, "%s wants a multiple of %d micro-batches, not %d: %s",
             groups > 1 ? "--grad-groups" : "--pipeline interleaved", together, t->micros, advise_micros(t, together));
}

static void check_size(const struct trainer *t)
{
    const struct config *c = &t->config;
    const double tokens = (double)t->micro_batch * t->seq;
    if ((double)t->micros * t->mesh.dp * c->layers > most_layer_passes)
        fail(EXIT_USAGE, "--batch %d is a list of millions of tasks: use a larger --micro-batch than %d", t->batch,
             t->micro_batch);
    if (tokens * MAX(4 * c->channels, c->vocab) > most_elements || tokens * c->heads * t->seq > most_elements)
        fail(EXIT_USAGE, "--micro-batch %d with --seq-len %d makes a tensor of more than 2^31 elements: use a %s",
             t->micro_batch, t->seq, t->micro_batch > 1 ? "smaller --micro-batch" : "shorter --seq-len");
}

void set_batch(struct trainer *t, bool samples_only)
{
    const struct settings *s = t->settings;
    t->batch = samples_only ? t->mesh.dp : s->batch;
    t->seq = s->seq_len;
    t->micro_batch = s->micro_batch ? s->micro_batch : MAX(t->batch / t->mesh.dp, 1);
    check_groups(t);
    check_batch(t);
    t->micros = t->batch / (t->mesh.dp * t->micro_batch);
    check_written_micros(t);
    check_folded_micros(t);
    check_whole_rounds(t);
    check_size(t);
}
