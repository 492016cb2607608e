void f(int Na, int Nb, int Nc, int Nd, int Ne, int Nf, double O[Na][Nb][Nc][Nd], double L[Na][Ne][Nc][Nf], double M[Ne][Nb][Nf][Nd]) {
#pragma scop
for (int a = 0; a < Na; a++)
for (int b = 0; b < Nb; b++)
for (int c = 0; c < Nc; c++)
for (int d = 0; d < Nd; d++)
for (int e = 0; e < Ne; e++)
for (int f = 0; f < Nf; f++)
O[a][b][c][d] += L[a][e][c][f] * M[e][b][f][d];
#pragma endscop
}
