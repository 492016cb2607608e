"""Search spaces in; what was measured of them, kept and judged, out."""
