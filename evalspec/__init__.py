"""Compile, run, sign and verify statistical studies of language models."""

__version__ = "0.1.0"
