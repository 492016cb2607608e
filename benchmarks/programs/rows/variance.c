#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 100000000
#endif
void kernel_variance(DATA_TYPE mean[1], DATA_TYPE var[1], DATA_TYPE x[N]) {
    int i;
#pragma scop
    mean[0] = 0;
    var[0] = 0;
    for (i = 0; i < N; i++)
        mean[0] += x[i];
    mean[0] = mean[0] / N;
    for (i = 0; i < N; i++)
        var[0] += (x[i] - mean[0]) * (x[i] - mean[0]);
    var[0] = var[0] / N;
#pragma endscop
}
