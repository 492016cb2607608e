"""A C file and a PPCG in, what PPCG generates out: run with selected sizes, checked, measurable.

``eatss.building`` goes through it from end to end. Next folder: ``eatss/program``.
"""
