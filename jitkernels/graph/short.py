"""Which extents are numbers of the code because loops over them would fill no vector."""

MOST, MANY = 4, 200
"""Last extents up to `MOST`, of arrays that have at least `MANY` elements."""
