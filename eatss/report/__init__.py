"""Nouns in; tables, diagnostics and pages that people read out."""
