"""Functions with control flow written anew for a trace: loops and branches become calls that the trace is told of."""
