#ifndef N
#define N 4000
#endif
void kernel_lcs(int T[N + 1][N + 1], int a[N], int b[N]) {
    int i, j;
#pragma scop
    for (i = 0; i <= N; i++)
        T[i][0] = 0;
    for (j = 0; j <= N; j++)
        T[0][j] = 0;
    for (i = 1; i <= N; i++)
        for (j = 1; j <= N; j++)
            T[i][j] = a[i - 1] == b[j - 1]
                          ? T[i - 1][j - 1] + 1
                          : (T[i - 1][j] > T[i][j - 1] ? T[i - 1][j] : T[i][j - 1]);
#pragma endscop
}
