"""ATen's operators on arrays, by groups. `operator_registry` imports all modules of this folder."""
