/* train.h - from settings to a running trainer.
 *
 *     settings   options, presets, config file: what the user asked for          settings.c
 *     source     what a model begins with                                        source.c
 *     data       files to windows of tokens, learning rate                       data.h: data.c, tokens.c, rate.c
 *     trainer    machine + model + the lists of tasks (train, eval, sample)      trainer.c, lists.c, feed.c, control.c
 *     loop       steps, evaluation, progress, log, saving                        loop.c, progress.c
 *     sampler    text from the model                                             sampler.c
 */
#ifndef TRAIN_H
#define TRAIN_H

#include "data.h"
#include "trainer/model/model.h"
#include "trainer/run/run.h"

#include <jansson.h>

/* ---- settings.c ------------------------------------------------------------------------------------------------ */

struct settings;
struct page {
    const char *name, *takes, *text; /* `yard NAME --help` */
    unsigned classes;
    const char *also;                     /* single options, between spaces; those of folders that are left out too */
    void (*defaults)(struct settings *s); /* other initial values; NULL: none */
    bool takes_word;                      /* one that is no option: settings->word */
};
extern const struct page train_page;

/* What a training begins with: a file of weights, or what a run has left. */
struct source {
    char *path; /* NULL: nothing */
    struct config config;
    struct checkpoint *checkpoint; /* of the folder that keeps runs, which alone knows it; NULL: it is a file */
    const char *tokenizer;         /* of a run, as text */
};
struct settings {
    /* model */
    const char *init, *config;
    int preset;                                  /* -1: a model brings its own sizes */
    int layers, heads, channels, seq_len, vocab; /* vocab: of random tokens, where there is no data */
    bool untied;
    /* data */
    struct data_options data; /* its sizes and tokenizer: open_data() */
    int val_every, val_batches;
    /* training */
    int batch, micro_batch, steps, stop_after, warmup;
    int64_t seed;
    double lr, lr_min, beta1, beta2, eps, weight_decay, clip;
    enum rate_schedule schedule;
    /* devices */
    const char *devices, *mesh, *stages;
    enum pipeline pipeline;
    struct kernels kernels;
    int zero, grad_groups, vector; /* vector 0: the device's own */
    size_t device_memory, host_memory;
    /* running and looking */
    bool serial, json;
    const char *log, *save;
    int save_every, sample_tokens;
    /* yard sample */
    const char *from, *prompt;
    int count, top_k;
    double temperature;

    /* These are no options, but what follows from them. */
    const char *word; /* the first that was given without an option, where the page takes one; NULL */
    int n_words;
    struct source source;    /* what a run that goes on, --init or --from name; path NULL: nothing */
    const struct past *past; /* the run that this one goes on from; NULL: none */
    bool trains;             /* the command is yard train */

    /* These are set by folders of techniques and tools, and by commands. */
    const char *one_device; /* who wants a single device: "yard check"; NULL: nobody */
    bool time_tasks;        /* queues carry times */
    bool paced;             /* tasks end when it was predicted, not when their work does */
    bool kept;              /* something beside --save keeps the run */
    bool sweeps;            /* options are tried one after another: no warning that one has no effect */
    bool trial;             /* a trainer to measure with: nothing of it is stored, shown or proved, and no time known */
    bool plain;             /* the lists stay as they are built */
    int64_t draw_seed;      /* what may be left to chance is drawn by it, to show that no bit depends on it; -1: not */
};
/* What this process knows of itself.  With --restart it is shared memory: the process that starts trainings sets the
 * first three, and a training tells it the last two. */
extern struct one_life {
    uint64_t begun;   /* now_ns() then; what a resumed run says of its start counts from here */
    const char *from; /* what is gone on from, whatever the words say; NULL: as they say */
    int restarts;     /* before it; 0 without --restart */
    uint32_t step;    /* the last one that it has shown; 0: none */
    bool not_finite;  /* it ends with what would come again */
} * this_life;
/* Parse the words of `yard COMMAND ...` by the one table of options; --help prints the command's page and exits. */
struct settings *parse_settings(const struct page *page, int argc, char **argv);
/* The first option that the user has given and that does not fit; NULL: all do. */
typedef bool option_fits(const struct option *o);
const char *first_given(option_fits *fits);
bool has_option(const char *option); /* is there such a one, or was its folder left out? */
/* Every resolved option of `yard train`; or those that a resumed run takes over, as texts. */
json_t *options_json(bool recorded);
bool was_given(const char *option);
int given_heads(void); /* by --heads, for a model that does not say them; 0: by nobody */
/* Of sample and check: fails if --heads says another number than the model. */
void expect_heads(const struct config *c, const char *path);
/* The words behind yard train that evaluate a model. */
#define EVALUATES "--init MODEL --data TEXT --val-data TEXT --lr 0 --steps 1 --sample-tokens 0"
const char *word_of(const char *option, int number); /* what an enumerator is called there */

/* ---- source.c -------------------------------------------------------------------------------------------------- */

/* What --init and --from take: a file that init_from_file() takes, a folder with one in it, or what a run has left.
 * heads: see read_config(). */
struct source open_source(const char *path, int heads);
void close_source(struct source *s);
void init_from_source(struct model *m, const struct source *s); /* the values only */
char *saved_model(const struct settings *s); /* the file for other programs in --save DIR; the caller frees it */
/* Refuses to save over a model of other sizes. */
void check_saved(const struct settings *s, const struct config *ours);
_Noreturn void refuse_other_sizes(const char *path, const struct config *its);

/* ---- trainer.c ------------------------------------------------------------------------------------------------- */

struct result { /* of one training step, as the report task leaves it */
    double loss, norm, lr;
    bool halted;
    uint64_t ended_ns; /* its last end on a compute lane (step_result) */
};
enum { RESULTS = KEPT_ENDS }; /* that are kept */
struct losses {
    double sum;
    uint64_t n;
};
struct feed { /* what a batch.prepare task needs to know */
    struct trainer *trainer;
    int rank, micro, n;         /* data-parallel rank; n tokens */
    struct batch host;          /* that it fills */
    struct batch *first, *last; /* on the ranks of the first stage, for the tokens, and of the last, for the targets */
};
struct trainer {
    const struct settings *settings;
    void **own; /* of the folders, in the order of modules[]: see own_of() */
    struct machine *machine;
    struct pool *pool;
    struct model *model;
    struct config config;
    struct dataset *data;                        /* NULL: random tokens */
    const int32_t *fixed_tokens, *fixed_targets; /* yard check: of each step, (batch, seq); NULL: from data */
    struct rate rate;
    int lock;      /* of --save's folder */
    int log;       /* the file of --log, open and locked; -1: none, or a device or pipe, which is not open yet */
    int64_t ahead; /* so many batches the data are ahead of the step: the run before had another --batch */
    struct progress *progress; /* its lines on the terminal and in the log; NULL: it has not begun */
    struct mesh mesh;
    int micro_batch, micros, batch, seq; /* per data-parallel rank: micros micro-batches of micro_batch sequences */
    struct step *train, *eval, *sample;  /* NULL where not wanted */
    const struct task *report;           /* of the train list: the one that makes results */
    bool separate;                       /* each device has a context of its own */

    struct feed *feeds;           /* [micro * dp + data-parallel rank]; then those of an evaluation, and the sample's */
    struct tensor **rank_total;   /* (1) per data-parallel rank */
    struct tensor *sample_logits; /* host (V) */
    int32_t *sample_tokens;       /* (seq) window for the next sampled token */
    int sample_position;
    struct losses eval_sum[2];  /* of an evaluation up to its iteration i, at i & 1 */
    uint32_t evaluated;         /* the last iteration of the evaluation before: the steps of a list ascend */
    struct tensor *keep_logits; /* yard check: logits of rank 0's first micro-batch, kept */

    struct result result[RESULTS]; /* by step % RESULTS */
};
/* The tokenizer that a saved model names, as a data set without tokens (yard sample). */
struct dataset *open_vocabulary(const struct source *model, int vocab);
enum lists { LIST_TRAIN = 1, LIST_EVAL = 2, LIST_SAMPLE = 4, KEEP_LOGITS = 8 /* of the only device */ };
/* The devices that are asked for; each with a context of its own: separate. */
struct machine *machine_of(const struct settings *s, bool separate);
/* What --mesh asks for, of that many devices or, where there are none, of its own number; layers are not cut yet. */
struct mesh wanted_mesh(const struct settings *s, int devices);
struct config config_of(const struct settings *s); /* the model's sizes, of the file that it begins with, if any */
/* Opens devices and data, makes the model and the lists, places them.  plan_only: allocates nothing on devices.
 * data_wanted false: random tokens. */
struct trainer *new_trainer(const struct settings *s, unsigned lists, bool data_wanted, bool plan_only);
/* The same on a model configuration of the caller's (yard check). */
struct trainer *new_trainer_for(const struct settings *s, const struct config *c, struct dataset *data, unsigned lists,
                                bool plan_only);
void free_trainer(struct trainer *t);
/* Runs training step `number`, at most one step ahead of what has been computed. */
void run_step(struct trainer *t, uint32_t number);
/* Waits until it has been computed and reported, and returns what it reported. */
const struct result *step_result(struct trainer *t, uint32_t number);
bool step_reported(struct trainer *t, uint32_t number); /* would that return at once? */
/* Mean loss over the validation split, or its first `batches` batches (0: all).  `goes_on`, unless NULL, is called
 * after every round; where it says false the rest is left out, and there is no loss: NAN. */
double evaluate(struct trainer *t, int64_t batches, bool (*goes_on)(void *), void *context);
double tokens_per_step(const struct trainer *t);
/* One line on sizes: "6 layers, 6 heads, ..."; the caller frees it. */
char *describe_shape(const struct trainer *t);
const char *engine_name(const struct trainer *t); /* of matrix products on device 0: "own" or "clblast" */
/* Ends the program, if some folder can tell it with the task that first made something that is not finite. */
_Noreturn void explain_not_finite(struct trainer *t, uint32_t number, const struct result *r);
extern const char not_finite_advice[];
/* The same where no step shows it: the update of `step` left a parameter (NULL: none) or the validation loss so. */
_Noreturn void explain_bad_model(uint32_t step, const char *parameter);

/* ---- feed.c: host tasks that fill batches; lists.c ------------------------------------------------------------- */

host_function prepare_batch, prepare_evaluation, prepare_sample; /* their context is a struct feed */
/* The first validation window of data-parallel rank r in iteration `number`; micro_batch of them follow. */
size_t first_window(const struct trainer *t, int rank, uint32_t number);
/* Adds batch.prepare (host) and batch.upload (that rank) for n tokens, and makes the feed's batches. */
void add_batch(struct trainer *t, struct step *s, struct feed *f, int rank, int micro, host_function *prepare, int n);
/* What `made`, a task of the host, writes is to be uploaded to d, and was to `before`, which may be d: its last tensor,
 * or, where that is pinned for another context, one more of the same.  The task ends with fill_others(). */
struct tensor *for_upload(struct trainer *t, struct task *made, const struct device *before, const struct device *d);
void fill_others(const struct task *made);
/* control.c: the control block is made and brought up; where the losses are summed; what is reported.
 * loss_rank: where those of data-parallel rank k are. */
void add_control(struct trainer *t);
int loss_rank(const struct trainer *t, int k);
struct tensor *add_losses(struct trainer *t);
void add_report(struct trainer *t);
host_function report_evaluation;
void build_train(struct trainer *t);
void build_eval(struct trainer *t);
void build_sample(struct trainer *t);

/* ---- sampler.c ------------------------------------------------------------------------------------------------- */

/* Continues n given tokens, or a text, by `count` and prints all of it token by token. */
void sample_tokens(struct trainer *t, const uint16_t *given, size_t n, int count);
void sample_text(struct trainer *t, const char *prompt, int count);

/* ---- loop.c, progress.c ---------------------------------------------------------------------------------------- */

/* Trains by the settings, from behind the step that was resumed; returns the exit code (0, or 130 when interrupted). */
int train_loop(struct trainer *t);

struct progress;
void open_log(struct trainer *t); /* it is looked at, and locked; what is in it stays until begin_progress() */
struct progress *begin_progress(struct trainer *t);
/* A line of the log, if there is one; takes over the JSON. */
void write_log(struct trainer *t, json_t *line);
uint64_t run_began(const struct trainer *t); /* now_ns() when it did */
void show_step(struct progress *p, uint32_t number, const struct result *r);
void show_evaluation(struct progress *p, uint32_t number, double loss);
/* Closes the log; of a run of some length that was not interrupted the mean rate is shown. */
enum exit_code end_progress(struct progress *p); /* EXIT_IO: the log was lost */

#endif
