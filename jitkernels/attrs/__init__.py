"""The op schemas of the registry, one file per family, each imported when one of its schemas is first used.

An attr class is the schema of its kernel: fields, formula, arguments, input domain, tolerance, sweep. Nothing else in
the project lists kernels.
"""
