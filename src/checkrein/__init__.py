"""Checkrein decides, for every tool call an AI agent makes, whether it may run, must ask, or is refused."""

from __future__ import annotations

__version__ = "0.1.0"
