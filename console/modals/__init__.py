"""Boxes over a screen: they ask, or tell more."""
