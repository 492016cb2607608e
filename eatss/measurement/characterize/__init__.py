"""Microbenchmarks turn a card into numbers, a fit turns numbers into coefficients.

A card in, a calibrated ``GpuProfile`` out: ``suite`` lists the benchmarks, ``run`` measures them,
``fit`` finds the coefficients. Next folder: ``eatss/choose``, whose objectives use them.
"""
