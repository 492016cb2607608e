"""``Kernel`` in; ``KernelFacts`` out: CMA loop, memory classes, reuse, weights, volumes.

The nouns ``KernelVariant``, how a kernel can be cut, and ``Layout``, all that is chosen for it, are
here, too. Next folder: ``eatss/choose``.
"""
