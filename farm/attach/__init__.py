"""Attaching to a run from another terminal, through a socket only the user can open (DESIGN.md §9)."""
