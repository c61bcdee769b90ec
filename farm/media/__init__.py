"""Video in and out: source index, reading, rendering, stitching. The only place that imports ``av``.

It runs in child processes only (workers, probe, stitch): a native crash must not take the terminal or the
books with it. Nothing here knows of claims, relays or workers.
"""
