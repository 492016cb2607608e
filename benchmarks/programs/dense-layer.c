/*
 * dense-layer: outputs of a layer of neurons for many inputs
 *
 *   Y[n][o] = max(0, b[o] + sum_i X[n][i] W[o][i])
 *
 * X is NN x NI, W is NO x NI, b are NO.
 * Flops: 2 NN NO NI.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NN
#define NN 2000
#endif
#ifndef NO
#define NO 1500
#endif
#ifndef NI
#define NI 1500
#endif

void kernel_dense_layer(DATA_TYPE Y[NN][NO], DATA_TYPE X[NN][NI], DATA_TYPE W[NO][NI],
                        DATA_TYPE b[NO])
{
    int n, o, i;

#pragma scop
    for (n = 0; n < NN; n++)
        for (o = 0; o < NO; o++) {
            Y[n][o] = b[o];
            for (i = 0; i < NI; i++)
                Y[n][o] += X[n][i] * W[o][i];
            Y[n][o] = Y[n][o] > 0 ? Y[n][o] : 0;
        }
#pragma endscop
}
