"""TensorFlow training, classification and benchmarks on an AWS inside this process."""
