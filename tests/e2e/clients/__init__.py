"""Real agents, driven without a network: a scripted model on loopback, a headless runner, a terminal."""
