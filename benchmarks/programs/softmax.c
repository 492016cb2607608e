/*
 * softmax: of every row
 *
 *   out[i][j] = exp(in[i][j] - max_i) / sum over k of exp(in[i][k] - max_i)
 *
 * in and out are NI x NJ, most and sum have NI elements.
 * Flops: 4 NI NJ, of which one is a division, and NI NJ exponentials.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NI
#define NI 20000
#endif
#ifndef NJ
#define NJ 2000
#endif

/* in the precision of DATA_TYPE */
#define PASTE(name, type) name##_##type
#define OF_TYPE(name, type) PASTE(name, type)
double fmax(double, double);
float fmaxf(float, float);
#define FMAX_double fmax
#define FMAX_float fmaxf
#define FMAX OF_TYPE(FMAX, DATA_TYPE)
double exp(double);
float expf(float);
#define EXP_double exp
#define EXP_float expf
#define EXP OF_TYPE(EXP, DATA_TYPE)

void kernel_softmax(DATA_TYPE in[NI][NJ],
                    DATA_TYPE out[NI][NJ],
                    DATA_TYPE most[NI],
                    DATA_TYPE sum[NI])
{
    int i, j;

#pragma scop
    for (i = 0; i < NI; i++) {
        most[i] = in[i][0];
        for (j = 1; j < NJ; j++)
            most[i] = FMAX(most[i], in[i][j]);
        sum[i] = 0;
        for (j = 0; j < NJ; j++) {
            out[i][j] = EXP(in[i][j] - most[i]);
            sum[i] += out[i][j];
        }
        for (j = 0; j < NJ; j++)
            out[i][j] = out[i][j] / sum[i];
    }
#pragma endscop
}
