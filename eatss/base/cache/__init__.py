"""Bytes by everything that decided them in, the same bytes out the next time: see docs/cache.md.

Whoever computes something that takes time asks here first: the selections and programs of
:mod:`eatss.api`, the machine code of :mod:`eatss.measurement`. What is kept are bytes; nothing
that is read is ever executed or unpickled here.
"""

from eatss.base.cache.keys import key_of, versions
from eatss.base.cache.options import default_cache
from eatss.base.cache.store import DEFAULT_LIMIT_BYTES, Cache, Entry

__all__ = ["DEFAULT_LIMIT_BYTES", "Cache", "Entry", "default_cache", "key_of", "versions"]
