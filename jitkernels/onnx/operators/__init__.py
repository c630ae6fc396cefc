"""The operators of ONNX, one module for each family: functions over NumPy's surface, entered in the table by name."""
