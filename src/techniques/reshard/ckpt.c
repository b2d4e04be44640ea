/* ckpt.c - yard ckpt: looks into checkpoints, checks, compares and rewrites them; needs no device. */
#include "compare.h"
#include "copy_plan.h"
#include "export.h"
#include "find_checkpoint.h"
#include "manifest.h"
#include "resume.h"
#include "store.h"
#include "tools/command/arguments.h"
#include "tools/command/table.h"
#include "trainer/train/train.h"
#include "transfer.h"

#include <errno.h>
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the words ------------------------------------------------------------------------------------------------- */

static struct {
    bool json, plan;
    const char *mesh;
    int zero;
} given;

enum { LS = 1, VERIFY = 2, CKPT_DIFF = 4, RESHARD = 8, CKPT_EXPORT = 16 };
static const struct option options[] = {
    {.name = "mesh",
     .type = OPT_TEXT,
     .value = &given.mesh,
     .argument = "dp=A,pp=B,tp=C",
     .group = "What",
     .commands = RESHARD,
     .help = "mesh by which the state is cut, and under which training goes on. An omitted axis is 1 "
             "(default: the pieces are merged, and the strategy stays)"},
    {.name = "zero",
     .type = OPT_INT,
     .value = &given.zero,
     .argument = "0..3",
     .low = 0,
     .high = 3,
     .group = "What",
     .commands = RESHARD,
     .help = "what is divided among data-parallel ranks. 1 and 2: Adam's state. 3: parameters too (default: as it "
             "was)"},
    {.name = "plan",
     .type = OPT_FLAG,
     .value = &given.plan,
     .group = "What",
     .commands = RESHARD,
     .help = "print the copies instead of making them"},
    {.name = "json",
     .type = OPT_FLAG,
     .value = &given.json,
     .group = "Output",
     .commands = ~0u,
     .help = "print one JSON object on stdout instead of tables"},
};
static struct option_table table = {.options = options, .n = COUNT(options)};

/* ---- ls -------------------------------------------------------------------------------------------------------- */

/* "rows", "columns in 3": how tensor parallelism cuts it. */
static void format_cut(char out[32], const struct kept_tensor *tensor)
{
    static const char *const axes[] = {"-", "rows", "columns"};
    const char *axis = axes[tensor->axis + 1];
    if (tensor->dims == 1 && tensor->axis == 0)
        axis = "elements";
    if (tensor->sections > 1)
        snprintf(out, 32, "%s in %d", axis, tensor->sections);
    else
        snprintf(out, 32, "%s", axis);
}

/* "0: 64-128", "0: [0:64]" or "0: [0:64, 0:32]": the rank, and what it has. */
static void format_piece(char out[128], const struct kept_tensor *tensor, const struct piece *piece)
{
    const long long begin[2] = {piece->begin[0], piece->begin[1]}, end[2] = {piece->end[0], piece->end[1]};
    if (piece->flat)
        snprintf(out, 128, "%d: %lld-%lld", piece->rank, begin[0], end[0]);
    else if (tensor->dims == 1)
        snprintf(out, 128, "%d: [%lld:%lld]", piece->rank, begin[0], end[0]);
    else
        snprintf(out, 128, "%d: [%lld:%lld, %lld:%lld]", piece->rank, begin[0], end[0], begin[1], end[1]);
}

static void list_tensor(struct table *out, const struct kept_tensor *tensor)
{
    const char *name = tensor->name, *role = kept_name[tensor->role];
    char shape[128], cut[32], text[128];
    format_shape(shape, tensor->dims, tensor->shape);
    format_cut(cut, tensor);
    for (size_t i = 0; i < tensor->n; i++) {
        format_piece(text, tensor, &tensor->piece[i]);
        if (i == 0)
            ROW(out, text_cell(name), text_cell(role), text_cell(shape), text_cell(cut), text_cell(text));
        else
            ROW(out, text_cell(""), text_cell(""), text_cell(""), text_cell(""), text_cell(text));
    }
}

/* The id of the checkpoint's run, written into `out`; NULL: it is not known. */
static const char *run_of(char out[20], const struct checkpoint *checkpoint)
{
    snprintf(out, 20, "%016llx", (unsigned long long)checkpoint->run);
    return checkpoint->run ? out : NULL;
}

static void print_ls_json(const struct checkpoint *checkpoint)
{
    const struct store *store = checkpoint->stored ? checkpoint->stored->store : NULL;
    const struct mesh strategy = strategy_of(checkpoint);
    char run[20];
    json_t *all = json_object();
    json_object_set_new(all, "checkpoint", text_json(checkpoint->path));
    json_object_set_new(all, "step", json_integer(checkpoint->step));
    json_object_set_new(all, "run", run_of(run, checkpoint) ? json_string(run) : json_null());
    json_object_set_new(all, "session", json_integer(checkpoint->session));
    json_object_set_new(all, "program", *checkpoint->program ? text_json(checkpoint->program) : json_null());
    if (store)
        json_object_set_new(all, store->name, store->to_json(checkpoint));
    json_object_set_new(all, "mesh", mesh_json(&checkpoint->pieces->mesh));
    json_object_set_new(all, "strategy", mesh_json(&strategy));
    json_object_set_new(all, "tensors", tensors_json(checkpoint));
    print_json(all);
}

static void print_ls(const struct checkpoint *checkpoint)
{
    static const struct column columns[] = {{"tensor", NULL, CELL_TEXT, 27, 0},
                                            {"role", NULL, CELL_TEXT, 6, 0},
                                            {"shape", NULL, CELL_TEXT, 13, 0},
                                            {"cut by", NULL, CELL_TEXT, 13, 0},
                                            {"rank: what it has", NULL, CELL_TEXT, 30, 0}};
    char run[20], bytes[32], sizes[160], mesh[64];
    struct table *out = new_table(columns, COUNT(columns));
    const struct pieces *pieces = checkpoint->pieces;
    const struct mesh strategy = strategy_of(checkpoint);
    size_t elements = 0;
    for (size_t i = 0; i < pieces->n; i++) {
        elements += tensor_elements(&pieces->tensor[i]);
        list_tensor(out, &pieces->tensor[i]);
    }
    print_line(stdout, "checkpoint  %s: step %u, %lld sequences", checkpoint->path, checkpoint->step,
               (long long)checkpoint->samples);
    if (checkpoint->stored)
        checkpoint->stored->store->print(checkpoint);
    print_line(stdout, "run         %s, session %lld; written by %s%s", run_of(run, checkpoint) ? run : "not known",
               (long long)checkpoint->session, *checkpoint->program ? "yard " : "an older yard", checkpoint->program);
    print_line(stdout, "model       %s", describe_sizes(sizes, &pieces->config));
    print_line(stdout, "mesh        %s, zero %d; %zu tensors, %s", format_mesh(mesh, &pieces->mesh), pieces->mesh.zero,
               pieces->n, format_bytes(bytes, (double)(ELEMENT_BYTES * elements)));
    printf("strategy    %s, zero %d\n", format_mesh(mesh, &strategy), strategy.zero);
    print_table(stdout, out);
}

static int run_ls(char **words)
{
    struct checkpoint *checkpoint = open_checkpoint(words[0]);
    if (given.json)
        print_ls_json(checkpoint);
    else
        print_ls(checkpoint);
    free_checkpoint(checkpoint);
    return EXIT_OK;
}

/* ---- verify ---------------------------------------------------------------------------------------------------- */

struct opened { /* the argument of try_open(), for attempt() */
    const char *path;
    struct checkpoint *checkpoint;
};

static void try_open(void *argument)
{
    struct opened *opened = argument;
    const struct store *store = find_store(opened->path);
    if (store)
        opened->checkpoint =
            store->open(opened->path); /* open_checkpoint() would warn of damage, which is counted here */
    else
        opened->checkpoint = open_checkpoint(opened->path);
}

static void add_damage(json_t *damaged, const char *reason, const char *tensor, const char *role)
{
    json_array_append_new(damaged, json_pack("{s:s?, s:s?, s:s}", "tensor", tensor, "role", role, "reason", reason));
    if (!given.json)
        print_line(stdout, "%s", reason);
}

/* Reads every tensor's pieces; what is wrong goes into `damaged`.  Returns the bytes that are sound. */
static uint64_t verify_tensors(const struct checkpoint *checkpoint, json_t *damaged)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < checkpoint->pieces->n; i++) {
        const struct kept_tensor *tensor = &checkpoint->pieces->tensor[i];
        struct problem *problem = NULL;
        if (!checkpoint->stored) /* opening another form has verified all of it */
            problem = verify_tensor(checkpoint, i);
        if (problem)
            add_damage(damaged, problem->sentence, tensor->name, kept_name[tensor->role]);
        else
            bytes += ELEMENT_BYTES * tensor_elements(tensor);
    }
    return bytes;
}

/* Verifies one checkpoint, the only one or one of a folder.  *step: becomes the highest step of those verified. */
static uint64_t verify_one(const char *path, bool only, json_t *damaged, int64_t *step)
{
    struct opened opened = {.path = path};
    size_t before = json_array_size(damaged);
    char text[32];
    struct problem *problem = attempt(try_open, &opened);
    if (problem && only && problem->code != EXIT_FAILED)
        must(problem);
    if (problem) {
        add_damage(damaged, problem->sentence, NULL, NULL);
        return 0;
    }
    struct checkpoint *checkpoint = opened.checkpoint;
    for (size_t i = 0; checkpoint->stored && i < checkpoint->stored->n_damage; i++)
        add_damage(damaged, checkpoint->stored->damage[i], NULL, NULL);
    uint64_t bytes = verify_tensors(checkpoint, damaged);
    if (!given.json && json_array_size(damaged) == before)
        print_line(stdout, "%s: sound: %zu tensors, each element once; %s read, hashes compared", path,
                   checkpoint->pieces->n, format_bytes(text, (double)bytes));
    *step = MAX(*step, checkpoint->step);
    free_checkpoint(checkpoint);
    return bytes;
}

static int run_verify(char **words)
{
    size_t n;
    int64_t step = -1;
    uint64_t bytes = 0;
    json_t *damaged = json_array();
    char **path = all_checkpoints(words[0], &n);
    for (size_t i = 0; i < n; i++)
        bytes += verify_one(path[i], n == 1, damaged, &step);
    size_t wrong = json_array_size(damaged);
    if (given.json)
        print_json(json_pack("{s:o, s:I, s:I, s:b, s:o}", "checkpoint", text_json(path[0]), "step", (json_int_t)step,
                             "bytes", (json_int_t)bytes, "sound", wrong == 0, "damaged", damaged));
    if (wrong)
        fail(EXIT_FAILED, "%s is not whole: %zu problem%s", n == 1 ? path[0] : words[0], wrong, wrong == 1 ? "" : "s");
    return EXIT_OK;
}

/* ---- diff ------------------------------------------------------------------------------------------------------ */

/* Returns the later one if both are of the same run; else NULL. */
static const struct checkpoint *later_of(const struct checkpoint *a, const struct checkpoint *b)
{
    int order = BY(a->session, b->session, COMPARE(a->step, b->step));
    if (!a->run || a->run != b->run || order == 0)
        return NULL;
    return order > 0 ? a : b;
}

static void print_diff_json(const struct checkpoint *a, const struct checkpoint *b, struct table *differing)
{
    char run[2][20];
    const struct checkpoint *later = later_of(a, b);
    print_json(json_pack("{s:[i, i], s:[s?, s?], s:o, s:b, s:i, s:o}", "steps", (int)a->step, (int)b->step, "runs",
                         run_of(run[0], a), run_of(run[1], b), "later", later ? text_json(later->path) : json_null(),
                         "same", differing->n == 0, "tensors", (int)a->pieces->n, "different", table_json(differing)));
}

static void print_diff(const struct checkpoint *a, const struct checkpoint *b, struct table *differing)
{
    const struct checkpoint *later = later_of(a, b);
    print_line(stdout, "steps %u and %u: %zu of %zu tensors differ", a->step, b->step, differing->n, a->pieces->n);
    if (!a->run || !b->run)
        print_line(stdout, "whether they are of one run is not known");
    else if (a->run != b->run)
        print_line(stdout, "they are of two runs");
    else if (later)
        print_line(stdout, "they are of one run, and the later is %s", later->path);
    else
        print_line(stdout, "they are of one run, and of the same moment");
    if (differing->n)
        print_table(stdout, differing);
}

/* The tensors that differ, a row each. */
static struct table *compare_tensors(const struct checkpoint *a, const struct checkpoint *b)
{
    static const struct column columns[] = {{"tensor", "name", CELL_TEXT, 27, 0},
                                            {"role", "role", CELL_TEXT, 6, 0},
                                            {"elements", "elements", CELL_COUNT, 10, 0},
                                            {"largest", "max", CELL_SHORT, 12, 0},
                                            {"relative", "relative", CELL_SHORT, 12, 0}};
    struct table *out = new_table(columns, COUNT(columns));
    if (!same_sizes(&a->pieces->config, &b->pieces->config))
        fail(EXIT_FAILED, "%s and %s are models of unlike sizes: `yard ckpt ls` shows them", a->path, b->path);
    for (size_t i = 0; i < a->pieces->n; i++) {
        const struct kept_tensor *tensor = &a->pieces->tensor[i];
        struct difference difference = compare_tensor(a, b, i);
        if (difference.elements)
            ROW(out, text_cell(tensor->name), text_cell(kept_name[tensor->role]),
                number_cell((double)difference.elements), number_cell(difference.most),
                number_cell(difference.distance / difference.norm));
    }
    return out;
}

static int run_diff(char **words)
{
    struct checkpoint *a = open_checkpoint(words[0]), *b = open_checkpoint(words[1]);
    struct table *out = compare_tensors(a, b);
    if (given.json)
        print_diff_json(a, b, out);
    else
        print_diff(a, b, out);
    if (out->n)
        fail(EXIT_FAILED, "%s and %s differ in %zu tensors", a->path, b->path, out->n);
    free_table(out);
    free_checkpoint(a);
    free_checkpoint(b);
    return EXIT_OK;
}

/* ---- reshard --------------------------------------------------------------------------------------------------- */

/* The stages of the mesh are cut as the pipeline's order wants them, where that fits.  order: NULL, or as recorded. */
static void follow_order(struct mesh *mesh, const struct turn_order *order, int layers)
{
    bool fits = order && order->chunks * mesh->pp <= layers;
    if (fits && order->written)
        fits = order->written->devices == mesh->pp;
    if (fits && mesh->pp > 1) {
        mesh->chunks = order->chunks;
        mesh->folded = order->folded;
    }
}

/* The mesh that --mesh and --zero name; what they leave open is as it was in training.  Recorded stages are kept where
 * they fit. */
static struct mesh new_mesh(const struct checkpoint *from, int zero)
{
    struct mesh mesh;
    const struct config *config = &from->pieces->config;
    const char *stages = recorded_option(from, "stages");
    must(parse_mesh(given.mesh, 1, &mesh));
    mesh.zero = option_given(&table, "zero") ? given.zero : zero;
    follow_order(&mesh, find_order(recorded_option(from, "pipeline")), config->layers);
    if (!*stages || cut_layers(&mesh, config->layers, stages))
        must(cut_layers(&mesh, config->layers, NULL));
    must(check_tp_ranks(config, &mesh));
    return mesh;
}

/* Describes the same state, to be written to `path` with other pieces.  With --mesh the new mesh is also the new
 * strategy; without it the pieces are merged, and the strategy stays. */
static struct checkpoint *recut(const struct checkpoint *from, const char *path)
{
    struct mesh strategy = strategy_of(from), mesh = new_mesh(from, strategy.zero);
    struct checkpoint *to = like_checkpoint(from, path);
    char text[64];
    to->pieces = cut_state(&from->pieces->config, &mesh);
    json_object_set_new(to->options, "mesh", json_string(format_mesh(text, given.mesh ? &mesh : &strategy)));
    json_object_set_new(to->options, "zero", json_sprintf("%d", mesh.zero));
    return to;
}

static void list_copy(struct table *out, const struct copies *plan, const struct copy *copy)
{
    size_t from_byte = bytes_before(plan->from, copy->from_piece) + ELEMENT_BYTES * copy->from_offset;
    size_t to_byte = bytes_before(plan->to, copy->to_piece) + ELEMENT_BYTES * copy->to_offset;
    ROW(out, text_cell(plan->from->name), text_cell(kept_name[plan->from->role]),
        number_cell(plan->from->piece[copy->from_piece].rank), number_cell((double)from_byte),
        number_cell(plan->to->piece[copy->to_piece].rank), number_cell((double)to_byte),
        number_cell((double)(ELEMENT_BYTES * copy->n)));
}

/* Prints the copies of all tensors, after a proof of each tensor's plan. */
static void show_plan(const struct checkpoint *from, const struct checkpoint *to)
{
    static const struct column columns[] = {
        {"tensor", "tensor", CELL_TEXT, 27, 0},  {"role", "role", CELL_TEXT, 6, 0},
        {"from", "from_rank", CELL_COUNT, 6, 0}, {"at byte", "from_offset", CELL_COUNT, 12, 0},
        {"to", "to_rank", CELL_COUNT, 6, 0},     {"at byte", "to_offset", CELL_COUNT, 12, 0},
        {"bytes", "bytes", CELL_COUNT, 12, 0}};
    struct table *out = new_table(columns, COUNT(columns));
    for (size_t i = 0; i < from->pieces->n; i++) {
        struct copies plan = plan_copies(&from->pieces->tensor[i], &to->pieces->tensor[i], from->path);
        must(prove_copies(&plan));
        for (size_t k = 0; k < plan.n; k++)
            list_copy(out, &plan, &plan.copy[k]);
        free(plan.copy);
    }
    if (given.json) {
        print_json(json_pack("{s:o}", "copies", table_json(out)));
    } else {
        print_table(stdout, out);
        printf("\n%zu copies write every element once: proved\n", out->n);
    }
}

/* Fails when the path lies in a checkpoint, or in the folder of a run that still goes on. */
static void expect_place(const char *claimant, const char *path)
{
    char *copy = copy_string(path);
    expect_unlocked(claimant, dirname(copy));
    free(copy);
    expect_outside(claimant, path);
}

/* Fails when something would be replaced: the name must be free, or that of an empty folder that no run is using. */
static void expect_free(const char *claimant, const char *path)
{
    int lock = lock_folder(claimant, path);
    if (rmdir(path) != 0 && (errno == ENOTEMPTY || errno == EEXIST))
        fail(EXIT_USAGE, "%s is a folder with files in it: choose another name", path);
    if (lock)
        close(lock);
    expect_place(claimant, path);
}

/* Prints what was written: `moved` bytes were read, and as many written, in so many seconds. */
static void report_reshard(const struct checkpoint *to, uint64_t moved, double seconds)
{
    char bytes[32], held[64], mesh[64];
    const struct mesh strategy = strategy_of(to);
    if (given.json)
        print_json(json_pack("{s:o, s:o, s:o, s:I, s:I, s:f}", "checkpoint", text_json(to->path), "mesh",
                             mesh_json(&to->pieces->mesh), "strategy", mesh_json(&strategy), "read", (json_int_t)moved,
                             "written", (json_int_t)moved, "seconds", seconds));
    else
        print_line(stdout, "%s: %s, zero %d, of strategy %s; %s read, %s written, in %.3f s", to->path,
                   format_mesh(held, &to->pieces->mesh), strategy.zero, format_mesh(mesh, &strategy),
                   format_bytes(bytes, (double)moved), bytes, seconds);
}

static int run_reshard(char **words)
{
    struct checkpoint *from = open_checkpoint(words[0]), *to = recut(from, words[1]);
    if (given.plan) {
        show_plan(from, to);
    } else {
        claim_output("yard ckpt reshard", words[1], NULL);
        expect_free("yard ckpt reshard", words[1]);
        uint64_t begin = now_ns();
        uint64_t moved = reshard(from, to);
        report_reshard(to, moved, (double)(now_ns() - begin) * 1e-9);
    }
    free_checkpoint(to);
    free_checkpoint(from);
    return EXIT_OK;
}

/* ---- export ---------------------------------------------------------------------------------------------------- */

/* One file, which may replace another one of llm.c's, but no other kind of file. */
static void export_file(const struct checkpoint *checkpoint, const char *path)
{
    struct stat status;
    expect_place("yard ckpt export", path);
    expect_unlocked("yard ckpt export", path);
    if (stat(path, &status) == 0 && status.st_size && !has_magic(path, LLMC_MODEL_MAGIC))
        fail(EXIT_USAGE, "%s is a file of another kind: choose another name", path);
    export_llmc(checkpoint, path);
}

/* Says why the folder has no tokenizer. */
static void note_lacking(const struct tokenizer *tokenizer)
{
    if (tokenizer->kind != &token_ids && tokenizer->takes_numbers)
        note("it has no tokenizer.json: the tokenizer of this model only decodes, which Hugging Face's cannot");
    else if (tokenizer->kind != &token_ids)
        note("it has no tokenizer.json: %s cannot be written as one%s%s", tokenizer->kind->noun,
             *left_out ? ", since this yard was built without" : "", left_out);
    else
        note("it has no tokenizer: what the token numbers of this model stand for is not known here");
}

static void export_folder(const struct checkpoint *checkpoint, const char *path)
{
    struct tokenizer tokenizer = tokenizer_from_text(checkpoint->tokenizer, checkpoint->path);
    json_t *json = tokenizer_to_json(&tokenizer);
    expect_free("yard ckpt export", path);
    export_huggingface(checkpoint, path, json, end_of_text(&tokenizer));
    if (!json)
        note_lacking(&tokenizer);
}

static int run_export(char **words)
{
    bool llmc = ends_with(words[1], ".bin");
    struct checkpoint *checkpoint = open_checkpoint(words[0]);
    claim_output("yard ckpt export", words[1], NULL);
    if (llmc)
        export_file(checkpoint, words[1]);
    else
        export_folder(checkpoint, words[1]);
    if (given.json)
        print_json(json_pack("{s:o, s:s, s:i}", "file", text_json(words[1]), "format", llmc ? "llmc" : "hf", "step",
                             (int)checkpoint->step));
    else
        print_line(stdout, "%s: step %u in %s form", words[1], checkpoint->step, llmc ? "llm.c's" : "Hugging Face's");
    free_checkpoint(checkpoint);
    return EXIT_OK;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static const struct word words[] = {
    {"ls", "CKPT", "show what is in a checkpoint, and which rank has which part", 1, LS, run_ls,
     "out\n"
     "out/step-100 --json\n",
     "Shows the run's id, which resumed runs keep, and the session, which counts trainings. Shows the version of yard "
     "that wrote the checkpoint. Shows the mesh by which the pieces are cut, and the strategy, which is the mesh under "
     "which training goes on (merging does not change it). For each tensor (a parameter, or Adam's m or v; weights are "
     "(out, in)) it shows the shape, the axis along which tensor parallelism cuts it, and the pieces. A piece is a box "
     "[rows, columns], or a range of elements."},
    {"verify", "CKPT", "check that every byte is as it was written", 1, VERIFY, run_verify,
     "out\n"
     "run.snap\n",
     "Reads every byte. Checks the manifest and the headers strictly, checks that the pieces cover each element once, "
     "and checks the hash of each piece. Of a folder, all checkpoints are checked. Exit code 1 if something is "
     "damaged."},
    {"diff", "A B", "show which tensors differ, and by how much", 2, CKPT_DIFF, run_diff,
     "out/step-100 out/step-200\n"
     "here there --json\n",
     "Compares element by element, whatever the meshes are. The column relative is ||a - b|| / ||b||. Also says "
     "whether both are of one run, and which of them is later. Exit code 1 if some tensors differ."},
    {"reshard", "CKPT OUT", "cut the same state for another mesh", 2, RESHARD, run_reshard,
     "out whole\n"
     "out halves --mesh dp=2 --plan --json\n",
     "OUT becomes a checkpoint. It must be a new name, or an empty folder that no run has in use. Each tensor gets a "
     "plan of copies, which is proved to write each element once. Every byte is read once, hashed, and written once, "
     "one tensor at a time. Training goes on under the mesh that --mesh names. Without --mesh the pieces are merged, "
     "and the strategy stays what it was."},
    {"export", "CKPT OUT", "write the model for other programs", 2, CKPT_EXPORT, run_export,
     "out hugging-face\n"
     "out model.bin\n",
     "Writes whole parameters, without Adam's state, from any mesh. OUT becomes a folder in Hugging Face's form, with "
     "the tokenizer. If OUT ends in .bin, it becomes a file in llm.c's form."},
};

static const struct words ckpt_words = {
    .command = "ckpt",
    .examples = "ls out\n"
                "reshard out out-2 --mesh dp=2\n",
    .about = "Works on checkpoints, which yard train --save DIR writes. CKPT is one of them, DIR/step-N. It may also "
             "be DIR, for the newest complete one, or a file that --snapshot wrote, for its newest whole iteration. No "
             "device is needed.",
    .list = "ls, verify, diff, reshard or export",
    .inputs = 1,
    .word = words,
    .n = COUNT(words),
    .table = &table};

static int run_ckpt(int argc, char **argv) { return run_words(&ckpt_words, argc, argv); }

const struct subcommand ckpt_command = {
    .help_place = 110,
    .name = "ckpt",
    .help = "look into checkpoints, check, compare, reshard and export them",
    .run = run_ckpt,
    .foreign = " export convert save reshard ",
};
