"""Evaluated sweeps in; figures, a page, a summary for the terminal out."""
