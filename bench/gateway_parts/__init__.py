"""What the gateway is measured with: a server, the floors, the gateway others would build, the load."""
