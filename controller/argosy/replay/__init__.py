"""What the controller knew and decided at an earlier moment."""
