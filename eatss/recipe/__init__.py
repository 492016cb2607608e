"""``Recipe``: what was decided about a program's code, as data. Next folder: ``eatss/schedule``."""
