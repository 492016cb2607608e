void f(int d0, int v0, int a[d0][v0], int c[d0][d0])
{
#pragma scop
  for (int p1 = 0; p1 < d0; p1++)
    for (int p0 = 0; p0 < d0; p0++)
      for (int p2 = 0; p2 < v0; p2++)
        c[p1][p0] += a[p1][p2] * a[p0][p2];
#pragma endscop
}
