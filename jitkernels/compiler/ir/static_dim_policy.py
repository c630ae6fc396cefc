"""Which extents and strides become constants of the code.

Loops over such short extents do not fill a vector, and elements at such small strides are loaded as whole vectors.
"""

MAX_STATIC_EXTENT, MIN_STATIC_ELEMENTS = 4, 200
"""Last extents up to `MAX_STATIC_EXTENT` are static, in arrays with at least `MIN_STATIC_ELEMENTS` elements."""
MAX_VECTOR_STRIDE = 7
"""Strides, in elements, up to which code loads and stores whole vectors."""
MAX_SHORT_TRIP_COUNT = 16
"""Trip counts up to which an inner loop gets vectors of its own length."""
