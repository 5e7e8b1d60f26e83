"""Instance types: their sizes, prices and offers as shipped data. Entry: `lookup.load_catalogue`."""
