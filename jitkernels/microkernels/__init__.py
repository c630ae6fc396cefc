"""Building blocks of implementations: register tiles, drivers, work splitting and scalar maths."""
