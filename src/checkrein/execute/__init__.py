"""Runs what a model wrote: scripts in sandboxes, whose every tool call comes out to be judged."""
