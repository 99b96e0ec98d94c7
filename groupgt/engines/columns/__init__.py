"""Labels results stored as columns, such as frames and files of any size, in batches of rows."""
