"""The relay's state machine: standard library and msgspec only; no I/O, no clock, no randomness."""
