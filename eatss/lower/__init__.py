"""Pieces of a schedule and a recipe in, kernels as nodes out.

Next folder: ``eatss/cuda``.
"""
