"""Whole screens of the console."""
