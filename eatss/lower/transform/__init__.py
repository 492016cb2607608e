"""Changes of a kernel that keep what it computes: ``Kernel`` in, ``Kernel`` out."""
