"""Native functions in a trace: functions at an address with a C signature, of ctypes, cffi and numba."""
