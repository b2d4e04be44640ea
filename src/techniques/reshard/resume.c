/* resume.c - a run as a checkpoint, and a checkpoint as a run: what is recorded, and how it goes on elsewhere.
 *
 * Options on the command line win over recorded ones.  Without --mesh the recorded strategy goes on: on as many devices
 * as it is, on another number with another dp, and on a single device plainly, but recorded again, so that it comes
 * back with the devices.
 */
#include "trainer/train/train.h"

#include <unistd.h>

/* ---- the mesh --------------------------------------------------------------------------------------------------- */

struct mesh resumed_mesh(const struct settings *s, int devices)
{
    struct mesh m = strategy_of(s->source.checkpoint);
    int each = m.pp * m.tp, near = 0; /* the nearest number of devices on which the batch can be shared out */
    if (devices == 1 && each > 1)
        return (struct mesh){.dp = 1, .pp = 1, .tp = 1, .chunks = 1};
    if (devices != n_ranks(&m) && (devices % each || s->batch % (devices / each))) {
        for (int dp = 1; dp <= s->batch && dp * each <= MAX_RANKS; dp++)
            if (s->batch % dp == 0 && (!near || abs(dp * each - devices) < abs(near - devices)))
                near = dp * each;
        fail(EXIT_USAGE,
             "%s was trained with %s and --batch %d, which cannot go on with %d devices: the nearest "
             "that can is --mesh dp=%d,pp=%d,tp=%d with %d; or choose another --mesh",
             s->resume, format_mesh((char[64]){0}, &m), s->batch, devices, near / each, m.pp, m.tp, near);
    }
    m.dp = devices / each;
    return m;
}

/* ---- what is recorded ------------------------------------------------------------------------------------------- */

json_t *record_training(const struct trainer *t)
{
    const struct settings *s = t->settings;
    json_t *options = options_json(true);
    bool plain = s->resume && !s->mesh && n_ranks(&t->mesh) == 1;
    struct mesh strategy = plain ? strategy_of(s->source.checkpoint) : t->mesh;
    json_object_set_new(options, "mesh", json_string(format_mesh((char[64]){0}, &strategy)));
    return options;
}

/* XXH64 of the tokens, which are many: once in a run. */
static uint64_t hash_data(const struct trainer *t)
{
    struct split *train = t->data ? &t->data->train : NULL;
    if (train && !train->hash)
        train->hash = hash_bytes(train->tokens, train->n * sizeof *train->tokens, 0);
    return train ? train->hash : 0;
}

/* What is not as it was: the run goes on, but not as if there had been no break. */
void compare_training(const struct trainer *t)
{
    const struct checkpoint *c = t->settings->source.checkpoint;
    unsigned vector = vector_width(t->machine);
    if (c->data && c->data != hash_data(t))
        warn("the data are not those that %s was trained on: their tokens have another hash", c->path);
    if (c->vector && c->vector != vector)
        warn("%s was trained with vectors of %u floats, now they have %u: the last bits will differ", c->path,
             c->vector, vector);
}

struct checkpoint *describe_training(const struct trainer *t, uint32_t step)
{
    struct checkpoint *c = allocate(1, sizeof *c);
    c->step = step;
    c->run = t->run;
    c->session = t->session;
    c->samples = ((int64_t)step + t->ahead) * t->batch;
    c->data = hash_data(t);
    c->vector = vector_width(t->machine);
    c->tokenizer = tokenizer_to_text(t->data ? &t->data->tokenizer : NULL);
    c->options = json_incref(t->record);
    return c;
}

/* ---- what is there already -------------------------------------------------------------------------------------- */

void check_saved(const struct settings *s, const struct config *ours)
{
    if (!s->save)
        return;
    char *saved[] = {find_checkpoint(s->save), saved_model(s)}; /* the second is a file, or damaged */
    for (size_t i = 0; i < COUNT(saved); i++) {
        if (!saved[i] || access(saved[i], F_OK) != 0)
            continue;
        struct config old;
        if (i == 0) {
            struct source source = open_source(saved[i], 0);
            old = source.config;
            close_source(&source);
        } else {
            old = read_config(saved[i], ours->heads);
        }
        if (!same_sizes(&old, ours))
            fail(EXIT_USAGE, "%s is another model (%s): --save to another folder, or remove it first", saved[i],
                 describe_sizes((char[160]){0}, &old));
    }
    free(saved[0]), free(saved[1]);
}

/* ---- saving ----------------------------------------------------------------------------------------------------- */

void save_training(struct trainer *t, uint32_t step, bool first)
{
    const struct settings *s = t->settings;
    bool begins = first && !s->resume; /* else it is one of the runs before that goes on */
    struct checkpoint *c = describe_training(t, step);
    make_folder(s->save);
    save_checkpoint(t->model, s->save, c);
    if (begins || s->keep)
        prune_checkpoints(s->save, begins ? t->session : 0, s->keep);
    free_checkpoint(c);
}

/* An option and a path, as a shell reads them; path NULL: nothing. */
static void append_path(char **command, const char *option, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:+=@%-";
    if (!path)
        return;
    bool quoted = path[strspn(path, plain)] != '\0';
    append_text(command, " %s %s", option, quoted ? "'" : path);
    for (; quoted && *path; path++)
        append_text(command, "%s", *path == '\'' ? "'\\''" : (char[]){*path, '\0'});
    append_text(command, "%s", quoted ? "'" : "");
}

void tell_resume(const struct settings *s)
{
    char *command = copy_string("yard train");
    append_path(&command, "--resume", s->save ? s->save : s->pass.snapshot.file);
    append_path(&command, "--save", s->save);
    if (s->save && s->save_every)
        append_text(&command, " --save-every %d", s->save_every);
    if (s->save && s->keep)
        append_text(&command, " --keep %d", s->keep);
    append_path(&command, "--snapshot", s->pass.snapshot.file);
    append_text(&command, "%s", s->restart ? " --restart" : "");
    append_path(&command, "--log", s->log);
    note("it goes on with: %s", command);
    free(command);
}
