#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 100000000
#endif
void kernel_prefixone(DATA_TYPE y[N], DATA_TYPE x[N]) {
    int i;
#pragma scop
    y[0] = x[0];
    for (i = 1; i < N; i++)
        y[i] = y[i - 1] + x[i];
#pragma endscop
}
