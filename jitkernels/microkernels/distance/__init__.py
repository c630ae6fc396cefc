"""Distances of rows that scikit-learn asks for: Euclidean distances by products, and the loops of k-means."""
