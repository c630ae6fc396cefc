"""The op schema: the declarations of attrs and their checks, the registry of implementations, error bounds."""
