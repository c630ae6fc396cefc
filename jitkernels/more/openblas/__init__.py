"""OpenBLAS, from the scipy-openblas32 package."""
