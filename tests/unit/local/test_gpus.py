"""Which GPUs does this machine have, and who uses them? Against drivers' programs that print what theirs print."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.catalogue.lookup import load_catalogue
from argosy.local.gpus import Gpu, GpuStock, Maker, described, find_gpus, fitting_types, gone, visible, why_gone

TWO = "0, GPU-a, NVIDIA H200, 143771, Disabled\n1, GPU-b, NVIDIA H200, 143771, [N/A]\n"
SLICED = "0, GPU-a, NVIDIA H200, 143771, Enabled\n1, GPU-b, NVIDIA H200, 143771, Disabled\n"
LISTED = """\
GPU 0: NVIDIA H200 (UUID: GPU-a)
  MIG 1g.18gb     Device  0: (UUID: MIG-c)
  MIG 3g.71gb     Device  1: (UUID: MIG-d)
GPU 1: NVIDIA H200 (UUID: GPU-b)
"""
AMD = """{"card0": {"Card Series": "MI300X", "VRAM Total Memory (B)": "206141652992", "Unique ID": "0x9f"},
"card1": {"Card Series": "MI300X", "VRAM Total Memory (B)": "206141652992", "Unique ID": "0xa0"}, "system": {}}"""


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH, but for the shell that the programs need."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def prints(folder: Path, name: str, *, listed: str = "", asked: str = "") -> None:
    program(folder, name, f"if [ \"$1\" = -L ]; then printf '%s' '{listed}'; else printf '%s' '{asked}'; fi")


def gpus(count: int, memory_mib: int = 143_771) -> list[Gpu]:
    return [Gpu(f"GPU-{place}", str(place), "NVIDIA H200", memory_mib) for place in range(count)]


def test_the_gpus_are_those_that_the_driver_names(bin_folder: Path) -> None:
    prints(bin_folder, "nvidia-smi", asked=TWO)
    assert find_gpus() == (
        Gpu("GPU-a", "0", "NVIDIA H200", 143_771),
        Gpu("GPU-b", "1", "NVIDIA H200", 143_771),
    )
    assert described(find_gpus()) == "2 x NVIDIA H200 (140 GiB)"


def test_a_gpu_that_is_cut_into_mig_devices_is_used_by_the_device(bin_folder: Path) -> None:
    prints(bin_folder, "nvidia-smi", asked=SLICED, listed=LISTED)
    assert find_gpus() == (
        Gpu("MIG-c", "0:0", "NVIDIA MIG 1g.18gb", 18 * 1024),
        Gpu("MIG-d", "0:1", "NVIDIA MIG 3g.71gb", 71 * 1024),
        Gpu("GPU-b", "1", "NVIDIA H200", 143_771),
    )


def test_amds_gpus_are_shown_by_their_numbers(bin_folder: Path) -> None:
    prints(bin_folder, "rocm-smi", asked=AMD)
    found = find_gpus()
    assert found[1] == Gpu("GPU-0xa0", "1", "AMD MI300X", 196_592, Maker.AMD)
    assert visible(found[1:]) == {"CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": "1"}


@pytest.mark.parametrize(
    "script", ["echo 'NVIDIA-SMI has failed'; exit 9", "echo 'No devices were found'", "exec /bin/sleep 60"]
)
def test_a_driver_that_fails_finds_nothing_or_hangs_has_no_gpu(bin_folder: Path, script: str) -> None:
    program(bin_folder, "nvidia-smi", script)
    (bin_folder / "rocm-smi").write_text("no program")
    assert find_gpus(limit_s=0.5) == ()


@given(st.integers(1, 8), st.integers(8_000, 200_000), st.integers(1, 200))
def test_the_pretended_types_have_no_more_gpus_than_there_are_nor_more_memory_if_one_has_less(
    count: int, memory_mib: int, cores: int
) -> None:
    catalogue = load_catalogue()
    types = [catalogue[name] for name in fitting_types(gpus(count, memory_mib), cores)]
    assert {1, count if count in (1, 2, 4, 8) else 1} <= {kind.gpus for kind in types}
    for kind in types:
        assert kind.gpus <= count
        alike = [each for each in catalogue.values() if (each.gpus, each.architecture) == (kind.gpus, "x86_64")]
        assert kind.gpu_memory_mib <= max(memory_mib, min(each.gpu_memory_mib for each in alike))


@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=30))
def test_a_gpu_belongs_to_one_instance_at_a_time_and_none_is_lost(count: int, steps: list[tuple[int, int]]) -> None:
    stock, held = GpuStock(gpus(count)), dict[str, int]()
    for name, wanted in ((f"i-{number}", wanted) for number, wanted in steps):
        if name in held:
            stock.give_back(name)
            stock.give_back(name)
            del held[name]
        elif stock.why_not("g6.xlarge", wanted) == "":
            stock.take(name, wanted)
            held[name] = wanted
        assert (stock.why_not("g6.xlarge", wanted) == "") == (wanted <= count - sum(held.values()))
        used = [gpu for each in held for gpu in stock.of(each)]
        assert len(used) == len(set(used)) == sum(held.values())


def test_a_type_with_more_gpus_than_the_machine_is_refused_by_both_numbers() -> None:
    assert GpuStock(gpus(1)).why_not("g5.12xlarge", 4) == "g5.12xlarge needs 4 GPUs, and this machine has 1."


def test_a_gpu_that_the_driver_no_longer_shows_is_given_to_no_other_instance(bin_folder: Path) -> None:
    prints(bin_folder, "nvidia-smi", asked=TWO)
    stock = GpuStock(find_gpus())
    stock.take("i-1", 1)
    assert why_gone(stock.of("i-1")) == ""
    prints(bin_folder, "nvidia-smi", asked=TWO.splitlines()[1])
    assert why_gone(stock.of("i-1")) == "GPU-a of this machine no longer answers"
    stock.give_back("i-1")
    stock.take("i-2", 1)
    assert [gpu.id for gpu in stock.of("i-2")] == ["GPU-b"]
    assert stock.why_not("g5.12xlarge", 2) == (
        "g5.12xlarge needs 2 GPUs, and this machine has 1; GPU-a no longer answers."
    )


@pytest.mark.parametrize("script", ["exec /bin/sleep 60", "echo 'Unable to determine the device handle'; exit 255"])
def test_gpus_are_gone_with_their_driver(bin_folder: Path, script: str) -> None:
    program(bin_folder, "nvidia-smi", script)
    assert gone(gpus(2), limit_s=0.5) == ["GPU-0", "GPU-1"]


def test_without_the_drivers_program_nothing_says_that_a_gpu_is_gone(bin_folder: Path) -> None:
    assert gone(gpus(2)) == []
