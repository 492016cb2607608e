void f(int Na, int Nb, int Nc, int Nd, int Ne, int Nf, float x[Na][Nb][Nc][Nd][Ne][Nf], float y[Nf][Nb][Nd][Nc][Ne][Na]) {
#pragma scop
for (int a = 0; a < Na; a++)
for (int b = 0; b < Nb; b++)
for (int c = 0; c < Nc; c++)
for (int d = 0; d < Nd; d++)
for (int e = 0; e < Ne; e++)
for (int f = 0; f < Nf; f++)
y[f][b][d][c][e][a] = x[a][b][c][d][e][f];
#pragma endscop
}
