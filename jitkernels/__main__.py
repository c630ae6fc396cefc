"""``python -m jitkernels`` is the command line ``jitkernels``."""

from jitkernels.tools.cli import main

if __name__ == "__main__":
    main()
