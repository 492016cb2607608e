"""Facts of kernels and a card in, the search space of their tiled code out."""
