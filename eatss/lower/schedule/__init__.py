"""The pieces of a scheduled region: tiled, mapped to blocks and threads, split, hoisted.

Next folder: ``eatss/lower``.
"""
