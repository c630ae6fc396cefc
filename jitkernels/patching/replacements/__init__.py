"""The replacements, a module for each family; importing one registers its rows."""
