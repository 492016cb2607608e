"""``eatss.energy_meter``: a block of Python code in, ``EnergyMeasurement`` out.

Sources of energy are those of ``eatss/measurement/meters``.
"""
