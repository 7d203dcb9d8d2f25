"""How do files of others become questions and responses?"""
