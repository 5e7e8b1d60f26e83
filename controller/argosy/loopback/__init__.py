"""HTTP served to this machine only. Entry: `server.WsgiServer`."""
