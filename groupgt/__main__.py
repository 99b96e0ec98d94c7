"""`python -m groupgt`."""

from groupgt.cli.main import main

if __name__ == "__main__":
    main()
