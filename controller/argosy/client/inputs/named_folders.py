"""Uploaded folders by name: what `argosy put` uploaded, and inputs and `argosy data` name."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from argosy.client.access import Access
from argosy.client.errors import InvalidInput, error_code
from argosy.client.inputs.upload import AT_ONCE, ChunkStore, Upload
from argosy.client.packing.upload import ABSENT, explained
from argosy.layout import INPUTS, split_s3
from argosy.model.input_folder import InputFolder, read_folder

_NAMES = f"{INPUTS}names/"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
_LIST = "argosy data list"


@dataclass(frozen=True, slots=True)
class NamedFolder:
    """A name and what it stands for. size: bytes. expires_at: unless it is used before; None = never."""

    name: str
    uri: str
    files: int
    size: int
    expires_at: datetime | None


class NamedFolders:
    """Those of a deployment. Methods raise InvalidInput for a name that is none, ArgosyError, or boto3's errors."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._s3, self._bucket = access.client("s3"), access.deployment.bucket
        self._days = access.deployment.input_days

    def put(self, name: str, done: Upload) -> None:
        """From now on the name stands for this folder."""
        body = json.dumps({"uri": done.uri, "files": len(done.folder.files), "bytes": done.folder.size})
        with explained(self._bucket):
            self._s3.put_object(Bucket=self._bucket, Key=_key(name), Body=body.encode())

    def all(self) -> list[NamedFolder]:
        """By name."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=_NAMES)
        names = [each["Key"].removeprefix(_NAMES) for page in pages for each in page.get("Contents", ())]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [found for found in pool.map(self._read, sorted(filter(_NAME.fullmatch, names))) if found]

    def delete(self, name: str) -> NamedFolder:
        """What it stood for. The files stay until they expire: other names and runs may share their chunks."""
        found = self._found(name)
        with explained(self._bucket):
            self._s3.delete_object(Bucket=self._bucket, Key=_key(name))
        return found

    def uploaded(self, name: str, prefix: str) -> Upload:
        """The folder, ready to be an input, with its time to stay beginning now. prefix: INPUTS or KEPT."""
        found = self._found(name, f"There is no file or folder {name} here, and no uploaded folder has this name.")
        target = ChunkStore.of(self._access, prefix)
        digest = found.uri.rstrip("/").rpartition("/")[2]
        uri = f"s3://{self._bucket}/{prefix}folders/{digest}/"
        if (folder := target.read(uri)) is None:
            folder = self._copied(name, found.uri, target)
        done = Upload(uri, folder, 0)
        self.put(name, done if prefix == INPUTS else Upload(found.uri, folder, 0))
        return done

    def _copied(self, name: str, uri: str, target: ChunkStore) -> InputFolder:
        """Written again within S3, so that it is young. The document is written last."""
        try:
            reply = self._s3.get_object(Bucket=self._bucket, Key=split_s3(uri)[1].rstrip("/"))
            folder = read_folder(reply["Body"].read())
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for _ in pool.map(target.copy, {each.sha256 for each in folder.chunks}):
                    pass
        except Exception as fault:
            if error_code(fault) not in ABSENT:
                raise
            raise InvalidInput(f"The files of {name} have expired.", next_step=f"argosy put DIR {name}") from fault
        target.write(folder)
        return folder

    def _found(self, name: str, otherwise: str = "") -> NamedFolder:
        if (found := self._read(name)) is None:
            raise InvalidInput(otherwise or f"No uploaded folder has the name {name}.", next_step=_LIST)
        return found

    def _read(self, name: str) -> NamedFolder | None:
        try:
            reply = self._s3.get_object(Bucket=self._bucket, Key=_key(name))
        except Exception as fault:
            if error_code(fault) in ABSENT:
                return None
            raise
        said: Any = json.loads(reply["Body"].read())
        expires_at = reply["LastModified"] + timedelta(days=self._days) if self._days else None
        return NamedFolder(name, str(said["uri"]), int(said["files"]), int(said["bytes"]), expires_at)


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def name_for(text: str) -> str:
    """A name made of a folder's: `My Clips` -> `my-clips`."""
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._")[:63] or "data"


def _key(name: str) -> str:
    if not is_name(name):
        raise InvalidInput(
            f"{name!r} is no name for a folder: lower-case letters, digits, `.`, `_` and `-`, at most 63.",
            next_step=_LIST,
        )
    return _NAMES + name
