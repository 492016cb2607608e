#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef B
#define B 32
#endif
#ifndef G
#define G 32
#endif
#ifndef C
#define C 8
#endif
#ifndef S
#define S 3136
#endif
void kernel_groupnorm(DATA_TYPE Y[B][G][C][S], DATA_TYPE X[B][G][C][S], DATA_TYPE mean[B][G],
                      DATA_TYPE var[B][G]) {
    int i, j, k, l;
#pragma scop
    for (i = 0; i < B; i++)
        for (j = 0; j < G; j++) {
            mean[i][j] = 0;
            var[i][j] = 0;
            for (k = 0; k < C; k++)
                for (l = 0; l < S; l++)
                    mean[i][j] += X[i][j][k][l];
            mean[i][j] = mean[i][j] / (C * S);
            for (k = 0; k < C; k++)
                for (l = 0; l < S; l++)
                    var[i][j] += (X[i][j][k][l] - mean[i][j]) * (X[i][j][k][l] - mean[i][j]);
            var[i][j] = var[i][j] / (C * S);
            for (k = 0; k < C; k++)
                for (l = 0; l < S; l++)
                    Y[i][j][k][l] = (X[i][j][k][l] - mean[i][j]) / sqrtf(var[i][j] + 1e-5f);
        }
#pragma endscop
}
