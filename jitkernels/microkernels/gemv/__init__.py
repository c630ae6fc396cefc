"""Matrix times vector, and dot products of rows."""
