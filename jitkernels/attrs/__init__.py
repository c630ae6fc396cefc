"""The rows of the registry (op schemas), one file per family, each imported when one of its rows is first used.

An attr class is the row of its kernel: fields, formula, arguments, input domain, tolerance, sweep. Nothing else in the
project lists kernels.
"""
