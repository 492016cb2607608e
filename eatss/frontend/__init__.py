"""C in, ``Scop``s out, on libclang; next folder: ``eatss/polyhedral``.

Distinct pointer parameters and distinct global pointers are taken not to overlap, as pet and
PPCG take it; pointers that visibly may overlap are refused.
"""
