"""Which nouns flow between the stages?  Frozen values without input or output; they import nothing of ours but each other."""
