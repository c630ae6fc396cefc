"""Arrays of structured dtypes: each field is a strided view of the memory, and an array of its own in a trace."""
