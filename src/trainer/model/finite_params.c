/* finite_params.c - are all parameters numbers? */
#include "model.h"
#include <math.h>

static bool are_finite(const float *values, size_t n)
{
    bool finite = true;
    for (size_t k = 0; k < n; k++)
        finite &= (bool)isfinite(values[k]);
    return finite;
}

const char *find_not_finite_parameter(struct model *model)
{
    const char *found = NULL;
    for (int i = 0; i < model->params->n && !found; i++) {
        const struct param *param = &model->params->items[i];
        size_t n = param_elements(param);
        float *values = allocate(n, sizeof *values);
        read_param(model, i, KEPT_VALUE, values);
        if (!are_finite(values, n))
            found = param->name;
        free(values);
    }
    return found;
}

static _Noreturn void refuse_parameter(const char *path, const char *name)
{
    fail(EXIT_FAILED,
         "%s: tensor %s holds a value that is not finite: the file is damaged, or its training diverged; take "
         "another file",
         path, name);
}

void refuse_if_not_finite(struct model *model, const char *path)
{
    const char *name = find_not_finite_parameter(model);
    if (name)
        refuse_parameter(path, name);
}

void write_param_of_file(struct model *model, int param, const float *values, const char *path)
{
    const struct param *written = &model->params->items[param];
    if (!are_finite(values, param_elements(written)))
        refuse_parameter(path, written->name);
    write_param(model, param, KEPT_VALUE, values);
}
