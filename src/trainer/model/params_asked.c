/* params_asked.c - what is asked of the table of parameters. */
#include "model.h"

struct problem *tp_problem(const struct config *config, const struct mesh *mesh)
{
    int most = MIN(config->heads, config->vocab);
    if (mesh->tp <= most)
        return NULL;
    return new_problem(EXIT_USAGE, "tp=%d cuts the model by heads and words, of which it has %d and %d: use tp=%d",
                       mesh->tp, config->heads, config->vocab, most);
}

void free_params(struct params *params)
{
    free(params->items);
    free(params->units);
    free(params);
}

int layer_of_unit(const struct params *params, int unit)
{
    bool is_layer = unit > 0 && unit < params->n_units - 1;
    return is_layer ? unit - 1 : NONE;
}

size_t param_elements(const struct param *param) { return (size_t)(param->shape[0] * param->shape[1]); }

void shape_in_file(const struct param *param, int64_t shape[2])
{
    shape[0] = param->conv1d ? param->shape[1] : param->shape[0];
    shape[1] = param->conv1d ? param->shape[0] : param->shape[1];
}

float *transpose_conv1d(const struct param *param, float *values, enum layout_change change)
{
    bool for_file = change == OURS_TO_FILE;
    if (!param->conv1d)
        return values;
    int64_t rows = for_file ? param->shape[0] : param->shape[1]; /* rows of `values` */
    int64_t columns = for_file ? param->shape[1] : param->shape[0];
    float *turned = allocate(param_elements(param), sizeof *turned);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            turned[c * rows + r] = values[r * columns + c];
    free(values);
    return turned;
}

size_t count_parameters(const struct params *params)
{
    size_t n = 0;
    for (int i = 0; i < params->n; i++)
        n += param_elements(&params->items[i]);
    return n;
}

double flops_per_token(const struct params *params, int seq_len)
{
    const struct config *config = &params->config;
    double multiplied = (double)config->vocab * config->channels; /* the head, tied or not */
    for (int i = 0; i < params->n; i++)
        if (params->items[i].n_dims == 2 && params->items[i].layer >= 0)
            multiplied += (double)param_elements(&params->items[i]);
    return 6 * multiplied + 12.0 * config->layers * config->channels * seq_len;
}
