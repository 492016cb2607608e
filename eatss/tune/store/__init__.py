"""What sweeps measured, in a file of SQLite: a row a variant, there as soon as it is measured."""
