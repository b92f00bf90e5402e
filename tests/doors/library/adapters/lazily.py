"""A module that is imported when something of it is used: importing a framework takes up to a second."""

import importlib


class Lazily:
    """Stands for a module in a test module, which every worker imports only to collect its tests."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        if attribute.startswith("_"):  # pytest looks for such names on everything in a module
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)
