void f(int Na, int Nb, int Nc, int Nd, int Ne, int Nf, int Ng, double O[Na][Nb][Nc][Nd], double L[Na][Ne][Nb][Nf][Ng], double M[Nc][Ng][Nd][Ne][Nf]) {
#pragma scop
for (int a = 0; a < Na; a++)
for (int b = 0; b < Nb; b++)
for (int c = 0; c < Nc; c++)
for (int d = 0; d < Nd; d++)
for (int e = 0; e < Ne; e++)
for (int f = 0; f < Nf; f++)
for (int g = 0; g < Ng; g++)
O[a][b][c][d] += L[a][e][b][f][g] * M[c][g][d][e][f];
#pragma endscop
}
