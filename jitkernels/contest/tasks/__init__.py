"""The tasks of the contest, one module each: its `TASK`, and what each contestant does."""
