/* exponential moving average in time, of many channels */
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef NT
#define NT 4096
#endif
#ifndef C
#define C 32768
#endif
void kernel_ema(DATA_TYPE y[NT][C], DATA_TYPE x[NT][C], DATA_TYPE a[C]) {
#pragma scop
    for (int c = 0; c < C; c++)
        y[0][c] = x[0][c];
    for (int t = 1; t < NT; t++)
        for (int c = 0; c < C; c++)
            y[t][c] = a[c] * y[t - 1][c] + (1 - a[c]) * x[t][c];
#pragma endscop
}
