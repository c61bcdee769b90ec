"""``python -m console`` is the ``uneven`` command."""

from console.cli import main

if __name__ == "__main__":
    main()
