"""Source rewriting of traced functions: loops and branches become calls of runtime hooks."""
