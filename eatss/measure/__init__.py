"""A folder with a generated program in, ``Measurement`` out: right, how fast, how frugal.

Imports neither isl nor a solver: what one machine generated, another one measures.
Next folder: ``eatss/report``.
"""
