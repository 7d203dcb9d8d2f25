"""How does anybody check who signed a report, and that nothing was changed since?"""
