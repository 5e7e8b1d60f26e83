"""The program of the image argosy/digits: classifies ranges of scikit-learn's handwritten digits."""
