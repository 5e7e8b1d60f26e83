"""How long did the attempts of a run take to start, and which images does an instance hold?

From an order to the first line: an instance boots, pulls the image, and starts the container; then the program loads.
`argosy plan` forecasts these parts under the same names.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import NamedTuple

MOST_IMAGES = 16  # images per instance: few instances pull more, and a document holds thousands of them
Images = dict[str, float]
"""By `image_key`, when an instance had pulled it: epoch seconds."""


class StartUps(NamedTuple):
    """Sums over a run's attempts that have started. Seconds and USD.

    A boot counts if the instance was launched after the run was opened, a pull if the instance lacked the image until
    then.
    """

    boots: int = 0
    boot_s: float = 0.0  # from the launch of an instance to its registration
    pulls: int = 0
    pull_s: float = 0.0
    pull_usd: float = 0.0  # their parts of their instances, at the price of those
    starts: int = 0
    start_s: float = 0.0  # from a launch to a running task, without the pull

    def with_boot(self, seconds: float) -> StartUps:
        return self._replace(boots=self.boots + 1, boot_s=self.boot_s + seconds)

    def with_pull(self, seconds: float, usd: float) -> StartUps:
        return self._replace(pulls=self.pulls + 1, pull_s=self.pull_s + seconds, pull_usd=self.pull_usd + usd)

    def with_start(self, seconds: float) -> StartUps:
        return self._replace(starts=self.starts + 1, start_s=self.start_s + seconds)


NO_START = StartUps()


def image_key(image: str, task_definition: str) -> str:
    """A short key for the image that a run's tasks pull, or for its task definition. A collision costs at most one
    extra pull.
    """
    return f"{zlib.crc32((image or task_definition).encode()):08x}"


def with_image(images: Mapping[str, float], key: str, at: float) -> Images:
    """With one more image, without the oldest beyond MOST_IMAGES."""
    latest = sorted({**images, key: at}.items(), key=lambda each: each[1])[-MOST_IMAGES:]
    return dict(latest)
