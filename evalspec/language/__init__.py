"""What did the author of a study file ask for, and where is it wrong?"""
