"""Programs that test, measure and demonstrate Argosy and are not part of it.
The simulation, the measurements and the TensorFlow demo.
"""
