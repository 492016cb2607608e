/* three channels, side by side, weighted into one */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef H
#define H 5000
#endif
#ifndef W
#define W 5000
#endif

void kernel_greyscale(DATA_TYPE G[H][W], DATA_TYPE C[H][W][3])
{
#pragma scop
    for (int i = 0; i < H; i++)
        for (int j = 0; j < W; j++)
            G[i][j] = 0.299 * C[i][j][0] + 0.587 * C[i][j][1] + 0.114 * C[i][j][2];
#pragma endscop
}
