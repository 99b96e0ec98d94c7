"""What is asked of systems, kept, and answered."""
