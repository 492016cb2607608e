// A rod that cools down.
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 40000000
#endif
#ifndef STEPS
#define STEPS 64
#endif
void kernel(DATA_TYPE a[2][N])
{
#pragma scop
    for (int t = 0; t < STEPS; t++)
        for (int i = 2; i < N - 2; i++)
            a[(t + 1) % 2][i] = (DATA_TYPE)0.05 * (a[t % 2][i - 2] + a[t % 2][i + 2])
                + (DATA_TYPE)0.2 * (a[t % 2][i - 1] + a[t % 2][i + 1]) + (DATA_TYPE)0.5 * a[t % 2][i];
#pragma endscop
}
