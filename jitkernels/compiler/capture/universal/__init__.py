"""Universal functions made of functions of numbers, or of rows: their loops in Python and in traces."""
