"""Which extents and strides become constants of the code.

Loops over such short extents do not fill a vector, and elements at such small strides are loaded as whole vectors.
"""

MOST, MANY = 4, 200
"""Last extents up to `MOST` are static, in arrays with at least `MANY` elements."""
WIDEST = 7
"""Strides, in elements, up to which code loads and stores whole vectors."""
FEW = 16
"""Trip counts up to which an inner loop gets vectors of its own length."""
