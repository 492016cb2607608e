"""Loops written in Python in, C with the same loops out; next folder: ``eatss/frontend``.

A function with the decorator ``eatss.scop`` is parsed, never executed. Nothing else of eatss
sees Python source: the C goes the way of every C file, and what is said of it is said of the
Python (``places.py``).
"""
