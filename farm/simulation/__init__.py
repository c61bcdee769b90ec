"""The scheduling lab: worlds as data, and what comes of simulating them in virtual time."""
