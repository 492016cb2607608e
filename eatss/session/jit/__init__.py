"""Programs as callables: selected, generated and compiled when they are first called.

``eatss.jit`` makes one of C or of loops in Python, :meth:`eatss.Program.compile` of a program that
exists. Nothing here loads isl, a solver or a C parser until a program has to be made.
"""
