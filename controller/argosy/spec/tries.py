"""Retries of a task, the way out of spot, and time limits. Retries are in AWS Batch's words."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from argosy.spec.fields import (
    ATTEMPT_LIMIT,
    DISK_LIMIT_GIB,
    RULE_LIMIT,
    RUN_LIMIT_S,
    TIMEOUT_LIMIT_S,
    AlikeCount,
    ExitCodeGlob,
    ReasonGlob,
    Strict,
    Usd,
)


class ExitRuleSpec(Strict):
    """Conditions that must all hold, and what happens then."""

    on_exit_code: ExitCodeGlob | None = Field(default=None, description="Glob over the exit code.")
    on_reason: ReasonGlob | None = Field(
        default=None, description="Glob over the container's reason, such as OutOfMemoryError*."
    )
    on_status_reason: ReasonGlob | None = Field(default=None, description="Glob over the task's stopped reason.")
    action: Literal["RETRY", "EXIT"] = Field(description="RETRY while attempts are left, or EXIT at once.")


class RetrySpec(Strict):
    """When a failed task is tried again. Interruptions and other losses of instances never use up an attempt."""

    attempts: int = Field(
        default=1, ge=1, le=ATTEMPT_LIMIT, description="Attempts of each task. Default 1, as in AWS Batch."
    )
    evaluate_on_exit: Annotated[list[ExitRuleSpec], Field(max_length=RULE_LIMIT)] = Field(
        default=[], description="The first matching rule decides; if none matches, the task is retried."
    )
    stop_after_alike: AlikeCount | None = Field(
        default=None,
        description="The run stops once this many tasks have failed with one reason and exit code, and with one last"
        " line of their logs if the reason says no more, and none has succeeded. Default 5; never = it does not stop.",
    )


class CheckpointSpec(Strict):
    """When the folder $ARGOSY_CHECKPOINT of a program is saved: always at a commit, and when a task is stopped."""

    every_seconds: int | None = Field(
        default=None,
        ge=1,
        le=TIMEOUT_LIMIT_S,
        description="Seconds between two saves of an attempt. Default: at commits, and when the task is stopped.",
    )
    size_gib: float | None = Field(
        default=None,
        alias="sizeGiB",
        gt=0,
        le=DISK_LIMIT_GIB,
        description="The size of a checkpoint that you expect. Submission and plan warn if a stop leaves too little"
        " time to upload it.",
    )


class TimeoutSpec(Strict):
    """How long one attempt may take, and how long the whole run."""

    attempt_duration_seconds: int | None = Field(
        default=None, ge=1, le=TIMEOUT_LIMIT_S, description="Seconds after which an attempt is stopped."
    )
    run_duration_seconds: int | None = Field(
        default=None,
        ge=1,
        le=RUN_LIMIT_S,
        description="Seconds after submission at which the run ends, even if tasks remain.",
    )


class FallbackSpec(Strict):
    """When a run with purchase spot-then-on-demand turns to on-demand, apart from its deadline."""

    after_wait_seconds: int | None = Field(
        default=None,
        ge=1,
        le=TIMEOUT_LIMIT_S,
        description="Seconds to wait for scarce spot capacity before using on-demand. Default 600; with a deadline,"
        " only the deadline decides.",
    )
    after_interruptions: int | None = Field(
        default=None, ge=1, le=1000, description="Number of losses after which a task runs on-demand. Default 3."
    )
    after_redone_usd: Usd | None = Field(
        default=None,
        description="USD of repeated work after which the whole run uses on-demand to its end. Default: no limit.",
    )
