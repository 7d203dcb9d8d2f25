"""How does a reader see what was found?"""
