void f(int n, float x0[n][n], float x1[n][n], float x2[n][n], float x3[n][n], float x4[n][n], float x5[n][n], float x6[n][n], float x7[n][n], float x8[n][n], float x9[n][n], float x10[n][n], float x11[n][n], float x12[n][n], float x13[n][n], float x14[n][n], float x15[n][n], float x16[n][n], float x17[n][n], float x18[n][n], float x19[n][n], float x20[n][n], float x21[n][n], float x22[n][n], float x23[n][n], float x24[n][n]) {
#pragma scop
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x1[i][j] = x0[i][j] * 0.5f + x0[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x2[i][j] = x1[i][j] * 0.5f + x0[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x3[i][j] = x2[i][j] * 0.5f + x1[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x4[i][j] = x3[i][j] * 0.5f + x2[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x5[i][j] = x4[i][j] * 0.5f + x3[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x6[i][j] = x5[i][j] * 0.5f + x4[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x7[i][j] = x6[i][j] * 0.5f + x5[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x8[i][j] = x7[i][j] * 0.5f + x6[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x9[i][j] = x8[i][j] * 0.5f + x7[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x10[i][j] = x9[i][j] * 0.5f + x8[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x11[i][j] = x10[i][j] * 0.5f + x9[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x12[i][j] = x11[i][j] * 0.5f + x10[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x13[i][j] = x12[i][j] * 0.5f + x11[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x14[i][j] = x13[i][j] * 0.5f + x12[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x15[i][j] = x14[i][j] * 0.5f + x13[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x16[i][j] = x15[i][j] * 0.5f + x14[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x17[i][j] = x16[i][j] * 0.5f + x15[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x18[i][j] = x17[i][j] * 0.5f + x16[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x19[i][j] = x18[i][j] * 0.5f + x17[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x20[i][j] = x19[i][j] * 0.5f + x18[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x21[i][j] = x20[i][j] * 0.5f + x19[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x22[i][j] = x21[i][j] * 0.5f + x20[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x23[i][j] = x22[i][j] * 0.5f + x21[i][j];
for (int i = 0; i < n; i++)
for (int j = 0; j < n; j++) x24[i][j] = x23[i][j] * 0.5f + x22[i][j];
#pragma endscop
}
