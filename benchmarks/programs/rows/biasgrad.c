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
void kernel_biasgrad(DATA_TYPE g[C], DATA_TYPE X[B][C][S]) {
    int i, j, k;
#pragma scop
    for (i = 0; i < C; i++)
        g[i] = 0;
    for (j = 0; j < B; j++)
        for (i = 0; i < C; i++)
            for (k = 0; k < S; k++)
                g[i] += X[j][i][k];
#pragma endscop
}
