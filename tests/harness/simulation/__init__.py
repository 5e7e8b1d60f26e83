"""Does every run end correctly, whatever fails?
The real controller in a small AWS on a virtual clock, with faults.
"""
