/* scaled dot-product attention, one head after another */
#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef H
#define H 64
#endif
#ifndef N
#define N 1024
#endif
#ifndef D
#define D 64
#endif
void kernel_attn(DATA_TYPE scale, DATA_TYPE O[H][N][D], DATA_TYPE Q[H][N][D], DATA_TYPE K[H][N][D],
                 DATA_TYPE V[H][N][D], DATA_TYPE S[H][N][N], DATA_TYPE m[H][N], DATA_TYPE l[H][N]) {
#pragma scop
    for (int h = 0; h < H; h++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                S[h][i][j] = 0;
                for (int d = 0; d < D; d++)
                    S[h][i][j] += Q[h][i][d] * K[h][j][d];
                S[h][i][j] *= scale;
            }
    for (int h = 0; h < H; h++)
        for (int i = 0; i < N; i++) {
            m[h][i] = S[h][i][0];
            for (int j = 1; j < N; j++)
                m[h][i] = fmaxf(m[h][i], S[h][i][j]);
            l[h][i] = 0;
            for (int j = 0; j < N; j++) {
                S[h][i][j] = expf(S[h][i][j] - m[h][i]);
                l[h][i] += S[h][i][j];
            }
        }
    for (int h = 0; h < H; h++)
        for (int i = 0; i < N; i++)
            for (int d = 0; d < D; d++) {
                O[h][i][d] = 0;
                for (int j = 0; j < N; j++)
                    O[h][i][d] += S[h][i][j] * V[h][j][d];
                O[h][i][d] /= l[h][i];
            }
#pragma endscop
}
