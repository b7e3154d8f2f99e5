"""The plan's schema at work: problems in words, and the defaults."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from saltern.problem import Problem

Schema = Mapping[str, Any]


def problems(schema: Schema, plan: Any) -> list[Problem]:
    """Everything in the plan that the schema refuses."""
    errors = Draft202012Validator(schema).iter_errors(plan)
    return [problem for error in errors for problem in _problems_of(error)]


def with_defaults(schema: Schema, plan: Any) -> Any:
    """The plan with each missing key that has a default."""
    return _filled(schema, schema, copy.deepcopy(plan))


def path(parts: Iterable[Any]) -> str:
    """A key path as people write it: hosts:node01:roles."""
    return ":".join(str(part) for part in parts) or "saltern"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _problems_of(error: ValidationError) -> Iterator[Problem]:
    where = path(error.absolute_path)
    kind, rule = error.validator, error.validator_value
    if kind == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        for key in sorted(set(error.instance) - set(known), key=str):
            near = get_close_matches(str(key), known, n=1)
            yield Problem(
                path([*error.absolute_path, key]),
                "an unknown key",
                f"one of {', '.join(sorted(known))}",
                f"did you mean {near[0]}?" if near else "remove it",
            )
    elif kind == "required":
        for key in sorted(set(rule) - set(error.instance)):
            yield Problem(path([*error.absolute_path, key]), "nothing", "a value", "add the key")
    elif error.parent is not None or "propertyNames" in error.schema_path:
        yield Problem(where, f"the name {_shown(error.instance)}", _rule(kind, rule), "rename it")
    else:
        yield Problem(where, _shown(_redacted(where, error.instance)), _expected(error))


def _redacted(where: str, value: Any) -> Any:
    return "a value that is not shown" if where.startswith("secrets:") else value


def _expected(error: ValidationError) -> str:
    meaning = error.schema.get("description")
    rule = _rule(error.validator, error.validator_value)
    return f"{rule} ({meaning.rstrip('.')})" if meaning else rule


_WORDS = {
    "type": lambda rule: (
        f"a value of type {' or '.join([rule] if isinstance(rule, str) else rule)}"
    ),
    "enum": lambda rule: f"one of {', '.join(str(item) for item in rule)}",
    "const": lambda rule: f"{rule!r}",
    "pattern": lambda rule: f"text like {rule}",
    "minimum": lambda rule: f"at least {rule}",
    "maximum": lambda rule: f"at most {rule}",
    "exclusiveMinimum": lambda rule: f"more than {rule}",
    "minLength": lambda rule: f"at least {rule} characters",
    "maxLength": lambda rule: f"at most {rule} characters",
    "minItems": lambda rule: f"at least {rule} item{'' if rule == 1 else 's'}",
    "minProperties": lambda rule: f"at least {rule} entr{'y' if rule == 1 else 'ies'}",
    "uniqueItems": lambda rule: "no item twice",
    "oneOf": lambda rule: " or ".join(_option(item) for item in rule),
}


def _rule(kind: str, rule: Any) -> str:
    return _WORDS[kind](rule) if kind in _WORDS else f"{kind} {rule}"


def _option(schema: Schema) -> str:
    kind = "const" if "const" in schema else "type"
    return _rule(kind, schema[kind])


def _filled(schema: Schema, root: Schema, value: Any) -> Any:
    schema = _resolved(schema, root)
    if not isinstance(value, dict):
        return value
    known = schema.get("properties", {})
    for key, below in known.items():
        default = _resolved(below, root)
        if key not in value and "default" in default:
            value[key] = copy.deepcopy(default["default"])
        if key in value:
            value[key] = _filled(below, root, value[key])
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        for key in value.keys() - known.keys():
            value[key] = _filled(others, root, value[key])
    return value


def _resolved(schema: Schema, root: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    target: Any = root
    for part in schema["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return {**target, **{key: item for key, item in schema.items() if key != "$ref"}}
