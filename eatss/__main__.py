"""``python -m eatss``."""

from eatss.cli import main

main()
