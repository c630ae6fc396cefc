"""Sorting networks, quicksort, merge sort, radix sort and argsort, and sort keys of elements."""
