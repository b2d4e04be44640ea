/* gemm.c - matrix products: one function, two engines.
 *
 *     own      cl/gemm.cl, register-blocked, for CPUs: one chain of fma per element, so bits are reproducible
 *     clblast  the tuned library for GPUs: another order of summation, so results agree within a tolerance
 *
 * Both become tasks of the list, and their work space is a tensor of the list like any other.
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

enum { ACCESS_C, ACCESS_A, ACCESS_B, OPERANDS, ACCESS_WORK = OPERANDS }; /* a task's tensors, perhaps without WORK */

/* What CLBlast is told: C = A B by rows, or by columns C^T = B^T A^T, which is the same memory; its A is then our B. */
struct call {
    CLBlastLayout layout;
    CLBlastTranspose ta, tb;
    size_t m, n, k, batch, heads;
    size_t at_once; /* matrices: one, or all heads */
    float beta;
    struct operand of[OPERANDS]; /* their tensors are the task's */
};

/* Heads are what there are more of, heads or sequences: then fewer calls do. */
static struct call describe_call(const struct gemm *g, CLBlastLayout layout)
{
    const bool flip = layout == CLBlastLayoutColMajor, swap = g->batch > g->heads;
    struct call x = {.layout = layout,
                     .ta = g->form == (flip ? GEMM_NT : GEMM_TN) ? CLBlastTransposeYes : CLBlastTransposeNo,
                     .tb = g->form == (flip ? GEMM_TN : GEMM_NT) ? CLBlastTransposeYes : CLBlastTransposeNo,
                     .m = (size_t)(flip ? g->n : g->m),
                     .n = (size_t)(flip ? g->m : g->n),
                     .k = (size_t)g->k,
                     .batch = (size_t)MIN(g->batch, g->heads),
                     .heads = (size_t)MAX(g->batch, g->heads),
                     .beta = g->start == START_OLD ? 1 : 0,
                     .of = {g->c, flip ? g->b : g->a, flip ? g->a : g->b}};
    for (struct operand *o = x.of; o < x.of + OPERANDS; o++)
        *o = (struct operand){NULL, o->base, o->ld, swap ? o->inner : o->outer, swap ? o->outer : o->inner};
    return x;
}

/* Where matrix z of an operand begins. */
static size_t begin_of(const struct call *x, int operand, size_t z)
{
    return x->of[operand].base + z / x->heads * x->of[operand].outer + z % x->heads * x->of[operand].inner;
}

/* Nobody can ask the CLBlast of a machine on paper.  On GPUs large products read A by columns and B by rows and write C
 * by columns, in whole tiles, of which these are the largest usual ones; what lies otherwise is copied. */
static size_t guess_work(const struct call *x)
{
    enum { TILE = 128, DEPTH = 32, LEAST = 704 };
    const size_t m = round_up(x->m, TILE), n = round_up(x->n, TILE), k = round_up(x->k, DEPTH);
    const bool whole = m == x->m && n == x->n && k == x->k && x->batch * x->heads == 1;
    const bool columns = x->layout == CLBlastLayoutColMajor;
    if (x->m * x->n * x->k < (size_t)LEAST * LEAST * LEAST)
        return 0;
    size_t elements = whole && columns ? 0 : m * n;
    elements += whole && columns == (x->ta == CLBlastTransposeNo) ? 0 : m * k;
    elements += whole && columns == (x->tb == CLBlastTransposeYes) ? 0 : k * n;
    return elements * ELEMENT_BYTES;
}

/* Bytes, for the last matrix: where it is not the first, 0 says that CLBlast takes its kernel for small products. */
static size_t work_space(const struct device *d, const struct call *x)
{
    const struct operand *c = &x->of[ACCESS_C], *a = &x->of[ACCESS_A], *b = &x->of[ACCESS_B];
    const size_t last = x->batch * x->heads - 1;
    size_t bytes = 0;
    cl_command_queue queue = d->lane[LANE_COMPUTE]->queue;
    if (!queue)
        return guess_work(x);
    CLBlastStatusCode code = CLBlastSGemmTempBufferSize(
        x->layout, x->ta, x->tb, x->m, x->n, x->k, begin_of(x, ACCESS_A, last), (size_t)a->ld,
        begin_of(x, ACCESS_B, last), (size_t)b->ld, begin_of(x, ACCESS_C, last), (size_t)c->ld, &queue, &bytes);
    if (code != CLBlastSuccess)
        fail(EXIT_FAILED, "CLBlast cannot plan a product of %zu x %zu x %zu on %s (status %d); use --gemm own", x->m,
             x->n, x->k, d->id, (int)code);
    return bytes;
}

/* Matrix z, or all heads from there on.  Without a work space single products make do. */
static CLBlastStatusCode call_clblast(const struct call *x, size_t z, const cl_mem *buffer, cl_command_queue queue,
                                      cl_event *done)
{
    const struct operand *c = &x->of[ACCESS_C], *a = &x->of[ACCESS_A], *b = &x->of[ACCESS_B];
    const size_t at[] = {begin_of(x, ACCESS_C, z), begin_of(x, ACCESS_A, z), begin_of(x, ACCESS_B, z)};
    if (x->at_once == 1)
        return CLBlastSgemmWithTempBuffer(x->layout, x->ta, x->tb, x->m, x->n, x->k, 1, buffer[ACCESS_A], at[ACCESS_A],
                                          (size_t)a->ld, buffer[ACCESS_B], at[ACCESS_B], (size_t)b->ld, x->beta,
                                          buffer[ACCESS_C], at[ACCESS_C], (size_t)c->ld, &queue, done,
                                          buffer[ACCESS_WORK]);
    return CLBlastSgemmStridedBatched(x->layout, x->ta, x->tb, x->m, x->n, x->k, 1, buffer[ACCESS_A], at[ACCESS_A],
                                      (size_t)a->ld, a->inner, buffer[ACCESS_B], at[ACCESS_B], (size_t)b->ld, b->inner,
                                      x->beta, buffer[ACCESS_C], at[ACCESS_C], (size_t)c->ld, c->inner, x->at_once,
                                      &queue, done);
}

/* CLBlast takes no wait list, so a barrier takes it; its event is that of the last of its kernels. */
static void issue_clblast(const struct task *t, uint32_t number, cl_uint n_wait, const cl_event *wait, cl_event *done)
{
    (void)number;
    const struct call *x = t->context;
    cl_mem buffer[OPERANDS + 1] = {0};
    for (int i = 0; i < t->n_access; i++)
        buffer[i] = tensor_buffer(t->access[i].tensor);
    if (n_wait)
        CL(clEnqueueBarrierWithWaitList(t->lane->queue, n_wait, wait, NULL));
    for (size_t z = 0, end = x->batch * x->heads; z < end; z += x->at_once) {
        CLBlastStatusCode code = call_clblast(x, z, buffer, t->lane->queue, z + x->at_once == end ? done : NULL);
        if (code != CLBlastSuccess)
            fail(EXIT_FAILED, "CLBlast fails with status %d in task %s%s; --gemm own does without it", (int)code,
                 t->name, layer_and_micro((char[64]){0}, t));
    }
}

/* CLBlast compiles a routine for a device when it is first called, and only then refuses a product without elements.
 * What is compiled it finds again in 40 us. */
static void compile_clblast(const struct task *t)
{
    const struct device *d = t->lane->device;
    struct call empty = *(const struct call *)t->context;
    empty.m = 0;
    if (!d->context->clblast)
        note("CLBlast compiles its kernels for %s ...", d->id);
    d->context->clblast = true;
    CLBlastStatusCode code = call_clblast(&empty, 0, (cl_mem[OPERANDS + 1]){0}, t->lane->queue, NULL);
    if (code != CLBlastInvalidDimension)
        fail(EXIT_FAILED, "CLBlast does not compile for %s (status %d); use --gemm own", d->id, (int)code);
}

/* In the layout that takes less work space.  CLBlast's kernel for small products takes all heads in one call; with its
 * kernel for large ones each matrix is a call: of a batch, CLBlast 1.5.3 forgets where an operand begins that
 * it need not copy. */
static struct task *clblast_gemm(struct build *b, const char *name, const struct gemm *g)
{
    struct call call = describe_call(g, CLBlastLayoutColMajor), by_rows = describe_call(g, CLBlastLayoutRowMajor);
    size_t bytes = work_space(b->device, &call), of_rows = work_space(b->device, &by_rows);
    const bool flip = bytes <= of_rows;
    if (!flip)
        call = by_rows, bytes = of_rows;
    call.at_once = bytes ? 1 : call.heads;
    struct task *t = add_issue(b->step, b->device->lane[LANE_COMPUTE], name, issue_clblast, &call, sizeof call);
    t->span = true;
    t->compile = compile_clblast;
    add_access(t, g->c.tensor, keeps_old(g) ? ACCESS_BOTH : ACCESS_WRITE);
    add_access(t, flip ? g->b.tensor : g->a.tensor, ACCESS_READ);
    add_access(t, flip ? g->a.tensor : g->b.tensor, ACCESS_READ);
    if (bytes)
        add_access(t,
                   new_tensor(b->step->pool, b->device, MEM_WORK, "clblast.work", FLOAT32,
                              SHAPE((int64_t)ceil_div(bytes, ELEMENT_BYTES))),
                   ACCESS_WRITE);
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
    if (g->start == START_BIAS && !own)
        LAUNCH(b, JOINED(name, ".bias"), "elementwise.cl", "add_bias", groups(b, (size_t)g->m), INOUT(g->c.tensor),
               IN(g->bias), INT(g->m), INT(g->n));
}
