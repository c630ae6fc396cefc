"""Python's numbers in a trace: operators and the functions of `math` and `cmath`, which raise where NumPy warns."""
