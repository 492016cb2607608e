"""``Scop`` in; dependences, schedule tree and GPU ``Kernel``s out.

Next folder: ``eatss/analysis``.
"""
