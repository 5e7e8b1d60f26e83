"""The deployment that `argosy doctor` checks: the existing one, else the one that cdk.json describes.

`make deploy` passes the settings that it is about to deploy.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.deployment.findings import missing
from argosy.cli.deployment.remedies import MEND_SETTINGS, NAME_THE_CELLS, SAME_VERSION
from argosy.client.deployment import prefix_of
from argosy.client.errors import ArgosyError, InvalidInput

if TYPE_CHECKING:
    from argosy.cli.session import Session
    from argosy.settings.settings import Settings

CDK_JSON = Path("cdk.json")  # of a checkout, in which `make deploy` is typed


@dataclass(frozen=True)
class CheckedAccount:
    """account: its id. may_fix: whether to create missing things that are free of charge."""

    session: Session
    settings: Settings
    account: str
    may_fix: bool = False


def settings_for(session: Session, cells: str | None, given: str | None = None) -> Settings:
    """The settings of the deployment, else of the checkout, else the defaults; with other cells if some are named.

    given: JSON of the settings to check instead of these. Raises ArgosyError for faulty ones.
    """
    if given is not None:
        return _from_json(given)
    stage = session.connection.stage
    settings = deployed(session.client("lambda"), prefix_of(stage)) or planned(CDK_JSON, stage)
    return settings if cells is None else _with_cells(settings, cells)


def deployed(functions: Any, prefix: str) -> Settings | None:
    """None when there is no such deployment, or none that this user may read. Raises ArgosyError for one of another
    version."""
    from argosy.settings.settings import Settings

    try:
        function = functions.get_function_configuration(FunctionName=f"{prefix}-controller")
    except Exception as fault:
        if missing(fault, "ResourceNotFoundException", "AccessDeniedException"):
            return None
        raise
    text = function.get("Environment", {}).get("Variables", {}).get("ARGOSY_SETTINGS")
    try:
        return Settings.from_json(text) if text else None
    except ValueError as fault:  # pydantic's
        says = f"The deployment {prefix} is of another version of Argosy, whose settings this one cannot read."
        raise ArgosyError(says, next_step=SAME_VERSION, details=[str(fault)]) from fault


def planned(cdk_json: Path, stage: str) -> Settings:
    """The settings that `make deploy` would deploy from here. Raises ArgosyError when the file's settings are
    faulty."""
    from argosy.settings.settings import SettingsError, load_settings
    from argosy.settings.values import with_qualifier

    try:
        found = json.loads(cdk_json.read_text(encoding="utf-8"))["context"]
        context = with_qualifier(found.get("argosy", {}), found)
    except (FileNotFoundError, KeyError, ValueError):
        context = {}
    try:
        return load_settings({**context, "stage": stage})
    except SettingsError as error:
        raise ArgosyError(str(error), next_step=MEND_SETTINGS) from error


def _from_json(text: str) -> Settings:
    from pydantic import ValidationError

    from argosy.settings.settings import Settings

    try:
        return Settings.from_json(text)
    except ValidationError as fault:
        raise InvalidInput("--settings is not valid JSON of settings.", next_step=MEND_SETTINGS) from fault


def _with_cells(settings: Settings, cells: str) -> Settings:
    from pydantic import ValidationError

    from argosy.settings.settings import Settings

    try:
        named = Settings.model_validate({"cells": cells}).cells
    except ValidationError as fault:
        raise InvalidInput(f"{cells!r} is not a list of Region names.", next_step=NAME_THE_CELLS) from fault
    return settings.model_copy(update={"cells": named})
