"""From a source to a function that Python can call: compile, cache, load, launch, threads."""
