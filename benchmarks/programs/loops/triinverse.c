#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 1000
#endif
void kernel_triinverse(DATA_TYPE V[N][N], DATA_TYPE L[N][N]) {
    int i, j, k;
#pragma scop
    for (j = 0; j < N; j++) {
        V[j][j] = 1 / L[j][j];
        for (i = j + 1; i < N; i++) {
            V[i][j] = 0;
            for (k = j; k < i; k++)
                V[i][j] -= L[i][k] * V[k][j];
            V[i][j] /= L[i][i];
        }
    }
#pragma endscop
}
