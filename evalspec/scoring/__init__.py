"""Which probabilities do the models give to the choices?"""
