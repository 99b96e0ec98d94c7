"""Building and auditing ground truth: checks, rechunking, suggestions, near-duplicates, agreement."""
