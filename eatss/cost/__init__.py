"""Kernel facts, sizes and a card in; expected time and energy out."""
