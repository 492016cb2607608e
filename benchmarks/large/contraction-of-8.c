void f(int Na, int Nb, int Nc, int Nd, int Ne, int Nf, int Ng, int Nh, double O[Na][Nb][Nc][Nd][Ne][Nf], double L[Na][Ng][Nb][Nh][Nc], double M[Nd][Ng][Ne][Nh][Nf]) {
#pragma scop
for (int a = 0; a < Na; a++)
for (int b = 0; b < Nb; b++)
for (int c = 0; c < Nc; c++)
for (int d = 0; d < Nd; d++)
for (int e = 0; e < Ne; e++)
for (int f = 0; f < Nf; f++)
for (int g = 0; g < Ng; g++)
for (int h = 0; h < Nh; h++)
O[a][b][c][d][e][f] += L[a][g][b][h][c] * M[d][g][e][h][f];
#pragma endscop
}
