"""Graph breaks: statements that cannot be compiled run in Python, between parts of the function that are compiled."""
