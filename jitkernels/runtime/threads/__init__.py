"""The thread pool of generated code, team sizes, and parallel loops."""
