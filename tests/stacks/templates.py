"""How do tests read a synthesised template? Its resources by type, policy statements, references and conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Statement:
    """One IAM statement: its policy (logical id) and its content, always as lists."""

    policy: str
    actions: list[str]
    resources: list[str]
    conditions: Mapping[str, Any]


@dataclass(frozen=True)
class Template:
    """A CloudFormation template and the folder of its assets."""

    body: dict[str, Any]
    folder: Path

    @property
    def resources(self) -> dict[str, Any]:
        return dict(self.body["Resources"])

    def of_type(self, name: str) -> dict[str, Any]:
        """Logical id -> properties."""
        return {id: r.get("Properties", {}) for id, r in self.resources.items() if r["Type"] == name}

    def one(self, name: str) -> dict[str, Any]:
        (found,) = self.of_type(name).values()
        return dict(found)

    def named(self, type_name: str, key: str, value: str) -> dict[str, Any]:
        """The one resource of a type whose property `key` is `value`."""
        (found,) = [p for p in self.of_type(type_name).values() if p.get(key) == value]
        return dict(found)

    def statements(self) -> Iterator[Statement]:
        """The statements of every identity policy in the template (resource policies are not our rights)."""
        for id, properties in {**self.of_type("AWS::IAM::Policy"), **self.of_type("AWS::IAM::ManagedPolicy")}.items():
            yield from _statements(id, properties["PolicyDocument"])

    def role_statements(self, role: str, effect: str = "Allow") -> list[Statement]:
        """The rights of the role with this logical id, or with the effect Deny its prohibitions. CDK puts statements
        beyond the size of an inline policy into managed ones."""
        policies = {**self.of_type("AWS::IAM::Policy"), **self.of_type("AWS::IAM::ManagedPolicy")}
        mine = [(id, p) for id, p in policies.items() if {"Ref": role} in p.get("Roles", ())]
        return [statement for id, p in mine for statement in _statements(id, p["PolicyDocument"], effect)]

    def function_role(self, function: str) -> str:
        """The logical id of the role of the function with this name."""
        role = self.named("AWS::Lambda::Function", "FunctionName", function)["Role"]
        return str(role["Fn::GetAtt"][0])

    def reaches(self, start: str) -> set[str]:
        """Every resource that CloudFormation deletes after `start`: those that it refers to or depends on, and so
        on."""
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            id = waiting.pop()
            if id in seen or id not in self.resources:
                continue
            seen.add(id)
            resource = self.resources[id]
            depends = resource.get("DependsOn", [])
            waiting += [depends] if isinstance(depends, str) else depends
            waiting += _references(resource.get("Properties", {}))
        return seen - {start}

    def exists(self, id: str) -> bool:
        """Whether the resource's condition holds (Fn::Equals of a FindInMap and a text, the only kind we use)."""
        condition = self.resources[id].get("Condition")
        if condition is None:
            return True
        found, wanted = self.body["Conditions"][condition]["Fn::Equals"]
        mapping, region, key = found["Fn::FindInMap"]
        return bool(self.body["Mappings"][mapping][region][key] == wanted)


def text(value: Any) -> str:
    """A property as one line: references as <Name>, so that ARNs can be compared."""
    match value:
        case {"Ref": name}:
            return f"<{name.removeprefix('AWS::')}>"  # without the colons ARNs split as they should
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(text(part) for part in parts)
        case {"Fn::Base64": inner}:
            return text(inner)
        case {"Fn::Sub": str(written)}:
            return written.replace("${AWS::", "<").replace("${", "<").replace("}", ">")
        case _:
            return str(value)


def _statements(policy: str, document: dict[str, Any], effect: str = "Allow") -> Iterator[Statement]:
    for each in document["Statement"]:
        if each["Effect"] == effect:
            resources = [text(r) for r in _list(each["Resource"])]
            yield Statement(policy, _list(each["Action"]), resources, each.get("Condition", {}))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "Ref" in value:
            yield value["Ref"]
        elif "Fn::GetAtt" in value:
            yield value["Fn::GetAtt"][0]
        else:
            for inner in value.values():
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)
