#define N 100000000
void dot(float s[1], float x[N], float y[N]) {
#pragma scop
    s[0] = 0;
    for (int i = 0; i < N; i++)
        s[0] += x[i] * y[i];
#pragma endscop
}
