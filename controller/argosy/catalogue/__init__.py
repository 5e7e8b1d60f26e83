"""Which instance types are there? Their sizes, prices and offers as shipped data. Entry: `lookup.load_catalogue`."""
