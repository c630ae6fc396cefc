"""Control flow of traced functions: loops and branches as regions of the graph, with their runtime hooks."""
