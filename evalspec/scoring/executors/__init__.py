"""Where do scoring jobs run?"""
