"""Fourier transforms: butterflies, the passes that apply them, tables of roots of unity, and the order of passes."""
