/*
 * n-body: accelerations from the gravity of all pairs, softened
 *
 *   a_i = sum over j of m_j (x_j - x_i) / (|x_j - x_i|^2 + eps)^(3/2)
 *
 * x, y, z, m, ax, ay and az have N elements; eps is 0.01.
 * Flops: 19 N^2, of which one is a square root and one a division.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef N
#define N 32000
#endif

/* in the precision of DATA_TYPE */
#define PASTE(name, type) name##_##type
#define OF_TYPE(name, type) PASTE(name, type)
double sqrt(double);
float sqrtf(float);
#define SQRT_double sqrt
#define SQRT_float sqrtf
#define SQRT OF_TYPE(SQRT, DATA_TYPE)

void kernel_n_body(DATA_TYPE x[N],
                   DATA_TYPE y[N],
                   DATA_TYPE z[N],
                   DATA_TYPE m[N],
                   DATA_TYPE ax[N],
                   DATA_TYPE ay[N],
                   DATA_TYPE az[N])
{
    int i, j;

#pragma scop
    for (i = 0; i < N; i++) {
        ax[i] = 0;
        ay[i] = 0;
        az[i] = 0;
        for (j = 0; j < N; j++) {
            DATA_TYPE dx = x[j] - x[i];
            DATA_TYPE dy = y[j] - y[i];
            DATA_TYPE dz = z[j] - z[i];
            DATA_TYPE square = dx * dx + dy * dy + dz * dz + (DATA_TYPE)0.01;
            DATA_TYPE pull = m[j] / (square * SQRT(square));
            ax[i] += pull * dx;
            ay[i] += pull * dy;
            az[i] += pull * dz;
        }
    }
#pragma endscop
}
