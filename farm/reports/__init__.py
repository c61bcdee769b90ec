"""What is told of a run when it is over, made of its records."""
