"""How work is sized (policies) and what happens when nothing is open (tail rules)."""
