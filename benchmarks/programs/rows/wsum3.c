/* weighted sums over three indices */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef I
#define I 64
#endif
#ifndef J
#define J 128
#endif
#ifndef K
#define K 128
#endif
#ifndef L
#define L 256
#endif
void kernel_wsum3(DATA_TYPE y[I], DATA_TYPE X[I][J][K][L], DATA_TYPE a[J], DATA_TYPE b[K],
                  DATA_TYPE c[L]) {
#pragma scop
    for (int i = 0; i < I; i++) {
        y[i] = 0;
        for (int j = 0; j < J; j++)
            for (int k = 0; k < K; k++)
                for (int l = 0; l < L; l++)
                    y[i] += a[j] * b[k] * c[l] * X[i][j][k][l];
    }
#pragma endscop
}
