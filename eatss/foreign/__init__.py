"""Any program in, its time, energy and power on the cards out: ``eatss meter``."""
