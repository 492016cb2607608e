"""Sweeps: variants of a program made, measured and kept, on one card or many."""
