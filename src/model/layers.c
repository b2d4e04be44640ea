/* layers.c - the transformer, as in the paper.  x: the residual stream (N, C), N = B*T tokens. */
#include "model.h"

/* Attention half of layer l: x1 = x + proj(attention(qkv(layernorm(x)))). */
static struct tensor *attention_forward(struct build *b, struct layer *p, struct tensor *x)
{
    struct tensor *n = layernorm(b, "attn.ln", x, p->w[LN1_W], p->w[LN1_B]);  /* (N, C)  */
    struct tensor *qkv = linear(b, "attn.qkv", n, p->w[QKV_W], p->w[QKV_B]);  /* (N, 3C) */
    struct tensor *a = attention(b, "attn.mix", qkv);                         /* (N, C)  */
    struct tensor *o = linear(b, "attn.proj", a, p->w[PROJ_W], p->w[PROJ_B]); /* (N, C)  */
    return add(b, "attn.residual", x, o);
}

/* MLP half of layer l: x2 = x1 + proj(gelu(fc(layernorm(x1)))). */
static struct tensor *mlp_forward(struct build *b, struct layer *p, struct tensor *x1)
{
    struct tensor *n = layernorm(b, "mlp.ln", x1, p->w[LN2_W], p->w[LN2_B]);     /* (N, C)  */
    struct tensor *f = linear(b, "mlp.fc", n, p->w[FC_W], p->w[FC_B]);           /* (N, 4C) */
    struct tensor *g = gelu(b, "mlp.gelu", f);                                   /* (N, 4C) */
    struct tensor *o = linear(b, "mlp.proj", g, p->w[FCPROJ_W], p->w[FCPROJ_B]); /* (N, C)  */
    return add(b, "mlp.residual", x1, o);
}

struct tensor *gpt_stage(struct build *b, int stage, const struct batch *batch, struct tensor *x)
{
    const struct mesh *mesh = b->model->mesh;
    struct replica *r = b->replica;
    if (stage == 0)
        x = embed(b, batch);
    for (int l = mesh->first_layer[stage]; l < mesh->first_layer[stage + 1]; l++) {
        b->step->stamp.layer = l;
        x = attention_forward(b, &r->layer[l], x);
        x = mlp_forward(b, &r->layer[l], x);
    }
    b->step->stamp.layer = -1;
    if (stage == n_stages(mesh) - 1)
        x = layernorm(b, "final.ln", x, r->other[LNF_W], r->other[LNF_B]);
    return x;
}

struct tensor *gpt_head(struct build *b, struct tensor *hidden)
{
    return linear(b, "head", hidden, b->replica->other[HEAD], (struct weight){0});
}
