"""The sources of documents: one module or package for each."""
