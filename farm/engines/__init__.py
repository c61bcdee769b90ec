"""Engines make workers exist and carry bytes to and from them. They know nothing of chunks or leases."""
