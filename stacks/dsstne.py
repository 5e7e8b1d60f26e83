"""An original DSSTNE image behind the recommender's task definition, named by a parameter.

The project builds no DSSTNE: its sources ask for CUDA 7.5, drivers and hosts that are gone. A user with an image
(`train`, `predict` and `generateNetCDF` on PATH, a shell, curl, the AWS command) gives its address, and the definition
runs the ECS template's chain in it, from the same environment variables that our own recommender reads.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ecs as ecs

DEFINITION = "recommender"
STEPS = ("GENERATEINPUTCMD", "GENERATEOUTPUTCMD")
# As in the template, except for its quotes, a curl that fails when the server does, and the place of the results:
# the part of the task, with the attempt that wrote it.
CHAIN = " && ".join(
    [
        "cd /tmp",
        'curl -fsSLo data "$DATAURL"',
        *(f'echo "running ${name}" && ${name}' for name in STEPS),
        'curl -fsSLo config "$TRAININGCONFIGURL"',
        *(f'echo "running ${name}" && ${name}' for name in ("TRAINCMD", "PREDICTCMD")),
        'aws s3 cp results "${RESULTSURL:-$ARGOSY_PART_URI}" --metadata "argosy-attempt=$ARGOSY_TASK_ATTEMPT"',
    ]
)


def let_an_original_image_run(stack: cdk.Stack, definition: ecs.Ec2TaskDefinition) -> None:
    """Parameter DsstneImageUri: empty for our own image. An original one runs as its own user and may write."""
    parameter = cdk.CfnParameter(
        stack,
        "DsstneImageUri",
        type="String",
        default="",
        allowed_pattern=r"^$|^[A-Za-z0-9][A-Za-z0-9._/:@-]*$",
        description="Image with the original DSSTNE to run as recommender; empty: this project's TensorFlow program",
    )
    original = cdk.CfnCondition(
        stack,
        "RunsOriginalDsstne",
        expression=cdk.Fn.condition_not(cdk.Fn.condition_equals(parameter.value_as_string, "")),
    )
    resource = definition.node.default_child
    assert isinstance(resource, ecs.CfnTaskDefinition)
    (container,) = stack.resolve(resource.container_definitions)
    chosen = {
        "Image": (parameter.value_as_string, container["image"]),
        "EntryPoint": (["/bin/bash", "-c"], cdk.Aws.NO_VALUE),
        "Command": ([CHAIN], cdk.Aws.NO_VALUE),
        "User": (cdk.Aws.NO_VALUE, container["user"]),
        "ReadonlyRootFilesystem": (False, True),
    }
    for name, (theirs, ours) in chosen.items():
        value = cdk.Fn.condition_if(original.logical_id, theirs, ours)
        resource.add_property_override(f"ContainerDefinitions.0.{name}", value)
