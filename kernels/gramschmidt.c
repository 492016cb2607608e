/*
 * gramschmidt: QR decomposition by the modified Gram-Schmidt process
 *
 *   A = Q R     Q with orthonormal columns, R upper triangular
 *
 * Step k normalises column k,
 *
 *   nrm[k] = sum over i of A[i][k]^2,  R[k][k] = sqrt(nrm[k]),
 *   Q[i][k] = A[i][k] / R[k][k],
 *
 * and takes its share out of every later column j > k,
 *
 *   R[k][j] = sum over i of Q[i][k] A[i][j],  A[i][j] -= Q[i][k] R[k][j].
 *
 * A and Q are NI x NJ with NI >= NJ, R is NJ x NJ and is written on and above its
 * diagonal. nrm keeps each column's squared norm apart from the others.
 * Flops: 2 NI NJ^2 + NI NJ + NJ.
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

#ifndef NI
#define NI SIZE(32, 128, 512, 2000, 4000, 1000)
#endif
#ifndef NJ
#define NJ SIZE(32, 128, 512, 2000, 4000, 1000)
#endif

/* The square root of DATA_TYPE's own precision; declared here, so no header is needed. */
double sqrt(double);
float sqrtf(float);
#define SQRT_double sqrt
#define SQRT_float sqrtf
#define SQRT_PASTE(type) SQRT_##type
#define SQRT_FOR(type) SQRT_PASTE(type)
#define SQRT SQRT_FOR(DATA_TYPE)

void kernel_gramschmidt(DATA_TYPE A[NI][NJ], DATA_TYPE R[NJ][NJ], DATA_TYPE Q[NI][NJ],
                        DATA_TYPE nrm[NJ])
{
    int i, j, k;

#pragma scop
    for (k = 0; k < NJ; k++) {
        nrm[k] = 0;
        for (i = 0; i < NI; i++)
            nrm[k] += A[i][k] * A[i][k];
        R[k][k] = SQRT(nrm[k]);
        for (i = 0; i < NI; i++)
            Q[i][k] = A[i][k] / R[k][k];

        for (j = k + 1; j < NJ; j++)
            R[k][j] = 0;
        for (j = k + 1; j < NJ; j++)
            for (i = 0; i < NI; i++)
                R[k][j] += Q[i][k] * A[i][j];
        for (j = k + 1; j < NJ; j++)
            for (i = 0; i < NI; i++)
                A[i][j] = A[i][j] - Q[i][k] * R[k][j];
    }
#pragma endscop
}
