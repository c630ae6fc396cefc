"""Which extents and strides are numbers of the code.

Loops over such extents would fill no vector, and elements so near to one another are in vectors that are read whole.
"""

MOST, MANY = 4, 200
"""Last extents up to `MOST`, of arrays that have at least `MANY` elements."""
WIDEST = 7
"""Elements apart up to which vectors are read and written whole."""
FEW = 16
"""Steps of a loop up to which it has vectors of its own length, if there are loops around it."""
