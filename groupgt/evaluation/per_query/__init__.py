"""Values per query inside another pipeline: tables of Arrow, and frames of Spark."""
