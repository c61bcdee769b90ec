"""What the screens are made of: widgets that draw lines from plain data."""
