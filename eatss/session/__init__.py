"""C in; analysis, selection, prediction, recipe and program out: the chain, for every entry point.

``Session`` has the steps, each done once. ``eatss.api``, ``eatss.measuring`` and the commands of
``eatss/cli`` are ways to call it.
"""
