"""What does a run cost that nobody measures: its logs, and its images' way from another Region?

The ledger holds what was measured: every second of an instance, of its disk and of its address. Logs and traffic are
billed by the GB, and Argosy does not see how many those are: they are estimated here, from figures of the catalogue
that are marked as assumed, and belong to no ledger and to no budget.
"""

from __future__ import annotations

from argosy.api.admission import OWN_NAMESPACE
from argosy.api.views import JSON
from argosy.catalogue.overheads import image_gb, log_gb_per_attempt, logs_usd_per_gb, transfer_usd_per_gb
from argosy.model.run_record import RunRecord


def estimates(record: RunRecord, home: str) -> JSON:
    """USD beyond the run's ledger. home: the Region of the deployment's registry; "" where traffic is not priced."""
    shares = _shares(record)
    logs = sum(share * logs_usd_per_gb(cell) for cell, share in shares.items())
    traffic = sum(share * transfer_usd_per_gb(home, cell) for cell, share in shares.items()) if home else 0.0
    pulled_gb = record.instance_count * image_gb(record.needs.gpus > 0) if _comes_from(record.image, home) else 0.0
    return {
        "logsUsd": record.attempts * log_gb_per_attempt() * logs,
        "imageTransferUsd": pulled_gb * traffic,
        "assumed": {"logGbPerAttempt": log_gb_per_attempt(), "imageGb": image_gb(record.needs.gpus > 0)},
    }


def _shares(record: RunRecord) -> dict[str, float]:
    """Of the run's instance time, that in each cell. Attempts and instances are taken to lie where the time does."""
    seconds: dict[str, float] = {}
    for market, costs in record.costs.items():
        cell, divider, _ = market.partition("/")
        if divider:
            seconds[cell] = seconds.get(cell, 0.0) + costs.instance_seconds
    total = sum(seconds.values())
    return {cell: each / total for cell, each in seconds.items()} if total else {}


def _comes_from(image: str | None, home: str) -> bool:
    """Whether the image is pulled from the registry of the home Region."""
    return bool(home and image) and (str(image).startswith(OWN_NAMESPACE) or f".dkr.ecr.{home}." in str(image))
