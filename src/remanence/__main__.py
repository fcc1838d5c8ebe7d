"""``python -m remanence``: the command line where no script is installed."""

from remanence.cli import main

if __name__ == "__main__":
    main()
