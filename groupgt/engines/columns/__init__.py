"""Results held as columns: files of any size and frames, labelled as their rows flow past in batches."""
