"""The warm path of a compiled function: guards, the compiled entry, results."""
