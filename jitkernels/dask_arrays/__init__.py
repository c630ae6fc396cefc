"""Dask arrays as arguments of compiled functions: lazy calls that become one kernel per block.

A compiled function that is called with a dask array is traced once for small examples of its blocks. From its graph
follow the chunks, the dtype and the number of dimensions of the result, and which axes may be split. Chains of lazy
calls are composed, and compiled as one function. The package `dask` is no dependency: this folder is imported by the
first call with a dask array.
"""
