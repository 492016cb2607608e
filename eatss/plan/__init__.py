"""Facts of a kernel and a layout in; what a launch does out, for one layout or a column of them.

A rule about generated code is one function here. ``eatss.lower`` and ``eatss.transform`` ask it for
one layout and carry it out, ``eatss.prediction`` for thousands and prices it.
"""
