/* ckpt_verify.c - yard ckpt verify: is every byte as it was written? */
#include "ckpt.h"
#include "planning/console/table.h"

struct checkpoint_opening { /* the argument of try_open(), for attempt() */
    const char *path;
    struct checkpoint *checkpoint;
};

static void try_open(void *argument)
{
    struct checkpoint_opening *opening = argument;
    const struct checkpoint_form *form = find_checkpoint_form(opening->path);
    if (form) /* open_checkpoint() would warn of damage, which is counted here */
        opening->checkpoint = form->open(opening->path);
    else
        opening->checkpoint = open_checkpoint(opening->path);
}

static void add_damage(json_t *damaged, const char *reason, const char *tensor, const char *role)
{
    json_t *entry = json_object();
    set_json_text(entry, "tensor", tensor);
    set_json_text(entry, "role", role);
    set_json_text(entry, "reason", reason); /* a path in it need not be UTF-8 */
    json_array_append_new(damaged, entry);
    if (!asked_ckpt.json)
        print_line(stdout, "%s", reason);
}

/* Reads every tensor's pieces; what is wrong goes into `damaged`.  Returns the bytes that are sound. */
static uint64_t verify_all_tensors(struct checkpoint *checkpoint, json_t *damaged)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < checkpoint->cut->n; i++) {
        const struct kept_tensor *tensor = &checkpoint->cut->tensors[i];
        struct problem *problem = NULL;
        if (!checkpoint->single_file) /* opening another form has verified all of it */
            problem = verify_tensor(checkpoint, i);
        if (problem)
            add_damage(damaged, problem->sentence, tensor->name, kept_name[tensor->role]);
        else
            bytes += ELEMENT_BYTES * tensor_elements(tensor);
        free(problem);
    }
    return bytes;
}

/* Verifies one checkpoint, the only one or one of a folder.  *step: becomes the highest step of those verified. */
static uint64_t verify_one(const char *path, bool only, json_t *damaged, int64_t *step)
{
    struct checkpoint_opening opening = {.path = path};
    size_t before = json_array_size(damaged);
    char text[NUMBER_TEXT];
    struct problem *problem = attempt(try_open, &opening);
    if (problem && only && problem->code != EXIT_FAILED)
        must(problem);
    if (problem) {
        add_damage(damaged, problem->sentence, NULL, NULL);
        free(problem);
        return 0;
    }
    struct checkpoint *checkpoint = opening.checkpoint;
    if (checkpoint->single_file)
        for (size_t i = 0; i < checkpoint->single_file->n_damage; i++)
            add_damage(damaged, checkpoint->single_file->damage[i], NULL, NULL);
    uint64_t bytes = verify_all_tensors(checkpoint, damaged);
    if (!asked_ckpt.json && json_array_size(damaged) == before)
        print_line(stdout, "%s: sound: %zu tensors, each element once; %s read, hashes compared", path,
                   checkpoint->cut->n, format_bytes(text, (double)bytes));
    *step = MAX(*step, checkpoint->step);
    free_checkpoint(checkpoint);
    return bytes;
}

/* Prints how many problems were found, unless there are none, and returns the exit code for them.  name: that of the
 * only checkpoint, or of the folder with all of them. */
static enum exit_code report_verdict(const char *name, size_t wrong)
{
    if (!wrong)
        return EXIT_OK;
    print_problem("yard: ", new_problem(EXIT_FAILED, "%s is not whole: %zu problem%s", name, wrong, PLURAL(wrong)));
    return EXIT_FAILED;
}

/* name, step: those of the only checkpoint; or the folder's name, and the highest step in it. */
static void print_verify_json(const char *name, int64_t step, uint64_t bytes, json_t *damaged)
{
    json_t *all = json_object();
    set_json_text(all, "checkpoint", name);
    set_json_integer(all, "step", (json_int_t)step);
    set_json_integer(all, "bytes", (json_int_t)bytes);
    set_json_truth(all, "sound", json_array_size(damaged) == 0);
    json_object_set_new(all, "damaged", json_incref(damaged));
    print_json(all);
}

enum exit_code verify_checkpoints(char **paths)
{
    size_t n;
    int64_t step = -1;
    uint64_t bytes = 0;
    json_t *damaged = json_array();
    char **each = all_checkpoints(paths[0], &n);
    const char *name = n == 1 ? each[0] : paths[0];
    for (size_t i = 0; i < n; i++)
        bytes += verify_one(each[i], n == 1, damaged, &step);
    size_t wrong = json_array_size(damaged);
    if (asked_ckpt.json)
        print_verify_json(name, step, bytes, damaged);
    json_decref(damaged);
    enum exit_code code = report_verdict(name, wrong);
    for (size_t i = 0; i < n; i++)
        free(each[i]);
    free(each);
    return code;
}
