"""Bundles: a compiled function as an object file, a C header and its weights, which run without Python."""
