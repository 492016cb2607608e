void f(int n, int T, float ex[n][n][n], float cex[n][n][n], float dex[n][n][n], float ey[n][n][n], float cey[n][n][n], float dey[n][n][n], float ez[n][n][n], float cez[n][n][n], float dez[n][n][n], float hx[n][n][n], float chx[n][n][n], float dhx[n][n][n], float hy[n][n][n], float chy[n][n][n], float dhy[n][n][n], float hz[n][n][n], float chz[n][n][n], float dhz[n][n][n]) {
#pragma scop
for (int t = 0; t < T; t++) {
for (int i = 1; i < n-1; i++)
for (int j = 1; j < n-1; j++)
for (int k = 1; k < n-1; k++) ex[i][j][k] = cex[i][j][k] * ex[i][j][k] + dex[i][j][k] * (hz[i][j][k] - hz[i][j-1][k] - hy[i][j][k] + hy[i][j][k-1]);
for (int i = 1; i < n-1; i++)
for (int j = 1; j < n-1; j++)
for (int k = 1; k < n-1; k++) ey[i][j][k] = cey[i][j][k] * ey[i][j][k] + dey[i][j][k] * (hx[i][j][k] - hx[i][j][k-1] - hz[i][j][k] + hz[i-1][j][k]);
for (int i = 1; i < n-1; i++)
for (int j = 1; j < n-1; j++)
for (int k = 1; k < n-1; k++) ez[i][j][k] = cez[i][j][k] * ez[i][j][k] + dez[i][j][k] * (hy[i][j][k] - hy[i-1][j][k] - hx[i][j][k] + hx[i][j-1][k]);
for (int i = 1; i < n-1; i++)
for (int j = 1; j < n-1; j++)
for (int k = 1; k < n-1; k++) hx[i][j][k] = chx[i][j][k] * hx[i][j][k] + dhx[i][j][k] * (ey[i][j][k+1] - ey[i][j][k] - ez[i][j+1][k] + ez[i][j][k]);
for (int i = 1; i < n-1; i++)
for (int j = 1; j < n-1; j++)
for (int k = 1; k < n-1; k++) hy[i][j][k] = chy[i][j][k] * hy[i][j][k] + dhy[i][j][k] * (ez[i+1][j][k] - ez[i][j][k] - ex[i][j][k+1] + ex[i][j][k]);
for (int i = 1; i < n-1; i++)
for (int j = 1; j < n-1; j++)
for (int k = 1; k < n-1; k++) hz[i][j][k] = chz[i][j][k] * hz[i][j][k] + dhz[i][j][k] * (ex[i][j+1][k] - ex[i][j][k] - ey[i+1][j][k] + ey[i][j][k]);
}
#pragma endscop
}
