"""What models report: how their nodes run, times and memory of their layers, and pictures."""
