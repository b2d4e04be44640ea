/* support_training.c - trainers that train: settings, states, steps. */
#include "support_training.h"

#include "support_lists.h"

#include <math.h>

struct settings *parse_words(const char *words)
{
    static char text[512];
    char *argv[64];
    int argc = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    struct settings *settings = parse_settings(&train_usage, argc, argv);
    settings->warmup = 2;
    asked_proof.verify = true;
    return settings;
}

/* Room for n more at the end. */
static float *append(struct state *state, size_t n)
{
    state->values = reallocate(state->values, state->n + n, sizeof *state->values);
    state->n += n;
    return state->values + state->n - n;
}

/* All of the model's, of those roles. */
static void append_state(struct state *state, struct model *model, enum kept first, enum kept end)
{
    for (enum kept role = first; role < end; role++)
        for (int i = 0; i < model->params->n; i++)
            read_param(model, i, role, append(state, param_elements(&model->params->items[i])));
}

static void clear(struct tensor *tensor)
{
    void *zeros = tensor ? allocate(tensor->bytes, 1) : NULL;
    if (tensor)
        write_tensor(tensor, zeros);
    free(zeros);
}

void begin_anew(struct trainer *trainer)
{
    init_random(trainer->model, 1337);
    for (const struct replica *replica = trainer->model->replicas;
         replica < trainer->model->replicas + n_ranks(trainer->model->mesh); replica++) {
        clear(replica->verdict);
        for (int unit = 0; unit < trainer->model->params->n_units; unit++) {
            clear(replica->m[unit]);
            clear(replica->v[unit]);
        }
    }
}

struct state read_state(struct trainer *trainer, int rank)
{
    struct state state = {0};
    struct model *model = trainer->model;
    struct replica *replica = &model->replicas[rank];
    for (int i = 0; i < model->params->n; i++)
        if (replica->by_param[i].value)
            read_tensor(replica->by_param[i].value, append(&state, count_elements(replica->by_param[i].value)));
    state.n_parameters = state.n;
    append_state(&state, model, KEPT_M, KEPT_GRADIENT);
    return state;
}

struct state read_whole_state(struct trainer *trainer)
{
    struct state state = {0};
    append_state(&state, trainer->model, KEPT_VALUE, KEPT_M);
    state.n_parameters = state.n;
    append_state(&state, trainer->model, KEPT_M, KEPT_GRADIENT);
    return state;
}

struct trainer *open_training(struct settings *settings, unsigned lists)
{
    struct trainer *trainer = new_trainer(settings, lists | OPEN_DATA);
    init_random(trainer->model, 1337);
    expect_sound("the train list", trainer->train_list, values_of(trainer, trainer->train_list));
    return trainer;
}

struct trainer *open_tiny_training(const char *more)
{
    struct settings *settings = parse_words(lasting(TINY_SIZES "--gemm own %s", more));
    struct trainer *trainer = new_trainer(settings, LIST_TRAIN | LIST_EVAL | OPEN_DATA);
    init_random(trainer->model, 1337);
    return trainer;
}

void run_steps(struct trainer *trainer, uint32_t from, uint32_t to)
{
    for (uint32_t number = from; number <= to; number++)
        issue_step(trainer, number);
    step_result(trainer, to);
    drain(trainer->train_list);
}

void check_training(struct trainer *trainer, uint32_t last_step)
{
    assert_true(isfinite(step_result(trainer, last_step)->loss));
    expect_equal_replicas(trainer, "replica");
    for (int i = 0; i <= trainer->machine->n_devices; i++)
        assert_int_equal(damaged_guards(&trainer->machine->devices[i]), 0);
}

struct state train(struct settings *settings, uint32_t steps)
{
    struct trainer *trainer = open_training(settings, LIST_TRAIN);
    run_steps(trainer, 1, steps);
    check_training(trainer, steps);
    struct state all = read_whole_state(trainer);
    free_trainer(trainer);
    return all;
}

void expect_equal_replicas(const struct trainer *trainer, const char *words)
{
    const struct model *model = trainer->model;
    for (int i = 0; i < model->params->n; i++) {
        float **seen = allocate((size_t)trainer->mesh.tp, sizeof *seen);
        for (int rank = 0; rank < n_ranks(&trainer->mesh); rank++) {
            struct weight weight = model->replicas[rank].by_param[i];
            if (!weight.value || !weight.value->storage->persistent)
                continue;
            float *values = allocate(count_elements(weight.value), sizeof *values);
            float **first = &seen[weight.cut.split == SPLIT_NONE ? 0 : tp_of(&trainer->mesh, rank)];
            read_tensor(weight.value, values);
            for (size_t k = param_elements(&params_of(model, rank)->items[i]); k < count_elements(weight.value); k++)
                if (values[k] != 0)
                    test_failed("%s: %s of rank %d: element %zu, padding, is %g\n", words, weight.value->name, rank, k,
                                (double)values[k]);
            if (*first)
                expect_same_bits(words, values, *first, count_elements(weight.value));
            free(*first);
            *first = values;
        }
        for (int k = 0; k < trainer->mesh.tp; k++)
            free(seen[k]);
        free(seen);
    }
}
