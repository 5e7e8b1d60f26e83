"""One huge run over several cells: a million tasks on thousands of instances, exactly counted."""
