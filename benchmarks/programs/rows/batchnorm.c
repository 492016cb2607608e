/* batch normalisation as in training, NCHW */
#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef B
#define B 64
#endif
#ifndef C
#define C 256
#endif
#ifndef S
#define S 3136
#endif
void kernel_batchnorm(DATA_TYPE y[B][C][S], DATA_TYPE x[B][C][S], DATA_TYPE g[C], DATA_TYPE b[C],
                      DATA_TYPE mean[C], DATA_TYPE var[C]) {
#pragma scop
    for (int c = 0; c < C; c++) {
        mean[c] = 0;
        for (int n = 0; n < B; n++)
            for (int s = 0; s < S; s++)
                mean[c] += x[n][c][s];
        mean[c] /= B * S;
        var[c] = 0;
        for (int n = 0; n < B; n++)
            for (int s = 0; s < S; s++)
                var[c] += (x[n][c][s] - mean[c]) * (x[n][c][s] - mean[c]);
        var[c] /= B * S;
        for (int n = 0; n < B; n++)
            for (int s = 0; s < S; s++)
                y[n][c][s] = (x[n][c][s] - mean[c]) / sqrtf(var[c] + 1e-5f) * g[c] + b[c];
    }
#pragma endscop
}
