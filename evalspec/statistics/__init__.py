"""What do the numbers say? Arrays in, named results out; this package knows no study, no file and no model.

Every function states its assumption and its source. What is undefined is refused with ``ValueError``, or is ``None`` inside a
result beside the reason; it is never 0 and never NaN.
"""
