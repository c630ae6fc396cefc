"""``python -m jitkernels`` is the command line ``jitkernels``."""

from jitkernels.cli import main

if __name__ == "__main__":
    main()
