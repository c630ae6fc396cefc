"""The intermediate representation: nodes, operations, symbolic dimensions, regions."""
