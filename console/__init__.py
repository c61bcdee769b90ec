"""The terminal of uneven: command line, plain and JSON output, and the Textual console."""
