"""Products of floats with int8 and int4 weights that are quantized in groups."""
