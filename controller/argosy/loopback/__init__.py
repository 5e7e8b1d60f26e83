"""How does a program of this machine serve HTTP to this machine, and to nobody else? Entry: `server.WsgiServer`."""
