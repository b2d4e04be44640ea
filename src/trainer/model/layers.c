/* layers.c - the transformer of GPT-2 (Radford et al., 2019): it has a LayerNorm before each half of a layer.  x is the
 * residual stream (N, C), N = B*T tokens.
 */
#include "model.h"

/* The attention half of a layer: x1 = x + proj(attention(qkv(layernorm(x)))). */
static struct tensor *attention_forward(struct builder *b, const struct weight *p, struct tensor *x)
{
    struct tensor *n = layernorm(b, "attn.ln", x, p[LN1_W], p[LN1_B]);  /* (N, C)  */
    struct tensor *qkv = linear(b, "attn.qkv", n, p[QKV_W], p[QKV_B]);  /* (N, 3C) */
    struct tensor *a = attention(b, "attn.mix", qkv);                   /* (N, C)  */
    struct tensor *o = linear(b, "attn.proj", a, p[PROJ_W], p[PROJ_B]); /* (N, C)  */
    return residual(b, "attn.residual", x, o);
}

/* The MLP half of a layer: x2 = x1 + proj(gelu(fc(layernorm(x1)))). */
static struct tensor *mlp_forward(struct builder *b, const struct weight *p, struct tensor *x1)
{
    struct tensor *n = layernorm(b, "mlp.ln", x1, p[LN2_W], p[LN2_B]);     /* (N, C)  */
    struct tensor *f = linear(b, "mlp.fc", n, p[FC_W], p[FC_B]);           /* (N, 4C) */
    struct tensor *g = gelu(b, "mlp.gelu", f);                             /* (N, 4C) */
    struct tensor *o = linear(b, "mlp.proj", g, p[FCPROJ_W], p[FCPROJ_B]); /* (N, C)  */
    return residual(b, "mlp.residual", x1, o);
}

struct tensor *gpt_stage(struct builder *b, int stage, const struct batch *batch, struct tensor *x)
{
    const struct mesh *mesh = b->model->mesh;
    struct replica *replica = b->replica;
    if (stage == 0) {
        begin_unit(b, 0);
        x = embed(b, batch);
    }
    for (int l = mesh->first_layer[stage]; l < mesh->first_layer[stage + 1]; l++) {
        const struct weight *p = replica->by_param + b->model->params->units[1 + l].first_param;
        begin_unit(b, 1 + l);
        x = attention_forward(b, p, x);
        x = mlp_forward(b, p, x);
    }
    if (stage == n_stages(mesh) - 1) {
        begin_unit(b, b->model->params->n_units - 1);
        x = layernorm(b, "final.ln", x, replica->unlayered[LNF_W], replica->unlayered[LNF_B]);
    }
    end_unit(b);
    return x;
}

struct tensor *gpt_head(struct builder *b, struct tensor *hidden)
{
    begin_unit(b, b->model->params->n_units - 1);
    return linear(b, "head", hidden, b->replica->unlayered[HEAD], (struct weight){0});
}
