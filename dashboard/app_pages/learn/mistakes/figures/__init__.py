"""Two codes side by side, what was measured of both, and their curves and bars."""
