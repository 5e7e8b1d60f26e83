"""The effect of a refresh on the catalogue's files: old and new figures side by side, and the new files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from argosy.catalogue.files import FILES, shipped_folder, text_of
from argosy.cli.cluster.catalogue.sources import RegionFigures
from argosy.cli.problems import CliError

Files = dict[str, dict[str, Any]]
REFRESHED = (*FILES[:3], "overheads.json")  # AWS publishes interruption bands, and not through an API


@dataclass(frozen=True, slots=True)
class Change:
    region: str
    what: str
    instance_type: str
    was: str
    now: str

    def as_json(self) -> dict[str, str]:
        return {
            "region": self.region,
            "what": self.what,
            "instanceType": self.instance_type,
            "was": self.was,
            "now": self.now,
        }


def refreshed(found: Mapping[str, RegionFigures], now: float) -> tuple[Files, list[Change]]:
    """The files with the figures found in each Region, and the changes. Other Regions stay as they are."""
    files: Files = {name: json.loads((shipped_folder() / name).read_text("utf-8")) for name in REFRESHED}
    date, changes = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}", []
    types, prices, offers, overheads = (files[name] for name in REFRESHED)
    for region, each in found.items():
        changes += list(_take_types(types["types"], region, each))
        changes += list(_take_prices(prices["regions"].setdefault(region, {}), region, each))
        changes += list(_take_offers(offers, region, each))
        changes += list(_take_overheads(overheads, region, each))
    types["types"] = _in_order(types["types"])
    for region, rows in prices["regions"].items():
        prices["regions"][region] = {name: rows[name] for name in types["types"] if name in rows}
    for region in found:
        offers["regions"][region] = [name for name in types["types"] if name in offers["regions"][region]]
    for content in files.values():
        content["refreshed"] = {**content.get("refreshed", {}), **dict.fromkeys(found, date)}
    return files, changes


def write(folder: Path, files: Files) -> None:
    """Raises CliError when the folder cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_text(text_of(name, _dated_first(content)), encoding="utf-8")
    except OSError as fault:
        raise CliError(
            f"{folder} cannot be written to: {fault.strerror or fault}.", next_step="name another folder with --output"
        ) from fault


def _dated_first(content: Mapping[str, Any]) -> dict[str, Any]:
    head = {name: content[name] for name in ("date", "source", "refreshed") if name in content}
    return {**head, **{name: value for name, value in content.items() if name not in head}}


def _take_types(types: dict[str, Any], region: str, found: RegionFigures) -> Iterator[Change]:
    for name, row in found.types.items():
        old = types.get(name)
        if old != row:
            yield Change(region, "size" if old else "new type", name, _size(old) if old else "-", _size(row))
            types[name] = row


def _size(row: Mapping[str, Any]) -> str:
    gpus = f", {row['gpus']} {row['gpuModel']}" if row["gpus"] else ""
    return f"{row['vcpus']} vCPU, {row['memoryMib']:,} MiB{gpus}"


def _take_prices(rows: dict[str, Any], region: str, found: RegionFigures) -> Iterator[Change]:
    """A type that has neither a price nor an older one is left out of the Region."""
    for name in found.types:
        old = rows.get(name, [None, None])
        new = [found.on_demand.get(name, old[0]), found.spot.get(name, old[1])]
        for what, was, now in zip(("on-demand $/h", "typical spot $/h"), old, new, strict=True):
            if was != now:
                yield Change(region, what, name, _usd(was), _usd(now))
        if new[0] is not None:
            rows[name] = new


def _usd(price: float | None) -> str:
    return "-" if price is None else f"{price:.4f}"


def _take_overheads(overheads: dict[str, Any], region: str, found: RegionFigures) -> Iterator[Change]:
    row = overheads["regions"].setdefault(region, {})
    for name, usd in found.overheads.items():
        if usd != (old := row.get(name)):
            yield Change(region, name, "-", _usd(old), _usd(usd))
        row[name] = usd
    overheads["regions"] = dict(sorted((name, each) for name, each in overheads["regions"].items() if each))


def _take_offers(offers: dict[str, Any], region: str, found: RegionFigures) -> Iterator[Change]:
    """Zones are written only where they lack a type that the Region offers."""
    before = set(offers["regions"].get(region, ()))
    there = set().union(*found.zones.values())
    for name in sorted(there ^ before):
        yield Change(region, "offered", name, "yes" if name in before else "no", "yes" if name in there else "no")
    offers["regions"][region] = sorted(there)
    zones, old = offers.setdefault("zones", {}), offers.get("zones", {}).get(region, {})
    lacks = {zone: sorted(there - types) for zone, types in sorted(found.zones.items()) if there - types}
    for zone in sorted(lacks.keys() | old.keys()):
        for name in sorted(set(lacks.get(zone, ())) ^ set(old.get(zone, ()))):
            is_lacking = name in lacks.get(zone, ())
            was, now = ("yes", "no") if is_lacking else ("no", "yes")
            yield Change(region, f"offered in {zone}", name, was, now)
    zones[region] = lacks


def _in_order(types: Mapping[str, Any]) -> dict[str, Any]:
    """Families as they were, new ones after them; sizes ascending within each."""
    families = list(dict.fromkeys(name.partition(".")[0] for name in types))
    return dict(sorted(types.items(), key=lambda row: (families.index(row[0].partition(".")[0]), _rank(row))))


def _rank(row: tuple[str, Mapping[str, Any]]) -> tuple[int, int, str]:
    return row[1]["vcpus"], row[1]["gpus"], row[0]
