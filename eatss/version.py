"""The version of eatss; the packages are built with it."""

__version__ = "0.1.0"
