/* a surface of degree eleven by nested sums at the points of a grid */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 1200
#endif
#ifndef D
#define D 12
#endif

void kernel_bernstein(DATA_TYPE S[N][N], DATA_TYPE U[N][D], DATA_TYPE V[N][D], DATA_TYPE C[D][D])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            S[i][j] = 0;
            for (int p = 0; p < D; p++)
                for (int q = 0; q < D; q++)
                    S[i][j] += U[i][p] * C[p][q] * V[j][q];
        }
#pragma endscop
}
