"""From a graph to a compiled program."""
