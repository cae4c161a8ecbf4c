"""``python -m pams_parallel.cli``."""

import sys

from ._main import main

# a worker that is spawned imports this module too, under another name
if __name__ == "__main__":
    sys.exit(main())
