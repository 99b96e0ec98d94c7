"""What an experiment file says, and what is at fault in it."""
