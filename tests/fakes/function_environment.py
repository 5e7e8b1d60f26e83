"""The environment variables of a deployed function. Nothing that they name exists."""

from __future__ import annotations

FUNCTION_ENVIRONMENT = {
    "ARGOSY_STAGE": "main",
    "ARGOSY_TABLE": "argosy-state",
    "ARGOSY_QUEUE_URL": "http://127.0.0.1:1/queue",
    "ARGOSY_CLUSTER": "argosy",
    "ARGOSY_BUCKET": "results",
    "ARGOSY_LOG_GROUP": "/ecs/argosy/tasks",
    "ARGOSY_CONTROLLER_FUNCTION": "argosy-controller",
    "ARGOSY_TICK_RULE": "argosy-tick",
    "ARGOSY_EXECUTION_ROLE_ARN": "arn:aws:iam::123456789012:role/execution",
    "ARGOSY_TASK_ROLE_ARN": "arn:aws:iam::123456789012:role/task",
    "ARGOSY_API_FUNCTION_ARN": "arn:aws:lambda:us-east-1:123456789012:function:argosy-api",
    "ARGOSY_SCHEDULES_ROLE_ARN": "arn:aws:iam::123456789012:role/argosy-schedules",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "ARGOSY_SETTINGS": "{}",
}
