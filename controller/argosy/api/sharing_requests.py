"""What may be asked about how the cluster is shared? One model for each action."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from argosy.spec.fields import Strict, refused


class ApplySharing(Strict):
    """Put a sharing document into force: `document`, or the one that the revision `restore` had. revision: the one
    that it follows, 0 = there was none; left out, the one in force now."""

    action: Literal["ApplySharing"]
    document: dict[str, Any] | None = None
    restore: int | None = Field(default=None, ge=1)
    revision: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_of_them(self) -> ApplySharing:
        if (self.document is None) == (self.restore is None):
            raise refused("give either document or restore")
        return self


class DescribeSharing(Strict):
    """The queues: their shares, what they use, and what waits in them."""

    action: Literal["DescribeSharing"]
