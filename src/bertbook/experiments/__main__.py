"""``python -m bertbook.experiments``: see ``command``."""

import sys

from bertbook.experiments.command import run_experiments

if __name__ == "__main__":
    sys.exit(run_experiments(sys.argv[1:]))
