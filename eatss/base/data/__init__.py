"""Where kernels and GPU profiles lie in an installed wheel."""
