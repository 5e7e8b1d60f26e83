"""Does everything end well, whatever goes wrong? The real controller in a small AWS on a virtual clock, with faults."""
