"""``Scop`` × ``Selection`` in, ``Program`` out: CUDA for every kernel, with its launch plan.

``generate.py`` is the chain of this folder. The package can be called: ``eatss.codegen(…)`` is
``eatss.api.codegen``, whether or not ``eatss.codegen`` was imported as a package before. Next
folder: ``eatss/program``.
"""

from eatss.callable_package import make_callable

make_callable(__name__, "codegen")
