"""Sweeps in, numbers out: optima, frontiers, ranks, correlations; ``eatss/report`` draws them."""
