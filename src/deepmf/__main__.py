"""``python -m deepmf``: the command line."""

from deepmf.cli import main

if __name__ == "__main__":
    main()
