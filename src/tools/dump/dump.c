/* dump.c - yard train --dump NAME=FILE.npy: a tensor of the last step, as it is right after its last writer.
 *
 *     task     ...  attn.scores  attn.softmax | attn.mix ...
 *     writes        attn.att     attn.att     |
 *                                             ^ before this task is issued, the run waits for all that was issued
 *
 * Later tasks may change the tensor's bytes, or give them to another tensor, so a run that has ended does not have
 * them any more.  Several tensors may have one name, such as those of the layers.  NAME@2 means layer 2.  If several
 * tensors remain, the one that the list writes last is dumped.
 *
 * The file has NumPy's form: a magic word, the length of a header, and the header, which is a text of Python with
 * element type and shape.  The elements follow, row by row.
 */
#include "trainer/file/file.h"
#include "trainer/run/run.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

#include <ctype.h>

static const char *request; /* NAME[@LAYER]=FILE.npy as it was given to --dump; NULL: no dump is asked for */

struct dump_target {       /* the tensor that is dumped */
    struct tensor *tensor; /* NULL: none was found */
    size_t writer;         /* the position of the tensor's last writer in the list */
};

static struct {
    struct trainer *trainer; /* the one that trains; NULL: no dump is being made */
    struct dump_target target;
    uint32_t last_step;
    const char *path; /* the file to write */
    bool is_written;
} pending;

/* ---- which tensor ------------------------------------------------------------------------------------------------ */

/* Splits NAME@LAYER: returns NAME, which the caller frees; *layer becomes NONE where no layer is given. */
static char *split_layer(const char *name, int *layer)
{
    const char *at = strrchr(name, '@');
    int64_t number;
    *layer = NONE;
    if (!at || !parse_int(at + 1, &number) || number < 0 || number > INT32_MAX)
        return copy_string(name);
    *layer = (int)number;
    return format_string("%.*s", (int)(at - name), name);
}

/* Does a task of the list write bytes of the tensor?  Parameters are views, and AdamW writes all of a layer's as one
 * tensor.  *writer is the last such task. */
static bool find_writer(const struct list *list, const struct tensor *tensor, size_t *writer)
{
    for (size_t i = list->n; i-- > 0;)
        for (int k = 0; k < list->tasks[i]->n_accesses; k++) {
            const struct access *access = &list->tasks[i]->accesses[k];
            if ((access->mode & ACCESS_WRITE) && share_bytes(access->tensor, tensor)) {
                *writer = i;
                return true;
            }
        }
    return false;
}

/* Finds, of the tensors of that name that tasks of that layer use (NONE: of any), the one that is written last. */
static struct dump_target find_target(const struct list *list, const char *name, int layer)
{
    struct dump_target target = {NULL, 0};
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (layer != NONE && task->layer != layer)
            continue;
        for (int k = 0; k < task->n_accesses; k++) {
            const struct access *access = &task->accesses[k];
            size_t writer = 0;
            bool same = strcmp(access->tensor->name, name) == 0;
            if (!same || !find_writer(list, access->tensor, &writer))
                continue;
            if (target.tensor && writer <= target.writer)
                continue;
            target.tensor = access->tensor;
            target.writer = writer;
        }
    }
    return target;
}

/* How far the name is from what was typed: 0 if it has that as a part, else how many typing errors lie between. */
static int name_distance(const char *typed, const char *name)
{
    return strstr(name, typed) ? 0 : edit_distance(typed, name);
}

/* Half a sentence with the written tensor's name that is nearest to what was typed; "" where none is near.  The caller
 * frees it. */
static char *suggest_name(const struct list *list, const char *typed)
{
    const char *nearest = NULL;
    char *lowered = copy_string(typed);
    int least = 2 + (int)strlen(typed) / 3; /* a guess that needs as many typing errors would only confuse */
    for (char *c = lowered; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (size_t i = 0; i < list->n; i++)
        for (int k = 0; k < list->tasks[i]->n_accesses; k++) {
            const struct access *access = &list->tasks[i]->accesses[k];
            int distance = name_distance(lowered, access->tensor->name);
            size_t writer;
            if (distance >= least || !find_writer(list, access->tensor, &writer))
                continue;
            least = distance;
            nearest = access->tensor->name;
        }
    free(lowered);
    return nearest ? format_string(" did you mean %s?", nearest) : copy_string("");
}

/* What NAME or NAME@LAYER stands for.  The whole word may be a name too. */
static struct dump_target must_find_target(const struct list *list, const char *typed)
{
    int layer;
    char *name = split_layer(typed, &layer);
    struct dump_target target = find_target(list, typed, NONE);
    if (!target.tensor)
        target = find_target(list, name, layer);
    if (!target.tensor && layer != NONE && find_target(list, name, NONE).tensor)
        fail(EXIT_USAGE, "--dump: no task of layer %d uses %s; `yard plan --print` shows which tasks do", layer, name);
    if (!target.tensor)
        fail(EXIT_USAGE, "--dump: no task writes a tensor %s;%s `yard plan --print` shows all", typed,
             suggest_name(list, name));
    free(name);
    return target;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

enum { FIXED_BYTES = 10, ALIGNMENT = 64 };

/* The text of Python that says what the elements are.  The file begins with FIXED_BYTES bytes and this text.  Spaces
 * make the length of both a multiple of ALIGNMENT.  The caller frees it. */
static char *npy_header(const struct tensor *tensor)
{
    const char *type = tensor->type == INT32 ? "<i4" : "<f4";
    char *header = format_string("{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int i = 0; i < tensor->shape.n_dims; i++)
        append_text(&header, "%lld,%s", (long long)tensor->shape.size[i], i + 1 < tensor->shape.n_dims ? " " : "");
    append_text(&header, "), }");
    size_t length = FIXED_BYTES + strlen(header) + strlen("\n");
    int spaces = (int)((ALIGNMENT - length % ALIGNMENT) % ALIGNMENT);
    append_text(&header, "%*s\n", spaces, "");
    return header;
}

static void write_npy(const struct tensor *tensor, const void *elements)
{
    char *header = npy_header(tensor);
    size_t length = strlen(header);
    unsigned char low = length & 0xff, high = (unsigned char)(length >> 8);
    /* the magic word, version 1.0, and the header's length */
    const unsigned char begin[FIXED_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, low, high};
    struct writer *writer = open_writer(pending.path);
    write_bytes(writer, begin, sizeof begin);
    write_bytes(writer, header, length);
    write_bytes(writer, elements, tensor->bytes);
    must(publish(writer));
    free(header);
}

static void write_dump(struct list *list)
{
    struct tensor *tensor = tensor_at(pending.target.tensor, pending.last_step);
    void *elements = allocate(tensor->bytes, 1);
    pending.is_written = true;
    if (!execution.serial)
        retire_all(list);
    read_tensor(tensor, elements);
    write_npy(tensor, elements);
    free(elements);
}

/* ---- when it is written ------------------------------------------------------------------------------------------ */

/* The run calls this before each task is issued.  In the last step, it dumps before the first task after the writer. */
static void dump_after_writer(void *context, struct list *list, const struct task *task, uint32_t iteration)
{
    (void)context;
    bool is_last_step = list == pending.trainer->train_list && iteration == pending.last_step;
    if (is_last_step && task->index > pending.target.writer && !pending.is_written)
        write_dump(list);
}

static struct observer observer = {.issuing = dump_after_writer};

static void prepare_dump(struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    if (!request)
        return;
    const char *equals = strchr(request, '=');
    if (!equals || equals == request || !ends_with(request, ".npy"))
        fail(EXIT_USAGE, "--dump takes NAME=FILE.npy, such as attn.att=att.npy, not \"%s\"", request);
    char *typed = format_string("%.*s", (int)(equals - request), request);
    pending.trainer = trainer;
    pending.path = equals + 1;
    pending.last_step = last_step(settings);
    pending.is_written = false;
    claim_output("--dump", pending.path, NULL);
    pending.target = must_find_target(trainer->train_list, typed);
    free(typed);
    add_observer(&observer);
}

/* The tensor's last writer may be the last task that runs: then it is dumped now. */
static void end_dump(struct trainer *trainer)
{
    if (!pending.trainer)
        return;
    if (!pending.is_written && !interrupted())
        write_dump(trainer->train_list);
    remove_observer(&observer);
    pending.trainer = NULL;
    if (pending.is_written)
        print_line(stdout, "dumped      %s, after task %zu %s of step %u, to %s", pending.target.tensor->name,
                   pending.target.writer, trainer->train_list->tasks[pending.target.writer]->name, pending.last_step,
                   pending.path);
}

static const struct option options[] = {
    {.name = "dump",
     .type = OPT_TEXT,
     .value = &request,
     .argument = "NAME[@LAYER]=FILE.npy",
     .help = "write a tensor of the last step for NumPy, as it is right after its last writer. `yard plan --print` "
             "shows the names",
     .classes = OF_TRAIN,
     .group = GROUP_LOOKING},
};
static const struct hooks hooks = {
    .lists_ready = prepare_dump,
    .steps_ended = end_dump,
};
static const struct training_parts training = {.hooks = &hooks};
const struct module module_dump = {
    .name = "dump",
    .training = &training,
    .options = options,
    .n_options = COUNT(options),
};
