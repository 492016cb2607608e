/*
 * floyd-warshall: length of the shortest path between every two vertices
 *
 *   path[i][j] = min(path[i][j], path[i][k] + path[k][j])    k = 0, 1, ..., N - 1
 *
 * path is N x N: on entry the lengths of the edges, on return the lengths of the
 * shortest paths.
 * Flops: 2 N^3; one addition and one comparison.
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
#define N SIZE(32, 128, 1024, 2000, 4000, 1000)
#endif

void kernel_floyd_warshall(DATA_TYPE path[N][N])
{
    int i, j, k;

#pragma scop
    for (k = 0; k < N; k++)
        for (i = 0; i < N; i++)
            for (j = 0; j < N; j++)
                path[i][j] = path[i][j] < path[i][k] + path[k][j] ? path[i][j]
                                                                  : path[i][k] + path[k][j];
#pragma endscop
}
