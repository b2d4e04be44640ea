/* gemm.c - matrix products: one function, two engines.
 *
 *     own      cl/gemm.cl, register-blocked, for CPUs: one chain of fma per element, so bits are reproducible
 *     clblast  the tuned library for GPUs: another order of summation, so results agree within a tolerance
 *
 * Both become tasks of the list, and their work space is a tensor of the list like any other.
 */
#include "model.h"
#include "trainer/device/driver.h"

#include <clblast_c.h>
#include <math.h>

const char *const gemm_form_name[3] = {"NT", "NN", "TN"};

struct operand matrix(struct tensor *x, int ld) { return (struct operand){.tensor = x, .ld = ld}; }

/* Does the product need what C's tensor held before: to add to it, or because C is only a part of it? */
static bool keeps_old(const struct gemm *product) { return product->start == START_OLD || product->part == PART_NEXT; }

/* ---- our own kernel ---------------------------------------------------------------------------------------------- */

enum {
    MOST_SPAN = 640,  /* columns: a wide span packs A seldom, and B's panels must lie in the L2 cache */
    LEAST_BAND = 64,  /* rows: the lower a band, the more often B is packed */
    MOST_DEPTH = 384, /* steps of k: with 128, 256 and 384 the measured speeds differ by 2 % of the peak */
    A_ROWS = 48,      /* rows of a block of A: a multiple of a tile's rows, which are 6 or 4 */
    ROOM = 256 << 10, /* bytes of local memory: where half of it is less, panels and block fill more than half */
    LINE = 16,        /* floats of a cache line of 64 bytes: depth is a multiple, so no line of A is in two panels */
};

/* The estimated time of a product, in fma()s of a vector: to pack a float takes as long as four.  The part of a round
 * that is added stands for cores that are disturbed, or slower than others: the more cores there are, the likelier. */
static double estimate_time(const struct device *device, const struct gemm *product, size_t band, size_t span)
{
    size_t matrices = (size_t)(product->batch * product->heads);
    size_t groups = ceil_div((size_t)product->n, span) * ceil_div((size_t)product->m, band) * matrices;
    double rounds = (double)ceil_div(groups, device->units) + MIN(0.05 * device->units, 0.25);
    double computed = (double)(band * span) / device->shape.vector;
    double packed = 4 * (double)(band + span);
    return rounds * (computed + packed);
}

/* The most elements of local memory that panels and block fill: half of it (on PoCL that is the L2 cache); where it is
 * small, all of it. */
static size_t room_of(const struct device *device)
{
    return MIN(MAX(device->shape.local_memory / 2, ROOM), device->shape.local_memory) / ELEMENT_BYTES;
}

/* How deep panels of this span are.  All rounds over the product's k are equally deep. */
static size_t choose_depth(size_t room, size_t k, size_t span)
{
    size_t deepest = MIN(room / (span + A_ROWS), MOST_DEPTH);
    deepest = MIN((size_t)sqrt((double)room), deepest);
    size_t rounds = ceil_div(k, deepest);
    size_t depth = round_up(ceil_div(k, rounds), LINE);
    return MIN(MIN(depth, deepest), k);
}

/* How much of a product one work-item computes.  B is packed once for each band and A once for each span, so few and
 * large pieces are good; but all cores should have the same to do.  A is packed in form TN if four panels or more then
 * read it, and not if a triangle of it is left out. */
static struct gemm_blocking choose_blocking(const struct device *device, const struct gemm *product)
{
    size_t m = (size_t)product->m;
    size_t columns = device->shape.tile_vectors * device->shape.vector; /* a panel's */
    size_t all = round_up((size_t)product->n, columns);
    size_t room = room_of(device);
    size_t least = MIN(4 * columns, all);
    size_t depth = choose_depth(room, (size_t)product->k, least);
    size_t widest = MIN(MIN(room / depth - A_ROWS, MOST_SPAN), all);
    bool may_pack = product->form == GEMM_TN && product->causal == CAUSAL_NONE;
    struct gemm_blocking best = {.depth = (int)depth};
    double best_time = INFINITY;
    for (size_t span = least; span <= widest; span += columns)
        for (size_t bands = 1; bands == 1 || bands <= m / LEAST_BAND; bands++) {
            size_t band = round_up(ceil_div(m, bands), device->shape.tile_rows);
            double time = estimate_time(device, product, band, span);
            if (time >= best_time)
                continue;
            bool packed = may_pack && span >= 4 * columns;
            best.band = (int)band;
            best.span = (int)span;
            best.block = packed ? A_ROWS : 0;
            best_time = time;
        }
    return best;
}

/* Where the kernel finds the elements of an operand, whose matrices are stored as they are or transposed. */
static struct gemm_strides strides_of(const struct operand *x, bool transposed)
{
    return (struct gemm_strides){.offset = (int)x->offset,
                                 .batch_stride = (int)x->batch_stride,
                                 .head_stride = (int)x->head_stride,
                                 .row = transposed ? 1 : x->ld,
                                 .col = transposed ? x->ld : 1};
}

static struct grid own_grid(const struct gemm *product, const struct gemm_blocking *blocking)
{
    size_t spans = ceil_div((size_t)product->n, (size_t)blocking->span);
    size_t bands = ceil_div((size_t)product->m, (size_t)blocking->band);
    size_t matrices = (size_t)(product->batch * product->heads);
    return (struct grid){.dims = 3, .global = {spans, bands, matrices}, .local = {1, 1, 1}};
}

static struct task *own_gemm(struct builder *b, const char *name, const struct gemm *product)
{
    const struct gemm_blocking blocking = choose_blocking(b->device, product);
    const struct gemm_strides C = strides_of(&product->c, false);
    const struct gemm_strides A = strides_of(&product->a, product->form == GEMM_TN);
    const struct gemm_strides B = strides_of(&product->b, product->form == GEMM_NT);
    const struct gemm_sizes sizes = {.M = product->m,
                                     .N = product->n,
                                     .K = product->k,
                                     .heads = product->heads,
                                     .start = (int)product->start,
                                     .causal = (int)product->causal};
    const struct arg no_bias = NO_TENSOR;
    const struct arg bias = product->start == START_BIAS ? IN(product->bias) : no_bias;
    return LAUNCH(b, name, "gemm.cl", "gemm", own_grid(product, &blocking),
                  ACCUMULATE(product->c.tensor, keeps_old(product)), STRUCT(C),
                  IN(product->a.tensor), STRUCT(A),
                  IN(product->b.tensor), STRUCT(B),
                  bias,
                  STRUCT(sizes), STRUCT(blocking),
                  LOCAL(ELEMENT_BYTES * (blocking.span + blocking.block) * blocking.depth));
}

/* ---- CLBlast ----------------------------------------------------------------------------------------------------- */

/* A task's tensors.  It may have no WORK_SPACE. */
enum { OPERAND_C, OPERAND_A, OPERAND_B, OPERANDS, WORK_SPACE = OPERANDS };

/* Where CLBlast finds the elements of an operand, whose tensor is in the task's access list. */
struct call_operand {
    size_t offset;       /* elements: from the beginning of the tensor to the first matrix */
    size_t outer_stride; /* from group to group */
    size_t inner_stride; /* from matrix to matrix in a group */
    size_t ld;           /* from row to row; by columns, from column to column */
};

/* What CLBlast is told: C = A B by rows; or C^T = B^T A^T by columns, which is the same memory.  By columns the A of
 * CLBlast is our B. */
struct call {
    CLBlastLayout layout;
    CLBlastTranspose ta, tb;
    size_t m, n, k;
    size_t outer, inner; /* groups; matrices of a group */
    size_t at_once;      /* how many matrices a call takes: one, or all of a group */
    float beta;
    struct call_operand of[OPERANDS];
};

static CLBlastTranspose transpose(bool yes) { return yes ? CLBlastTransposeYes : CLBlastTransposeNo; }

static struct call make_call_by_rows(const struct gemm *product)
{
    return (struct call){.layout = CLBlastLayoutRowMajor,
                         .ta = transpose(product->form == GEMM_TN),
                         .tb = transpose(product->form == GEMM_NT),
                         .m = (size_t)product->m,
                         .n = (size_t)product->n,
                         .k = (size_t)product->k};
}

static struct call make_call_by_columns(const struct gemm *product)
{
    return (struct call){.layout = CLBlastLayoutColMajor,
                         .ta = transpose(product->form == GEMM_NT),
                         .tb = transpose(product->form == GEMM_TN),
                         .m = (size_t)product->n,
                         .n = (size_t)product->m,
                         .k = (size_t)product->k};
}

/* A group is the heads of one sequence; or, where there are fewer heads than sequences, one head of all sequences: the
 * larger the groups, the fewer calls there are. */
static struct call_operand make_call_operand(const struct operand *operand, bool by_head)
{
    return (struct call_operand){.offset = operand->offset,
                                 .outer_stride = by_head ? operand->head_stride : operand->batch_stride,
                                 .inner_stride = by_head ? operand->batch_stride : operand->head_stride,
                                 .ld = (size_t)operand->ld};
}

static struct call make_call(const struct gemm *product, CLBlastLayout layout)
{
    bool by_columns = layout == CLBlastLayoutColMajor;
    bool by_head = product->heads < product->batch;
    struct call call = by_columns ? make_call_by_columns(product) : make_call_by_rows(product);
    call.outer = (size_t)(by_head ? product->heads : product->batch);
    call.inner = (size_t)(by_head ? product->batch : product->heads);
    call.beta = product->start == START_OLD ? 1 : 0;
    call.of[OPERAND_C] = make_call_operand(&product->c, by_head);
    call.of[OPERAND_A] = make_call_operand(by_columns ? &product->b : &product->a, by_head);
    call.of[OPERAND_B] = make_call_operand(by_columns ? &product->a : &product->b, by_head);
    return call;
}

/* The element at which matrix z of an operand begins. */
static size_t begin_of(const struct call *call, int operand, size_t z)
{
    const struct call_operand *of = &call->of[operand];
    return of->offset + z / call->inner * of->outer_stride + z % call->inner * of->inner_stride;
}

/* Guesses the work space on a machine on paper, which has no CLBlast that could be asked.  On GPUs large products read
 * A by columns and B by rows, and write C by columns.  All three have whole tiles, of which these are the largest usual
 * ones.  A matrix for which that does not hold is copied. */
static size_t guess_work(const struct call *call)
{
    enum { TILE = 128, DEPTH = 32, LEAST = 704 };
    size_t m = round_up(call->m, TILE);
    size_t n = round_up(call->n, TILE);
    size_t k = round_up(call->k, DEPTH);
    bool whole = m == call->m && n == call->n && k == call->k && call->outer * call->inner == 1;
    bool columns = call->layout == CLBlastLayoutColMajor;
    if (call->m * call->n * call->k < (size_t)LEAST * LEAST * LEAST)
        return 0;
    size_t elements = 0;
    if (!whole || !columns)
        elements += m * n;
    if (!whole || columns != (call->ta == CLBlastTransposeNo))
        elements += m * k;
    if (!whole || columns != (call->tb == CLBlastTransposeYes))
        elements += k * n;
    return elements * ELEMENT_BYTES;
}

/* The bytes of work space that CLBlast needs for the last matrix.  If that is not the first matrix, 0 means that
 * CLBlast takes its kernel for small products. */
static size_t work_space(const struct device *device, const struct call *call)
{
    size_t lda = call->of[OPERAND_A].ld;
    size_t ldb = call->of[OPERAND_B].ld;
    size_t ldc = call->of[OPERAND_C].ld;
    size_t last = call->outer * call->inner - 1;
    size_t bytes = 0;
    cl_command_queue queue = device->lanes[LANE_COMPUTE]->queue;
    if (!queue)
        return guess_work(call);
    CLBlastStatusCode code = CLBlastSGemmTempBufferSize(
        call->layout, call->ta, call->tb, call->m, call->n, call->k, begin_of(call, OPERAND_A, last), lda,
        begin_of(call, OPERAND_B, last), ldb, begin_of(call, OPERAND_C, last), ldc, &queue, &bytes);
    if (code != CLBlastSuccess)
        fail(EXIT_FAILED, "CLBlast cannot plan a product of %zu x %zu x %zu on %s (status %d); use --gemm own", call->m,
             call->n, call->k, device->id, (int)code);
    return bytes;
}

/* Computes matrix z, or the group that begins with it.  buffers[WORK_SPACE] may be NULL: some products need no
 * work space. */
static CLBlastStatusCode call_clblast(const struct call *call, size_t z, const cl_mem *buffers, cl_command_queue queue,
                                      cl_event *done)
{
    const struct call_operand *A = &call->of[OPERAND_A];
    const struct call_operand *B = &call->of[OPERAND_B];
    const struct call_operand *C = &call->of[OPERAND_C];
    cl_mem a_buffer = buffers[OPERAND_A];
    cl_mem b_buffer = buffers[OPERAND_B];
    cl_mem c_buffer = buffers[OPERAND_C];
    size_t a_begin = begin_of(call, OPERAND_A, z), lda = A->ld;
    size_t b_begin = begin_of(call, OPERAND_B, z), ldb = B->ld;
    size_t c_begin = begin_of(call, OPERAND_C, z), ldc = C->ld;
    if (call->at_once == 1)
        return CLBlastSgemmWithTempBuffer(call->layout, call->ta, call->tb, call->m, call->n, call->k, 1, a_buffer,
                                          a_begin, lda, b_buffer, b_begin, ldb, call->beta, c_buffer, c_begin, ldc,
                                          &queue, done, buffers[WORK_SPACE]);
    return CLBlastSgemmStridedBatched(call->layout, call->ta, call->tb, call->m, call->n, call->k, 1, a_buffer, a_begin,
                                      lda, A->inner_stride, b_buffer, b_begin, ldb, B->inner_stride, call->beta,
                                      c_buffer, c_begin, ldc, C->inner_stride, call->at_once, &queue, done);
}

/* CLBlast takes no wait list, so a barrier before it does.  CLBlast's event is that of the last of its kernels. */
static void enqueue_clblast(const struct task *task, uint32_t iteration, cl_uint n_wait, const cl_event *wait_list,
                            cl_event *done)
{
    (void)iteration;
    const struct call *call = task->argument;
    cl_mem buffers[OPERANDS + 1] = {0};
    for (int i = 0; i < task->n_accesses; i++)
        buffers[i] = tensor_buffer(task->accesses[i].tensor);
    if (n_wait)
        CL(clEnqueueBarrierWithWaitList(task->lane->queue, n_wait, wait_list, NULL));
    for (size_t z = 0, end = call->outer * call->inner; z < end; z += call->at_once) {
        bool is_last = z + call->at_once == end;
        CLBlastStatusCode code = call_clblast(call, z, buffers, task->lane->queue, is_last ? done : NULL);
        char where[LAYER_AND_MICRO];
        if (code != CLBlastSuccess)
            fail(EXIT_FAILED, "CLBlast fails with status %d in task %s%s; --gemm own does without it", (int)code,
                 task->name, layer_and_micro(where, task));
    }
}

/* CLBlast compiles a routine for a device when it is first called, and only then refuses a product without elements.
 * Later calls find what was compiled in 40 us. */
static void compile_clblast(const struct task *task)
{
    const struct device *device = task->lane->device;
    const struct call *call = task->argument;
    struct call empty = *call;
    empty.m = 0;
    const cl_mem no_buffers[OPERANDS + 1] = {0};
    if (!device->context->clblast_announced)
        inform("CLBlast compiles its kernels for %s ...", device->id);
    device->context->clblast_announced = true;
    CLBlastStatusCode code = call_clblast(&empty, 0, no_buffers, task->lane->queue, NULL);
    if (code != CLBlastInvalidDimension)
        fail(EXIT_FAILED, "CLBlast does not compile for %s (status %d); use --gemm own", device->id, (int)code);
}

/* Takes the layout that needs less work space.  CLBlast's kernel for small products takes a group in one call.  With
 * the one for large products each matrix needs a call, because of a mistake in CLBlast 1.5.3: where it does not copy an
 * operand, it reads the first matrix of a batch in place of the one that is due. */
static struct task *clblast_gemm(struct builder *b, const char *name, const struct gemm *product)
{
    struct call by_columns = make_call(product, CLBlastLayoutColMajor);
    struct call by_rows = make_call(product, CLBlastLayoutRowMajor);
    size_t for_columns = work_space(b->device, &by_columns);
    size_t for_rows = work_space(b->device, &by_rows);
    bool flip = for_columns <= for_rows; /* A and B change places */
    struct call call = flip ? by_columns : by_rows;
    size_t bytes = MIN(for_columns, for_rows);
    call.at_once = bytes ? 1 : call.inner;
    struct task *task =
        add_own_commands(b->list, b->device->lanes[LANE_COMPUTE], name, enqueue_clblast, &call, sizeof call);
    task->extra.commands.only_last_event = true;
    task->extra.commands.compile = compile_clblast;
    add_access(task, product->c.tensor, keeps_old(product) ? ACCESS_BOTH : ACCESS_WRITE);
    add_access(task, flip ? product->b.tensor : product->a.tensor, ACCESS_READ);
    add_access(task, flip ? product->a.tensor : product->b.tensor, ACCESS_READ);
    if (bytes) {
        int64_t elements = (int64_t)ceil_div(bytes, ELEMENT_BYTES);
        struct tensor *work = new_work_tensor(b->list->pool, b->device, "clblast.work", SHAPE(elements));
        add_access(task, work, ACCESS_WRITE);
    }
    return task;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

void gemm(struct builder *b, const char *name, const struct gemm *product)
{
    bool own = choose_engine(b->device, b->kernels.gemm) == GEMM_OWN;
    struct task *task = own ? own_gemm(b, name, product) : clblast_gemm(b, name, product);
    /* elements of A, B and C, by the sizes of the product: the tensors may hold more */
    double a_elements = (double)product->m * product->k;
    double b_elements = (double)product->k * product->n;
    double c_elements = (double)product->m * product->n;
    if (product->causal == CAUSAL_A || product->causal == CAUSAL_A_TRANSPOSED)
        a_elements /= 2;
    if (product->causal == CAUSAL_OUT)
        c_elements /= 2;
    if (product->start == START_OLD)
        c_elements *= 2; /* read, then written */
    set_traffic(task, product->batch * product->heads * (a_elements + b_elements + c_elements));
    task->extra.partial = product->causal == CAUSAL_OUT || product->part != PART_WHOLE;
    task->flops = 2.0 * product->m * product->n * product->k * product->batch * product->heads;
    if (product->causal != CAUSAL_NONE && own)
        task->flops /= 2; /* what is above the diagonal is left out */
    if (product->start == START_BIAS && !own)
        LAUNCH(b, JOINED(name, ".bias"), "elementwise.cl", "add_bias", work_groups(b, product->m),
               INOUT(product->c.tensor),
               IN(product->bias),
               INT(product->n));
}
