"""Memory planning: lifetimes, buffer assignment, rematerialization, and output layouts."""
