"""The loop tree: what a scheduled loop nest does, as typed statements, for whatever prints or analyses its loops."""
