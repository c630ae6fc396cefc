"""NumPy references: they define what each kernel computes.

They import only NumPy, and `jitkernels.compiler.ir.special_functions` for functions that NumPy lacks.
"""
