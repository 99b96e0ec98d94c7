"""What makes and mends ground truth: checks, rechunking, suggestions, near-duplicates, agreement."""
