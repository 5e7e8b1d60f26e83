"""How much work is lost if a task is stopped whose program saves what it has done, and goes on from there?

Nobody sees a checkpoint: it is assumed that one is made every so many seconds of an attempt, as the spec says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def since_checkpoint_s(seconds: ArrayLike, every_s: ArrayLike) -> NDArray[Any]:
    """Of attempts that have run for so long; all of it where there are no checkpoints (every_s 0)."""
    ran, every = np.asarray(seconds, dtype=np.float64), np.asarray(every_s, dtype=np.float64)
    return np.where(every > 0, np.mod(ran, np.where(every > 0, every, 1.0)), ran)
