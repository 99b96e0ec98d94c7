"""What comes of an experiment: figures, the best, gates, and what is written of them."""
