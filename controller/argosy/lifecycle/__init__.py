"""How facts and actions change the state. No other package changes it. Entries: `apply.apply`, `begin.begin`."""
