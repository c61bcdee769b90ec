"""The farm: everything of uneven but the terminal. Never imports ``console``, textual or rich."""
