"""``Recipe``: what was decided about a program, as data. Next folder: ``eatss/lower/schedule``."""
