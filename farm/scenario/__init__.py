"""Files that describe a fleet or a run, in TOML, read strictly."""
