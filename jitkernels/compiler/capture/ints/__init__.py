"""Integers of traced loops: interval analysis, symbolic induction variables, bounds and overflow guards."""
