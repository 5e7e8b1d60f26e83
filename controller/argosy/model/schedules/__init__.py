"""When does a schedule fire, and what is stored about each time?"""
