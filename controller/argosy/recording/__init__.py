"""How does a controller record what it takes in and decides, so that any tick can be had again?"""
