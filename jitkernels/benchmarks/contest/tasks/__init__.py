"""The tasks of the contest, one module each: its `TASK`, and the program of each contestant."""
