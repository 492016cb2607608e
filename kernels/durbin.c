/*
 * durbin: Levinson-Durbin recursion for a symmetric Toeplitz system
 *
 *   T out = -r,  T[i][j] = 1 where i = j, else r[|i-j|-1]
 *
 * y[k] (its first k + 1 entries) solves the leading system of order k + 1:
 *
 *   y[0][0]  = alpha[0] = -r[0],  beta[0] = 1
 *   beta[k]  = (1 - alpha[k-1]^2) beta[k-1]
 *   sum[k]   = r[k] + sum over i < k of r[k-1-i] y[k-1][i]
 *   alpha[k] = -sum[k] / beta[k]
 *   y[k][i]  = y[k-1][i] + alpha[k] y[k-1][k-1-i]  (i < k),  y[k][k] = alpha[k]
 *
 * r, alpha, beta, sum, out have N elements, y is N x N: every order keeps a row
 * of its own, so that no update overwrites what the same step still reads.
 * Flops: 2 N (N - 1) + 4 (N - 1); changes of sign not counted.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#if defined(MINI_DATASET)
#define SIZE(mini, small, standard, large, extralarge, usual) mini
#elif defined(SMALL_DATASET)
#define SIZE(mini, small, standard, large, extralarge, usual) small
#elif defined(STANDARD_DATASET) || defined(MEDIUM_DATASET)
#define SIZE(mini, small, standard, large, extralarge, usual) standard
#elif defined(LARGE_DATASET)
#define SIZE(mini, small, standard, large, extralarge, usual) large
#elif defined(EXTRALARGE_DATASET)
#define SIZE(mini, small, standard, large, extralarge, usual) extralarge
#else
#define SIZE(mini, small, standard, large, extralarge, usual) usual
#endif

#ifndef N
#define N SIZE(32, 500, 4000, 8000, 100000, 4000)
#endif

void kernel_durbin(DATA_TYPE r[N], DATA_TYPE alpha[N], DATA_TYPE beta[N], DATA_TYPE sum[N],
                   DATA_TYPE y[N][N], DATA_TYPE out[N])
{
    int i, k;

#pragma scop
    y[0][0] = -r[0];
    beta[0] = 1;
    alpha[0] = -r[0];
    for (k = 1; k < N; k++) {
        beta[k] = beta[k - 1] - alpha[k - 1] * alpha[k - 1] * beta[k - 1];
        sum[k] = r[k];
        for (i = 0; i < k; i++)
            sum[k] = sum[k] + r[k - 1 - i] * y[k - 1][i];
        alpha[k] = -sum[k] / beta[k];
        for (i = 0; i < k; i++)
            y[k][i] = y[k - 1][i] + alpha[k] * y[k - 1][k - 1 - i];
        y[k][k] = alpha[k];
    }
    for (i = 0; i < N; i++)
        out[i] = y[N - 1][i];
#pragma endscop
}
