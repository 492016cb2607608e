"""Sweeps as files of others, and back: tables, and the formats of the auto-tuning community."""
