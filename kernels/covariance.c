/*
 * covariance: sample covariance matrix of the columns of a table
 *
 *   mean[j] = 1/N sum over i of data[i][j]
 *   data[i][j] becomes data[i][j] - mean[j]
 *   symmat[j1][j2] = 1/(N-1) sum over i of data[i][j1] data[i][j2]
 *
 * data has N rows (observations) and M columns (variables); symmat is M x M.
 * Flops: N M (M + 3) + M + M (M + 1) / 2.
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

void kernel_covariance(DATA_TYPE data[N][M], DATA_TYPE symmat[M][M], DATA_TYPE mean[M])
{
    int i, j, j1, j2;

#pragma scop
    for (j = 0; j < M; j++) {
        mean[j] = 0;
        for (i = 0; i < N; i++)
            mean[j] += data[i][j];
        mean[j] /= (DATA_TYPE)N;
    }

    for (i = 0; i < N; i++)
        for (j = 0; j < M; j++)
            data[i][j] -= mean[j];

    for (j1 = 0; j1 < M; j1++)
        for (j2 = j1; j2 < M; j2++) {
            symmat[j1][j2] = 0;
            for (i = 0; i < N; i++)
                symmat[j1][j2] += data[i][j1] * data[i][j2];
            symmat[j1][j2] /= (DATA_TYPE)(N - 1);
            symmat[j2][j1] = symmat[j1][j2];
        }
#pragma endscop
}
