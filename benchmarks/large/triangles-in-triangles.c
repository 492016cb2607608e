void f(int n, float a[n][n], float b[n][n][n]) {
#pragma scop
for (int i = 0; i < n; i++)
for (int j = i; j < n; j++)
for (int k = j; k < n; k++)
for (int l = k; l < n; l++)
for (int m = l; m < n; m++)
a[i][j] += b[k][l][m];
#pragma endscop
}
