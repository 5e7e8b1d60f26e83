"""How much work is lost when a task that saves its work is stopped?

Argosy cannot see checkpoints. It assumes one at each `checkpoint.everySeconds` of an attempt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def since_checkpoint_s(seconds: ArrayLike, every_s: ArrayLike) -> NDArray[Any]:
    """Seconds of work lost by attempts of this age; all of it without checkpoints (every_s 0)."""
    ran, every = np.asarray(seconds, dtype=np.float64), np.asarray(every_s, dtype=np.float64)
    return np.where(every > 0, np.mod(ran, np.where(every > 0, every, 1.0)), ran)
