"""Filters as data: FFmpeg's spelling of them, how they are wired, and which are offered and how. No av."""
