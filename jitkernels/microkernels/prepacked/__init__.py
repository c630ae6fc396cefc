"""Products with constant matrices, which compiled code packs while it is made."""
