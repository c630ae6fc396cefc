"""The plain NumPy references: they define what each kernel means.

Nothing here imports more than NumPy, and `jitkernels.graph.special` for functions that NumPy lacks.
"""
