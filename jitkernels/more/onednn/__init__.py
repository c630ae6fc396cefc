"""oneDNN, from the package onednn-cpu-gomp."""
