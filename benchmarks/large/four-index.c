void f(double g[100][100][100][100], double a[100][100][100][100], double b[100][100][100][100], double c[100][100][100][100], double out[100][100][100][100], double u[100][100]) {
#pragma scop
for (int w = 0; w < 100; w++)
for (int q = 0; q < 100; q++)
for (int r = 0; r < 100; r++)
for (int s = 0; s < 100; s++)
for (int p = 0; p < 100; p++)
a[w][q][r][s] += u[w][p] * g[p][q][r][s];
for (int w = 0; w < 100; w++)
for (int x = 0; x < 100; x++)
for (int r = 0; r < 100; r++)
for (int s = 0; s < 100; s++)
for (int q = 0; q < 100; q++)
b[w][x][r][s] += u[x][q] * a[w][q][r][s];
for (int w = 0; w < 100; w++)
for (int x = 0; x < 100; x++)
for (int y = 0; y < 100; y++)
for (int s = 0; s < 100; s++)
for (int r = 0; r < 100; r++)
c[w][x][y][s] += u[y][r] * b[w][x][r][s];
for (int w = 0; w < 100; w++)
for (int x = 0; x < 100; x++)
for (int y = 0; y < 100; y++)
for (int z = 0; z < 100; z++)
for (int s = 0; s < 100; s++)
out[w][x][y][z] += u[z][s] * c[w][x][y][s];
#pragma endscop
}
