void f(int n, double a[n][n], double c[n][n])
{
#pragma scop
  for (int ax = 0; ax < n; ax++)
    for (int in = 0; in < n; in++)
      for (int k = 0; k < n; k++)
        c[ax][in] -= a[ax][k] * a[in][k];
#pragma endscop
}
