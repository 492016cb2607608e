"""Facts of a kernel and a layout in; what a launch does out, for one layout or a column of them.

A rule about generated code is one function here. ``eatss.lower`` and ``eatss.lower.transform`` ask
it for one layout and carry it out, ``eatss.cost`` for thousands and prices it.
"""
