/* gemm.c - matrix products: one function, two engines.
 *
 *     own      cl/gemm.cl, register-blocked, for CPUs: one chain of fma per element, so bits are reproducible
 *     clblast  the tuned library for GPUs: another order of summation, so results agree within a tolerance
 *
 * Both become tasks of the list, and their work space is a tensor of the list like any other (but for CLBlast's batched
 * products, which allocate their own on every call).
 */
#include "model.h"

#include <clblast_c.h>
#include <math.h>

const char *const gemm_form_name[3] = {"NT", "NN", "TN"};

struct operand matrix(struct tensor *t, int ld) { return (struct operand){t, 0, ld, 0, 0}; }

/* Is what C's tensor held before needed: as start, or as the parts beside? */
static bool keeps_old(const struct gemm *g) { return g->start == START_OLD || g->part == PART_NEXT; }

/* ---- our own kernel -------------------------------------------------------------------------------------------- */

struct blocking { /* as in gemm.cl */
    int band, span, depth, block;
};

/* How much of a product one work-item computes.  B is packed once for each band and A once for each span, so few and
 * large pieces are good; but all cores should have the same to do.  A is packed in form TN if four panels or more then
 * read it, and not if a triangle of it is left out.  Panels and block fill at most half of the local memory (on PoCL
 * that is the L2 cache), of a small one all.
 *
 * Time counts in fma()s of a vector: to pack a float takes as long as four.  A part of a round stands for cores that
 * are disturbed, or slower than others: the more there are, the likelier. */
static struct blocking choose_blocking(const struct device *d, const struct gemm *g)
{
    enum { MAX_SPAN = 640, MIN_BAND = 64, MAX_DEPTH = 384, A_ROWS = 48, ROOM = 256 << 10, LINE = 16 };
    size_t m = (size_t)g->m, n = (size_t)g->n, k = (size_t)g->k, matrices = (size_t)(g->batch * g->heads);
    size_t width = d->tile_vectors * d->vector, least = MIN(4 * width, round_up(n, width));
    size_t room = MIN(MAX(d->local_memory / 2, ROOM), d->local_memory) / ELEMENT_BYTES;
    size_t deepest = MIN(MIN((size_t)sqrt((double)room), room / (least + A_ROWS)), MAX_DEPTH);
    size_t depth = MIN(MIN(round_up(ceil_div(k, ceil_div(k, deepest)), LINE), deepest), k);
    size_t widest = MIN(MIN(room / depth - A_ROWS, MAX_SPAN), round_up(n, width));
    struct blocking best = {0};
    double best_time = INFINITY;
    for (size_t span = least; span <= widest; span += width)
        for (size_t bands = 1; bands == 1 || bands <= m / MIN_BAND; bands++) {
            size_t band = round_up(ceil_div(m, bands), d->tile_rows);
            size_t groups = ceil_div(n, span) * ceil_div(m, band) * matrices;
            double rounds = (double)ceil_div(groups, d->units) + MIN(0.05 * d->units, 0.25);
            double time = rounds * ((double)(band * span) / d->vector + 4 * (double)(band + span));
            if (time < best_time) {
                bool packed = g->form == GEMM_TN && g->causal == CAUSAL_NONE && span >= 4 * width;
                best = (struct blocking){(int)band, (int)span, (int)depth, packed ? A_ROWS : 0};
                best_time = time;
            }
        }
    return best;
}

static struct task *own_gemm(struct build *b, const char *name, const struct gemm *g)
{
    struct blocking k = choose_blocking(b->device, g);
    bool ta = g->form == GEMM_TN, tb = g->form == GEMM_NT;
    struct grid grid = {
        3,
        {ceil_div((size_t)g->n, (size_t)k.span), ceil_div((size_t)g->m, (size_t)k.band), (size_t)(g->batch * g->heads)},
        {1, 1, 1}};
    return LAUNCH(b, name, "gemm.cl", "gemm", grid, INT(g->m), INT(g->n), INT(g->k), INT(g->start), INT(g->causal),
                  INT(k.band), INT(k.span), INT(k.depth), INT(k.block), INT(g->heads), //
                  IN(g->a.tensor), INT(g->a.base), INT(g->a.outer), INT(g->a.inner), INT(ta ? 1 : g->a.ld),
                  INT(ta ? g->a.ld : 1), //
                  IN(g->b.tensor), INT(g->b.base), INT(g->b.outer), INT(g->b.inner), INT(tb ? 1 : g->b.ld),
                  INT(tb ? g->b.ld : 1), //
                  ACCUMULATE(g->c.tensor, keeps_old(g)), INT(g->c.base), INT(g->c.outer), INT(g->c.inner), INT(g->c.ld),
                  g->start == START_BIAS ? IN(g->bias) : NO_TENSOR, LOCAL(4 * (k.span + k.block) * k.depth));
}

/* ---- CLBlast --------------------------------------------------------------------------------------------------- */

enum { ACCESS_C, ACCESS_A, ACCESS_B, ACCESS_WORK }; /* a call's tensors; without WORK, CLBlast makes do or allocates */

static cl_mem buffer_of(const struct task *t, int access)
{
    return access < t->n_access ? tensor_buffer(t->access[access].tensor) : NULL;
}

static void check_clblast(CLBlastStatusCode code, const struct task *t)
{
    if (code != CLBlastSuccess)
        fail(EXIT_FAILED, "CLBlast fails with status %d in task %s%s; --gemm own does without it", (int)code, t->name,
             layer_and_micro((char[64]){0}, t));
}

static CLBlastTranspose transposed(bool yes) { return yes ? CLBlastTransposeYes : CLBlastTransposeNo; }

/* CLBlast takes no wait list, so a barrier takes it; its event is that of the last of its kernels.  A batched product
 * is one call per sequence: its heads are evenly spaced, which is what CLBlast's batch can express without a blocking
 * upload of offsets. */
static void issue_clblast(const struct task *t, uint32_t number, cl_uint n_wait, const cl_event *wait, cl_event *done)
{
    (void)number;
    const struct gemm *g = t->context;
    const size_t m = (size_t)g->m, n = (size_t)g->n, k = (size_t)g->k;
    const CLBlastTranspose ta = transposed(g->form == GEMM_TN), tb = transposed(g->form == GEMM_NT);
    const float beta = g->start == START_ZERO ? 0.0f : 1.0f;
    cl_mem a = buffer_of(t, ACCESS_A), b = buffer_of(t, ACCESS_B), c = buffer_of(t, ACCESS_C);
    cl_command_queue queue = t->lane->queue;
    if (n_wait)
        CL(clEnqueueBarrierWithWaitList(queue, n_wait, wait, NULL));
    if (g->batch * g->heads == 1)
        check_clblast(CLBlastSgemmWithTempBuffer(CLBlastLayoutRowMajor, ta, tb, m, n, k, 1.0f, a, g->a.base,
                                                 (size_t)g->a.ld, b, g->b.base, (size_t)g->b.ld, beta, c, g->c.base,
                                                 (size_t)g->c.ld, &queue, done, buffer_of(t, ACCESS_WORK)),
                      t);
    for (size_t i = 0; g->batch * g->heads > 1 && i < (size_t)g->batch; i++)
        check_clblast(CLBlastSgemmStridedBatched(CLBlastLayoutRowMajor, ta, tb, m, n, k, 1.0f, a,
                                                 g->a.base + i * g->a.outer, (size_t)g->a.ld, g->a.inner, b,
                                                 g->b.base + i * g->b.outer, (size_t)g->b.ld, g->b.inner, beta, c,
                                                 g->c.base + i * g->c.outer, (size_t)g->c.ld, g->c.inner,
                                                 (size_t)g->heads, &queue, i + 1 == (size_t)g->batch ? done : NULL),
                      t);
}

/* A GPU copies A, B and C to whole tiles, of which these are the largest usual ones; small products are done in place.
 */
size_t uncounted_work(const struct step *s)
{
    enum { TILE = 128, DEPTH = 32, LEAST = 704 };
    size_t most = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct gemm *g = s->task[i]->context;
        if (s->task[i]->issue != issue_clblast || s->task[i]->lane->queue || g->batch * g->heads > 1)
            continue;
        size_t m = round_up((size_t)g->m, TILE), n = round_up((size_t)g->n, TILE), k = round_up((size_t)g->k, DEPTH);
        if (m * n * k >= (size_t)LEAST * LEAST * LEAST)
            most = MAX(most, (m * n + m * k + k * n) * ELEMENT_BYTES);
    }
    return most;
}

static struct tensor *clblast_work(struct build *b, const struct gemm *g)
{
    size_t bytes = 0;
    cl_command_queue queue = b->device->lane[LANE_COMPUTE]->queue;
    if (g->batch * g->heads > 1 || !queue)
        return NULL; /* (a machine on paper has no queue: see uncounted_work()) */
    CLBlastStatusCode code = CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, transposed(g->form == GEMM_TN),
                                                        transposed(g->form == GEMM_NT), (size_t)g->m, (size_t)g->n,
                                                        (size_t)g->k, g->a.base, (size_t)g->a.ld, g->b.base,
                                                        (size_t)g->b.ld, g->c.base, (size_t)g->c.ld, &queue, &bytes);
    if (code != CLBlastSuccess)
        fail(EXIT_FAILED, "CLBlast cannot plan a product of %d x %d x %d on %s (status %d); use --gemm own", g->m, g->n,
             g->k, b->device->id, (int)code);
    if (bytes == 0)
        return NULL;
    return new_tensor(b->step->pool, b->device, MEM_WORK, "clblast.work", FLOAT32,
                      SHAPE((int64_t)ceil_div(bytes, ELEMENT_BYTES)));
}

static struct task *clblast_gemm(struct build *b, const char *name, const struct gemm *g)
{
    if (g->start == START_BIAS)
        LAUNCH(b, JOINED(name, ".bias"), "elementwise.cl", "bias_rows", groups(b, (size_t)g->m), OUT(g->c.tensor),
               IN(g->bias), INT(g->m), INT(g->n));
    struct gemm call = *g;
    call.a.tensor = call.b.tensor = call.c.tensor = call.bias = NULL; /* the task's access list has them */
    struct tensor *work = clblast_work(b, g);
    struct task *t = add_issue(b->step, b->device->lane[LANE_COMPUTE], name, issue_clblast, &call, sizeof call);
    t->span = true;
    add_access(t, g->c.tensor, keeps_old(g) || g->start == START_BIAS ? ACCESS_BOTH : ACCESS_WRITE);
    add_access(t, g->a.tensor, ACCESS_READ);
    add_access(t, g->b.tensor, ACCESS_READ);
    if (work)
        add_access(t, work, ACCESS_WRITE);
    return t;
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

void gemm(struct build *b, const char *name, const struct gemm *g)
{
    bool own = choose_engine(b->device, b->kernels.gemm) == GEMM_OWN;
    struct task *t = own ? own_gemm(b, name, g) : clblast_gemm(b, name, g);
    /* elements of A, B and C, by the sizes of the product: the tensors may hold more */
    double in_a = (double)g->m * g->k, in_b = (double)g->k * g->n, in_c = (double)g->m * g->n;
    if (g->causal == CAUSAL_A || g->causal == CAUSAL_A_TRANSPOSED)
        in_a /= 2;
    if (g->causal == CAUSAL_OUT)
        in_c /= 2;
    set_traffic(t, g->batch * g->heads * (in_a + in_b + (g->start == START_OLD ? 2 : 1) * in_c));
    t->partial = g->causal == CAUSAL_OUT || g->part != PART_WHOLE;
    t->flops = 2.0 * g->m * g->n * g->k * g->batch * g->heads;
    if (g->causal != CAUSAL_NONE && own)
        t->flops /= 2; /* what is above the diagonal is left out */
}
