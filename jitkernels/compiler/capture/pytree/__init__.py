"""Containers of arguments and results: flatten, unflatten, result recipes."""
