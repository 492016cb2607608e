void f(int n, float a[n][n], float b[n][n])
{
#pragma scop
for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)
    b[i][j] += ((i > 0 && a[i - 1][j] > a[i][j]) + (i > 0 && a[i - 1][j] > 0.1)) ? a[i][j] : 2;
#pragma endscop
}
