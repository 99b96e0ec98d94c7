"""Results held as columns: files of any size and frames, labelled in batches of rows."""
