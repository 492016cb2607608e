/* a band matrix times eight vectors */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 400000
#endif
#ifndef W
#define W 12
#endif
#ifndef V
#define V 8
#endif

void kernel_bandvectors(DATA_TYPE Y[N][V], DATA_TYPE A[N][2 * W + 1], DATA_TYPE X[N + 2 * W][V])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int v = 0; v < V; v++) {
            Y[i][v] = 0;
            for (int k = 0; k < 2 * W + 1; k++)
                Y[i][v] += A[i][k] * X[i + k][v];
        }
#pragma endscop
}
