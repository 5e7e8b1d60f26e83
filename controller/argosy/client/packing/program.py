"""A spec with a program next to it, made into one that a deployment can run. `pack` uploads it and names the job.

A job is a small JSON object: the archives that a task unpacks, and its steps before the program. Its name is its
digest, so that the same program submitted again is the same spec.
"""

from __future__ import annotations

import json
import posixpath
import re
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from argosy.client.access import Access
from argosy.client.errors import InvalidInput
from argosy.client.inputs.local import said_of, with_addresses
from argosy.client.inputs.named_folders import NamedFolders, is_name
from argosy.client.inputs.upload import Upload, upload_entries, upload_folder
from argosy.client.packing.archive import Parcel, pack_folder
from argosy.client.packing.folder import ChangedMeanwhile, Entry, left_out, mib, packed_entries, written_here
from argosy.client.packing.upload import Progress, put, put_files, quiet, total_size, uri_of
from argosy.client.packing.wheels import Resolver, Target, cache_folder
from argosy.layout import INPUTS, KEPT, spec_uri, split_s3
from argosy.model.run_terms import ARM64, RUNNER_PROTOCOL, X86_64
from argosy.spec.program import DEFAULT_IMAGE, UNPACKED, is_local_input, listed_inputs

RESULT_FILES, RESULT_BYTES = 10_000, 50 * 1024**3  # for one task: beyond this its runner says so and uploads nothing
WHOLE_BYTES = 4_000_000  # a folder up to this size is one archive, a larger one is cut into chunks
READINGS = 3  # of a folder in which files change
HEAVY = 512 * 1024**2  # bytes of packages beyond which an image is the better way, and is recommended
_INTERPRETERS = frozenset({"python", "python3", "sh", "bash"})
_SUFFIXES = {"program": ".tar.gz", "wheel": ".whl"}
_FOLDERS = {"program": "archives", "wheel": "wheels"}
_PYTHON_TAG = re.compile(rf"{DEFAULT_IMAGE}:(3\.\d+)", re.ASCII)


Placed = tuple[Parcel, str]  # with its address


def _told_nobody(sentence: str) -> None:
    """Packing without reports."""


@dataclass(frozen=True)
class Packer:
    """Options of packing. tell: gets a sentence when something takes time; without: paths that are left out;
    keeps: whether uploaded inputs stay for good; only: names of files that tasks read, of inputs that have others
    as well."""

    resolver: Resolver = field(default_factory=lambda: Resolver(cache_folder()))
    tell: Any = _told_nobody
    progress: Progress = quiet
    without: Collection[Path] = ()
    heavy: int = HEAVY
    keeps: bool = False
    only: Mapping[str, Collection[str]] = field(default_factory=dict)

    def pack(self, spec: Mapping[str, Any], folder: Path, access: Access) -> dict[str, Any]:
        """The spec that is sent: `job` in place of `workdir`, `setup` and `packages`, which are in the bucket by then.

        spec: as a user writes it, valid; one without these fields and without inputs of this machine is
        returned unchanged. folder: the base of `workdir`.
        Raises ArgosyError, or boto3's errors.
        """
        inputs = listed_inputs(spec)
        if any(map(is_local_input, inputs)):
            spec = {**spec, "inputs": with_addresses(inputs, partial(self._uploaded, folder, access))}
        if not any(spec.get(name) is not None for name in UNPACKED):
            return dict(spec)
        with tempfile.TemporaryDirectory() as scratch:
            placed = self._folder(spec, folder, access, Path(scratch))
            placed += [_placed(access, each) for each in self._wheels(spec, access)]
            self._send(access, placed)
        job = json.dumps(job_document(placed, spec.get("setup")), sort_keys=True, separators=(",", ":"))
        return {**unpacked(spec), "job": put(access, job.encode(), ".json", "jobs")}

    def _uploaded(self, base: Path, access: Access, path: str) -> Upload:
        found, prefix = base / Path(path).expanduser(), KEPT if self.keeps else INPUTS
        if not found.exists() and is_name(path.removesuffix("/")):
            done = NamedFolders(access).uploaded(path.removesuffix("/"), prefix)
        else:
            done = upload_folder(access, found, self.progress, prefix, self.only.get(path))
        self.tell(said_of(path, done))
        return done

    def repack(self, run: Mapping[str, Any], folder: Path, access: Access) -> str:
        """The address of a job like the latest one of a run, with this folder as its program.

        run: as DescribeRun shows it. Its setup and packages stay. Raises ArgosyError, or boto3's errors.
        """
        s3, known = access.client("s3"), run.get("programs") or ()
        spec = _stored_json(s3, spec_uri(str(run["output"])))
        former = known[-1]["job"] if known else spec.get("job")
        job = _stored_json(s3, former) if former else {}
        kept = [each for each in job.get("archives", ()) if each["kind"] != "program"]
        if len(kept) == len(job.get("archives", ())):
            raise InvalidInput(
                f"{run['runId']} brought no folder with its program, so there is no other version of it.",
                next_step="submit the changed program as a run",
            )
        with tempfile.TemporaryDirectory() as scratch:
            like = {"run": spec.get("run"), "setup": job.get("setup"), "workdir": "."}
            placed = self._folder(like, folder, access, Path(scratch))
            self._send(access, placed)
        job["archives"] = [*job_document(placed, None)["archives"], *kept]
        return put(access, json.dumps(job, sort_keys=True, separators=(",", ":")).encode(), ".json", "jobs")

    def _send(self, access: Access, placed: Sequence[tuple[Parcel, str]]) -> None:
        if sent := put_files(access, placed, self.progress):
            self.tell(f"uploaded {mib(sent)}")

    def _folder(self, spec: Mapping[str, Any], base: Path, access: Access, scratch: Path) -> list[Placed]:
        if spec.get("workdir") is None:
            return []
        folder = base / str(spec["workdir"])
        for _ in range(READINGS - 1):
            try:
                return [self._whole_or_in_chunks(self._entries(spec, folder), folder, access, scratch)]
            except ChangedMeanwhile as changed:
                self.tell(f"{changed} Reading the folder again.")
        return [self._whole_or_in_chunks(self._entries(spec, folder), folder, access, scratch)]

    def _whole_or_in_chunks(self, entries: Sequence[Entry], folder: Path, access: Access, scratch: Path) -> Placed:
        """A large folder is in S3 afterwards."""
        size = sum(each.size for each in entries)
        if size <= WHOLE_BYTES:
            return _placed(access, pack_folder(entries, scratch / "program.tar.gz"))
        if size > self.heavy:
            self.tell(f"the program's folder is {mib(size)}, which each task downloads: make data an input (--input)")
        done = upload_entries(access, folder, entries, self.progress, KEPT)
        if done.sent:
            self.tell(f"uploaded {mib(done.sent)}")
        return Parcel(folder, done.uri.rstrip("/").rpartition("/")[2], size, "program", is_stored=True), done.uri

    def _entries(self, spec: Mapping[str, Any], folder: Path) -> list[Entry]:
        entries = packed_entries(folder, self.without)
        if ours := written_here(entries):
            entries = [each for each in entries if each not in ours]
            self.tell(f"{ours[0].name}, which this command writes, is not uploaded")
        for name, why in left_out(spec.get("run"), folder, entries):
            self.tell(f"{name}, which the command names, is not uploaded: {why}")
        if why := absent_program(spec, entries):
            raise InvalidInput(f"{why} ({folder.resolve()}).", next_step="check workdir, .gitignore and .argosyignore")
        files = sum(each.is_file for each in entries)
        self.tell(f"packing {folder.resolve()}: {files:,} file{'' if files == 1 else 's'}")
        return entries

    def _wheels(self, spec: Mapping[str, Any], access: Access) -> list[Parcel]:
        wanted = spec.get("packages")
        if not wanted:
            return []
        target = target_of(spec, access)
        self.tell(f"packages for Python {target.python}: {', '.join(wanted)}")
        wheels = self.resolver.wheels(wanted, target)
        if (size := total_size(wheels)) > self.heavy:
            gib = f"{size / 1024**3:.1f} GiB"
            self.tell(
                f"the packages are {gib}, which each task downloads: with an image that has them, tasks start sooner"
                " (--image)"
            )
        return wheels


def _placed(access: Access, parcel: Parcel) -> Placed:
    return parcel, uri_of(access.deployment.bucket, _FOLDERS[parcel.kind], parcel.sha256, _SUFFIXES[parcel.kind])


def _stored_json(s3: Any, uri: str) -> dict[str, Any]:
    bucket, key = split_s3(uri)
    found: dict[str, Any] = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    return found


def pack(
    spec: Mapping[str, Any], folder: Path, access: Access, *, progress: Progress = quiet, **how: Any
) -> dict[str, Any]:
    """`Packer.pack` with its default needs. how: the other fields of Packer."""
    return Packer(progress=progress, **how).pack(spec, folder, access)


def unpacked(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Without the packed files: enough to query a deployment for the cost of such a run."""
    plain = {name: value for name, value in spec.items() if name not in UNPACKED}
    if any(map(is_local_input, inputs := listed_inputs(spec))):
        plain["inputs"] = [each for each in inputs if not is_local_input(each)]
    return plain if plain.get("inputs", True) else {name: plain[name] for name in plain if name != "inputs"}


def absent_program(spec: Mapping[str, Any], entries: Sequence[Entry]) -> str:
    """Why the program could not start in its folder, judged by its words; empty if there is no obstacle."""
    name = _program_file(spec.get("run"))
    if name is None or spec.get("setup") is not None:  # the setup may make it
        return ""
    found = next((each for each in entries if each.name == name), None)
    if found is None:
        return f"{name} is not among the files that are uploaded"
    is_started = spec["run"][0] not in _INTERPRETERS
    return f"{name} is not executable" if found.is_file and is_started and not found.is_executable else ""


def _program_file(run: Any) -> str | None:
    """The file of the folder that a list of words starts: `python main.py`, `./simulate`; None for all else."""
    words = [word for word in run if isinstance(word, str)][:2] if isinstance(run, list) else []
    if words[:1] and words[0] in _INTERPRETERS:
        words = [word for word in words[1:] if not word.startswith("-")]
    elif "/" not in "".join(words[:1]):
        return None
    name = posixpath.normpath(words[0].replace("$${", "${")) if words else "/"
    is_known = bool(words) and "${" not in words[0].replace("$${", "")
    return name if is_known and not name.startswith(("/", "..")) else None


def job_document(placed: Sequence[tuple[Parcel, str]], setup: str | None) -> dict[str, Any]:
    """The data that a runner reads. placed: each archive with its address."""
    return {
        "protocol": RUNNER_PROTOCOL,
        "archives": [
            {"uri": uri, "sha256": each.sha256, "bytes": each.size, "kind": each.kind} for each, uri in placed
        ],
        "setup": setup,
        "limits": {"resultFiles": RESULT_FILES, "resultBytes": RESULT_BYTES},
    }


def target_of(spec: Mapping[str, Any], access: Access) -> Target:
    """The Python of the run's image. Raises InvalidInput for an image that does not say."""
    image = (spec.get("container") or {}).get("image") or DEFAULT_IMAGE
    architecture = (spec.get("resources") or {}).get("architecture") or X86_64
    if image != DEFAULT_IMAGE and not _PYTHON_TAG.fullmatch(image):
        raise InvalidInput(
            f"packages are for the images {DEFAULT_IMAGE}:3.X, whose Python is known; this run's image is {image}.",
            next_step="install the packages in that image, or with `setup`",
        )
    if architecture not in (X86_64, ARM64):
        raise InvalidInput(
            "packages are for one architecture, and resources.architecture is any.", next_step="set it to x86_64"
        )
    tag = _PYTHON_TAG.fullmatch(image)
    python = tag[1] if tag else access.deployment.python
    here = Target.here()
    return here if access.connection.is_loopback and python == here.python else Target(python, architecture)
