"""What runs in a worker process: the loop that claims, renders and delivers, and what it needs."""
