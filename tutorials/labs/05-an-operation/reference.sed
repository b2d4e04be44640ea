# reference.sed - makes of cl/layernorm.cl what the lab asks for.  With such kernels the tree's own program computes it:
# the mean is 0, the first K channels scale, and epsilon is another.

s|LAYERNORM_EPS 1e-5f|LAYERNORM_EPS 1e-3f|
s|float m = group_sum(sum, scratch) / C;|float m = 0; int K = (C + 1) / 2;|
/vec squares = 0;/,/float r = /{ s|i < C|i < K|; s|C - i|K - i|; s|/ C|/ K|; }
s|float m = mean\[n\], r = rstd\[n\];|float m = 0, r = rstd[n]; int K = (C + 1) / 2;|
s|float mean_g = .*|float mean_g = 0;|
s|float mean_g_norm = \(.*\) / C;|float mean_g_norm = \1 / K;|
s|norm \* mean_g_norm|load(x + row + i, K - i, 0) * r * mean_g_norm|
