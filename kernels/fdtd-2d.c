/*
 * fdtd-2d: two-dimensional finite-difference time-domain update, TMAX steps
 *
 *   ey[0][j]  = source[t]
 *   ey[i][j] -= 1/2 (hz[i][j] - hz[i-1][j])                    0 < i < NX
 *   ex[i][j] -= 1/2 (hz[i][j] - hz[i][j-1])                    0 < j < NY
 *   hz[i][j] -= 7/10 (ex[i][j+1] - ex[i][j] + ey[i+1][j] - ey[i][j])
 *                                                 i < NX - 1, j < NY - 1
 *
 * ex, ey (electric field) and hz (magnetic field) are NX x NY; source drives the
 * first row of ey.
 * Flops: TMAX (3 (NX - 1) NY + 3 NX (NY - 1) + 5 (NX - 1) (NY - 1)).
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

#ifndef TMAX
#define TMAX SIZE(2, 10, 50, 50, 100, 20)
#endif
#ifndef NX
#define NX SIZE(32, 500, 1000, 2000, 4000, 4000)
#endif
#ifndef NY
#define NY SIZE(32, 500, 1000, 2000, 4000, 4000)
#endif

void kernel_fdtd_2d(DATA_TYPE ex[NX][NY], DATA_TYPE ey[NX][NY], DATA_TYPE hz[NX][NY],
                    DATA_TYPE source[TMAX])
{
    int t, i, j;

#pragma scop
    for (t = 0; t < TMAX; t++) {
        for (j = 0; j < NY; j++)
            ey[0][j] = source[t];
        for (i = 1; i < NX; i++)
            for (j = 0; j < NY; j++)
                ey[i][j] = ey[i][j] - (DATA_TYPE)0.5 * (hz[i][j] - hz[i - 1][j]);
        for (i = 0; i < NX; i++)
            for (j = 1; j < NY; j++)
                ex[i][j] = ex[i][j] - (DATA_TYPE)0.5 * (hz[i][j] - hz[i][j - 1]);
        for (i = 0; i < NX - 1; i++)
            for (j = 0; j < NY - 1; j++)
                hz[i][j] = hz[i][j]
                           - (DATA_TYPE)0.7
                                 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
    }
#pragma endscop
}
