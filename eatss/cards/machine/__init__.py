"""What eatss uses of this machine: packages, compilers, driver, cards (``eatss doctor``).

In: nothing but the machine. Out: a ``Check`` or a ``Fact`` a part. Next folder: ``eatss/report``.
"""
