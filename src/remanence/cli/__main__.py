"""``python -m remanence.cli``: the command line where no script is installed, as under ``torchrun``."""

from remanence.cli import main

if __name__ == "__main__":
    main()
