/*
 * correlation: correlation matrix of the columns of a table
 *
 *   mean[j]   = 1/N sum over i of data[i][j]
 *   stddev[j] = sqrt(1/N sum over i of (data[i][j] - mean[j])^2), taken as 1
 *               where it is at most 1/10 (a constant column has no correlation)
 *   data[i][j] becomes (data[i][j] - mean[j]) / (sqrt(N) stddev[j])
 *   symmat[j1][j2] = sum over i of data[i][j1] data[i][j2], symmat[j][j] = 1
 *
 * data has N rows (observations) and M columns (variables); symmat is M x M.
 * Flops: N M (M + 8) + 4 M; sqrt(N) and the comparison with 1/10 included.
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
#define N SIZE(32, 500, 1000, 2000, 4000, 4000)
#endif
#ifndef M
#define M SIZE(32, 500, 1000, 2000, 4000, 4000)
#endif

/* The square root of DATA_TYPE's own precision; declared here, so no header is needed. */
double sqrt(double);
float sqrtf(float);
#define SQRT_double sqrt
#define SQRT_float sqrtf
#define SQRT_PASTE(type) SQRT_##type
#define SQRT_FOR(type) SQRT_PASTE(type)
#define SQRT SQRT_FOR(DATA_TYPE)

void kernel_correlation(DATA_TYPE data[N][M], DATA_TYPE symmat[M][M], DATA_TYPE mean[M],
                        DATA_TYPE stddev[M])
{
    int i, j, j1, j2;

#pragma scop
    for (j = 0; j < M; j++) {
        mean[j] = 0;
        for (i = 0; i < N; i++)
            mean[j] += data[i][j];
        mean[j] /= (DATA_TYPE)N;
    }

    for (j = 0; j < M; j++) {
        stddev[j] = 0;
        for (i = 0; i < N; i++)
            stddev[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
        stddev[j] /= (DATA_TYPE)N;
        stddev[j] = SQRT(stddev[j]);
        stddev[j] = stddev[j] <= (DATA_TYPE)0.1 ? (DATA_TYPE)1 : stddev[j];
    }

    for (i = 0; i < N; i++)
        for (j = 0; j < M; j++) {
            data[i][j] -= mean[j];
            data[i][j] /= SQRT((DATA_TYPE)N) * stddev[j];
        }

    for (j1 = 0; j1 < M; j1++) {
        symmat[j1][j1] = 1;
        for (j2 = j1 + 1; j2 < M; j2++) {
            symmat[j1][j2] = 0;
            for (i = 0; i < N; i++)
                symmat[j1][j2] += data[i][j1] * data[i][j2];
            symmat[j2][j1] = symmat[j1][j2];
        }
    }
#pragma endscop
}
