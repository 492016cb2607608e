"""``Kernel`` → CUDA text. The only place that knows how CUDA spells a node."""
