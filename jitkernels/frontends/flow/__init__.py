"""Loops and branches of traced functions: what Python does where all is known, else nodes that carry regions."""
