"""Tools on top of the package: command line, kernel tests, generated documentation, kernel archives."""
