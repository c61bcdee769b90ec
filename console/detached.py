"""The process of a detached run: ``python -m console.detached HANDLE ARGUMENT...`` (console.detach)."""

from __future__ import annotations

import sys

from console.__main__ import main

if __name__ == "__main__":
    main(sys.argv[2:], int(sys.argv[1]))
