"""A function that remembers what its calls need, and calls of an executor that need something else."""

from __future__ import annotations

import pytest

import argosy
from tests.fakes.calling import CallingWorld

pytestmark = pytest.mark.slow


def test_a_decorated_function_runs_here_in_a_map_and_as_a_future(deployment: CallingWorld) -> None:
    @argosy.task(vcpus=2, gpus=1, batch=1, client=deployment.client)
    def power(base: int, exponent: int = 2) -> int:
        """The power of a number."""
        return base**exponent

    assert (power(3), power.local(3, 3), power.__name__, power.__doc__) == (9, 27, "power", "The power of a number.")
    assert list(power.map([2, 3], [3, 4])) == [8, 81]
    assert list(power.starmap([(2, 5)], gpus=0)) == [32]
    assert power.submit(5, exponent=3).result(60) == 125
    asked = [(each["resources"]["gpus"], each["array"]["size"]) for each in deployment.specs]
    assert asked == [(1, 2), (0, 1), (1, 1)]


def test_a_decorated_function_that_calls_itself_is_plain_in_a_task(deployment: CallingWorld) -> None:
    @argosy.task(client=deployment.client)
    def factorial(n: int) -> int:
        return n * factorial(n - 1) if n else 1

    assert list(factorial.map([5])) == [120]
    assert list(argosy.map(factorial, [4], client=deployment.client)) == [24]


def test_an_option_that_cannot_be_is_refused_where_the_function_is_decorated() -> None:
    with pytest.raises(TypeError, match="did you mean packages"):
        argosy.task(package=["numpy"])  # type: ignore[call-arg]


def test_calls_that_need_something_else_are_a_run_of_their_own(deployment: CallingWorld) -> None:
    with argosy.Executor(client=deployment.client, collect=0.2) as pool:
        plain = [pool.submit(abs, -each) for each in range(3)]
        large = [pool.submit(abs, -9, _resources={"memory": 4096, "packages": []}) for _ in range(2)]
        assert [each.result(60) for each in (*plain, *large)] == [0, 1, 2, 9, 9]
    asked = {each["resources"]["memory"]: each["array"]["size"] for each in deployment.specs}
    assert asked == {1024: 3, 4096: 2}


def test_resources_of_one_call_are_those_of_a_task(deployment: CallingWorld) -> None:
    with argosy.Executor(client=deployment.client) as pool:
        with pytest.raises(TypeError, match="did you mean gpus"):
            pool.submit(abs, -1, _resources={"gpu": 1})  # type: ignore[typeddict-unknown-key]
        with pytest.raises(TypeError, match="'batch' is of a whole executor"):
            pool.submit(abs, -1, _resources={"batch": 1})  # type: ignore[typeddict-unknown-key]
    assert deployment.runs == {}


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert argosy.__version__ == version("argosy")
