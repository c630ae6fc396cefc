"""The schedule of a loop nest: its loops, and which transforms run on them, all chosen before code is generated."""
