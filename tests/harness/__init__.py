"""What tests, measures and shows Argosy and is no part of it: the simulation, measurements, the TensorFlow demo."""
