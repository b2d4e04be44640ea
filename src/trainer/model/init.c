/* init.c - gives a model its first values, random ones. */
#include "model.h"

#include <math.h>

/* The first value of element k of the parameter, which is number i of the table. */
static float first_value(const struct param *param, double deviation, uint64_t seed, int i, size_t k)
{
    if (param->init == INIT_ZERO)
        return 0;
    if (param->init == INIT_ONE)
        return 1;
    return (float)(deviation * random_normal(seed, STREAM_INIT, (uint32_t)i, k));
}

void init_random(struct model *model, uint64_t seed)
{
    for (int i = 0; i < model->params->n; i++) {
        const struct param *param = &model->params->items[i];
        size_t n = param_elements(param);
        float *values = allocate(n, sizeof *values);
        double deviation = 0.02;
        if (param->init == INIT_RESIDUAL) /* what is added to the residual stream 2L times keeps its variance */
            deviation /= sqrt(2.0 * model->params->config.layers);
        for (size_t k = 0; k < n; k++)
            values[k] = first_value(param, deviation, seed, i, k);
        write_param(model, i, KEPT_VALUE, values);
        free(values);
    }
}
