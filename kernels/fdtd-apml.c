/*
 * fdtd-apml: magnetic field update with an anisotropic perfectly matched layer
 *
 * One update of a point takes the curl of E around it, carries the layer's own
 * field Bza forward, and advances Hz:
 *
 *   curl = (E differences in y) + (E differences in x)
 *   bz   = (cymh / cyph) Bza - (ch / cyph) curl
 *   Hz   = (cxmh[ix] / cxph[ix]) Hz + (mui czp[iz] / cxph[ix]) bz
 *          - (mui czm[iz] / cxph[ix]) Bza
 *   Bza  = bz
 *
 * with the curl
 *
 *   ix < CXM, iy < CYM   Ex[iy][ix] - Ex[iy+1][ix] + Ey[iy][ix+1] - Ey[iy][ix]
 *   ix = CXM, iy < CYM   Ex[iy][CXM] - Ex[iy+1][CXM] + Ry[iy] - Ey[iy][CXM]
 *   ix < CXM, iy = CYM   Ex[CYM][ix] - Ax[ix] + Ey[CYM][ix+1] - Ey[CYM][ix]
 *   ix = CXM, iy = CYM   Ex[CYM][CXM] - Ax[CXM] + Ry[CYM] - Ey[CYM][CXM]
 *
 * in every plane iz < CZ. As in PolyBench 3.2 the last two, the boundary iy = CYM
 * and its corner, are updated once for each iy < CYM; the boundary's bz takes
 * (cymh[CYM] / cyph[iy]) Bza[iy][ix] and ch / cyph[iy].
 * Fields are (CZ+1) x (CYM+1) x (CXM+1). curl and bz hold one element for each
 * (iz, iy), so ix runs in order and iz and iy are free where the rest allows.
 * Flops: 36 CZ CYM (CXM + 1).
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

#ifndef CZ
#define CZ SIZE(32, 64, 256, 512, 1000, 256)
#endif
#ifndef CYM
#define CYM SIZE(32, 64, 256, 512, 1000, 256)
#endif
#ifndef CXM
#define CXM SIZE(32, 64, 256, 512, 1000, 256)
#endif

void kernel_fdtd_apml(DATA_TYPE mui, DATA_TYPE ch, DATA_TYPE Ax[CZ + 1][CXM + 1],
                      DATA_TYPE Ry[CZ + 1][CYM + 1], DATA_TYPE curl[CZ + 1][CYM + 1],
                      DATA_TYPE bz[CZ + 1][CYM + 1], DATA_TYPE Bza[CZ + 1][CYM + 1][CXM + 1],
                      DATA_TYPE Ex[CZ + 1][CYM + 1][CXM + 1],
                      DATA_TYPE Ey[CZ + 1][CYM + 1][CXM + 1],
                      DATA_TYPE Hz[CZ + 1][CYM + 1][CXM + 1], DATA_TYPE czm[CZ + 1],
                      DATA_TYPE czp[CZ + 1], DATA_TYPE cxmh[CXM + 1], DATA_TYPE cxph[CXM + 1],
                      DATA_TYPE cymh[CYM + 1], DATA_TYPE cyph[CYM + 1])
{
    int iz, iy, ix;

#pragma scop
    for (iz = 0; iz < CZ; iz++)
        for (iy = 0; iy < CYM; iy++) {
            for (ix = 0; ix < CXM; ix++) {
                curl[iz][iy] = Ex[iz][iy][ix] - Ex[iz][iy + 1][ix] + Ey[iz][iy][ix + 1]
                               - Ey[iz][iy][ix];
                bz[iz][iy] = (cymh[iy] / cyph[iy]) * Bza[iz][iy][ix]
                             - (ch / cyph[iy]) * curl[iz][iy];
                Hz[iz][iy][ix] = (cxmh[ix] / cxph[ix]) * Hz[iz][iy][ix]
                                 + (mui * czp[iz] / cxph[ix]) * bz[iz][iy]
                                 - (mui * czm[iz] / cxph[ix]) * Bza[iz][iy][ix];
                Bza[iz][iy][ix] = bz[iz][iy];
            }

            curl[iz][iy] = Ex[iz][iy][CXM] - Ex[iz][iy + 1][CXM] + Ry[iz][iy] - Ey[iz][iy][CXM];
            bz[iz][iy] = (cymh[iy] / cyph[iy]) * Bza[iz][iy][CXM]
                         - (ch / cyph[iy]) * curl[iz][iy];
            Hz[iz][iy][CXM] = (cxmh[CXM] / cxph[CXM]) * Hz[iz][iy][CXM]
                              + (mui * czp[iz] / cxph[CXM]) * bz[iz][iy]
                              - (mui * czm[iz] / cxph[CXM]) * Bza[iz][iy][CXM];
            Bza[iz][iy][CXM] = bz[iz][iy];

            for (ix = 0; ix < CXM; ix++) {
                curl[iz][iy] = Ex[iz][CYM][ix] - Ax[iz][ix] + Ey[iz][CYM][ix + 1]
                               - Ey[iz][CYM][ix];
                bz[iz][iy] = (cymh[CYM] / cyph[iy]) * Bza[iz][iy][ix]
                             - (ch / cyph[iy]) * curl[iz][iy];
                Hz[iz][CYM][ix] = (cxmh[ix] / cxph[ix]) * Hz[iz][CYM][ix]
                                  + (mui * czp[iz] / cxph[ix]) * bz[iz][iy]
                                  - (mui * czm[iz] / cxph[ix]) * Bza[iz][CYM][ix];
                Bza[iz][CYM][ix] = bz[iz][iy];
            }

            curl[iz][iy] = Ex[iz][CYM][CXM] - Ax[iz][CXM] + Ry[iz][CYM] - Ey[iz][CYM][CXM];
            bz[iz][iy] = (cymh[CYM] / cyph[CYM]) * Bza[iz][CYM][CXM]
                         - (ch / cyph[CYM]) * curl[iz][iy];
            Hz[iz][CYM][CXM] = (cxmh[CXM] / cxph[CXM]) * Hz[iz][CYM][CXM]
                               + (mui * czp[iz] / cxph[CXM]) * bz[iz][iy]
                               - (mui * czm[iz] / cxph[CXM]) * Bza[iz][CYM][CXM];
            Bza[iz][CYM][CXM] = bz[iz][iy];
        }
#pragma endscop
}
