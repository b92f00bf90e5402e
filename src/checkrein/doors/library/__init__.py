"""The library door: a Python program wraps its own tools, and every call of them is judged."""
