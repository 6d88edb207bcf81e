"""What is kept: database and blobs."""
