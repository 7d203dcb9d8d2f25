"""Which statistical questions can a study ask?  One module per kind."""
