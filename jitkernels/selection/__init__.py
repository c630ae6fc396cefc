"""Select the implementation of an attr: overrides, tuning records, shipped tables, static order."""
