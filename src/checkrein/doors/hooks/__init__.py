"""The hook door: coding agents ask before every tool call and tell what came of it."""
