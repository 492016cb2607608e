"""``Kernel``: generated code as a tree, before it is text. Next folder: ``eatss/cuda``."""
