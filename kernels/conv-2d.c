/*
 * conv-2d: two-dimensional convolution, each channel with a kernel of its own
 *
 *   Out[c][h][w] += sum over kh < NKH, kw < NKW of In[c][h+kh][w+kw] Ker[c][kh][kw]
 *
 * Stride 1, no padding: In is NC x NH x NW, Ker is NC x NKH x NKW, Out is
 * NC x (NH - NKH + 1) x (NW - NKW + 1).
 * Flops: 2 NC (NH - NKH + 1) (NW - NKW + 1) NKH NKW.
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

#ifndef NC
#define NC SIZE(8, 32, 224, 224, 224, 224)
#endif
#ifndef NH
#define NH SIZE(16, 64, 224, 224, 448, 224)
#endif
#ifndef NW
#define NW SIZE(16, 64, 224, 224, 448, 224)
#endif
#ifndef NKH
#define NKH SIZE(3, 3, 3, 3, 3, 3)
#endif
#ifndef NKW
#define NKW SIZE(3, 3, 3, 3, 3, 3)
#endif

void kernel_conv_2d(DATA_TYPE In[NC][NH][NW], DATA_TYPE Ker[NC][NKH][NKW],
                    DATA_TYPE Out[NC][NH - NKH + 1][NW - NKW + 1])
{
    int c, h, w, kh, kw;

#pragma scop
    for (c = 0; c < NC; c++)
        for (h = 0; h < NH - NKH + 1; h++)
            for (w = 0; w < NW - NKW + 1; w++)
                for (kh = 0; kh < NKH; kh++)
                    for (kw = 0; kw < NKW; kw++)
                        Out[c][h][w] += In[c][h + kh][w + kw] * Ker[c][kh][kw];
#pragma endscop
}
