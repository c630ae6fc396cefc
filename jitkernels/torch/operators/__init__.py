"""ATen's operators on arrays, by groups. `aten_table` imports all modules of this folder."""
