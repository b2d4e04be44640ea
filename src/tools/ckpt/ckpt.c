/* ckpt.c - yard ckpt: its words and options, and what several of its words need.  It needs no device. */
#include "ckpt.h"
#include "planning/console/arguments.h"
#include "trainer/file/file.h"

#include <dirent.h>
#include <libgen.h>
#include <unistd.h>

/* ---- what several words need ------------------------------------------------------------------------------------- */

const char *format_run(char out[RUN_WORD], const struct checkpoint *checkpoint)
{
    snprintf(out, RUN_WORD, "%016llx", (unsigned long long)checkpoint->run_id);
    return checkpoint->run_id != NOT_KNOWN ? out : NULL;
}

void expect_place(const char *claimant, const char *path)
{
    char *copy = copy_string(path);
    expect_unlocked(claimant, dirname(copy));
    free(copy);
    expect_outside(claimant, path);
}

/* Is it a folder that has files?  A folder that cannot be read is none: writing into it says more. */
static bool has_files(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool found = false;
    if (!folder)
        return false;
    while (!found && (entry = readdir(folder)))
        found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return found;
}

void expect_free(const char *claimant, const char *path)
{
    int lock = lock_folder(claimant, path);
    if (has_files(path))
        fail(EXIT_USAGE, "%s is a folder with files in it: choose another name", path);
    if (lock != NONE)
        close(lock);
    expect_place(claimant, path);
}

/* ---- the options ------------------------------------------------------------------------------------------------- */

struct ckpt_given asked_ckpt;

enum { CKPT_LS = 1, CKPT_VERIFY = 2, CKPT_DIFF = 4, CKPT_RESHARD = 8, CKPT_EXPORT = 16 };
static const struct option options[] = {
    {.name = "mesh",
     .type = OPT_TEXT,
     .value = &asked_ckpt.mesh,
     .argument = "dp=A,pp=B,tp=C",
     .group = "What",
     .classes = CKPT_RESHARD,
     .help = "mesh by which the state is cut, and under which training goes on. An omitted axis is 1 "
             "(default: the pieces are merged, and the strategy stays)"},
    {.name = "zero",
     .type = OPT_INT,
     .value = &asked_ckpt.zero,
     .argument = "0..3",
     .low = 0,
     .high = 3,
     .group = "What",
     .classes = CKPT_RESHARD,
     .help = "what is divided among data-parallel ranks. 1 and 2: Adam's state. 3: parameters too (default: as it "
             "was)"},
    {.name = "plan",
     .type = OPT_FLAG,
     .value = &asked_ckpt.plan,
     .group = "What",
     .classes = CKPT_RESHARD,
     .help = "print the copies instead of making them"},
    {.name = "json",
     .type = OPT_FLAG,
     .value = &asked_ckpt.json,
     .group = "Output",
     .classes = ~0u,
     .help = "print one JSON object on stdout instead of tables"},
};
struct option_table ckpt_options = {.options = options, .n = COUNT(options)};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static const struct path_subcommand subcommands[] = {
    {.name = "ls",
     .takes = "CKPT",
     .summary = "show what is in a checkpoint, and which rank has which part",
     .n_paths = 1,
     .bit = CKPT_LS,
     .run = list_checkpoint,
     .examples = "out\n"
                 "out/step-100 --json\n",
     .help = "The run's id is kept by runs that resume it, and the session counts its trainings. The mesh is the one "
             "by which the pieces are cut, and the strategy is the one under which training goes on (merging does not "
             "change it). Each tensor (a parameter, or Adam's m or v; weights are (out, in)) has its shape, the axis "
             "along which tensor parallelism cuts it, and its pieces. A piece is a box [rows, columns], or a range of "
             "elements."},
    {.name = "verify",
     .takes = "CKPT",
     .summary = "check that every byte is as it was written",
     .n_paths = 1,
     .bit = CKPT_VERIFY,
     .run = verify_checkpoints,
     .examples = "out\n"
                 "run.snap\n",
     .help = "Reads every byte. Checks the manifest and the headers strictly, checks that the pieces cover each "
             "element once, and checks the hash of each piece. In a folder, all checkpoints are checked. The exit "
             "code is 1 if something is damaged."},
    {.name = "diff",
     .takes = "A B",
     .summary = "show which tensors differ, and by how much",
     .n_paths = 2,
     .bit = CKPT_DIFF,
     .run = diff_checkpoints,
     .examples = "out/step-100 out/step-200\n"
                 "here there --json\n",
     .help =
         "Compares element by element, whatever the meshes are. The column `largest` has the largest difference of two "
         "elements, and `relative` is ||a - b|| / ||b||. Also says whether both are of one run, and which of them is "
         "later. The exit code is 1 if some tensors differ."},
    {.name = "reshard",
     .takes = "CKPT OUT",
     .summary = "cut the same state for another mesh",
     .n_paths = 2,
     .bit = CKPT_RESHARD,
     .run = reshard_checkpoint,
     .examples = "out whole\n"
                 "out halves --mesh dp=2 --plan --json\n",
     .help = "OUT becomes a checkpoint. It must be a new name, or an empty folder that no run has in use. Each tensor "
             "gets a plan of copies, which is proved to write each element once. Every byte is read once, hashed, and "
             "written once, one tensor at a time. Training goes on under the mesh that --mesh names. Without --mesh "
             "the pieces are merged, and the strategy stays what it was."},
    {.name = "export",
     .takes = "CKPT OUT",
     .summary = "write the model for other programs",
     .n_paths = 2,
     .bit = CKPT_EXPORT,
     .run = export_checkpoint,
     .examples = "out hugging-face\n"
                 "out model.bin\n",
     .help = "Writes whole parameters, without Adam's state, from any mesh. OUT becomes a folder in Hugging Face's "
             "form, with the tokenizer. If OUT ends in .bin, it becomes a file in llm.c's form."},
};

static const struct subcommand_group ckpt_group = {
    .command = "ckpt",
    .examples = "ls out\n"
                "reshard out out-2 --mesh dp=2\n",
    .about = "Works on checkpoints, which `yard train --save DIR` writes. CKPT is one of them, DIR/step-N. It may "
             "also be DIR, for the newest complete one, or a file that --snapshot wrote, for its newest whole step. "
             "No device is needed.",
    .inputs = 1,
    .subcommands = subcommands,
    .n = COUNT(subcommands),
    .table = &ckpt_options};

static enum exit_code run_ckpt(int argc, char **argv) { return run_subcommand(&ckpt_group, argc, argv); }

static const struct subcommand command = {
    .help_place = 110,
    .name = "ckpt",
    .help = "look into checkpoints, check, compare, reshard and export them",
    .run = run_ckpt,
    .foreign = "export convert save reshard",
};
const struct module module_ckpt = {
    .name = "ckpt",
    .needs = "console checkpoint",
    .commands = &command,
    .n_commands = 1,
};
